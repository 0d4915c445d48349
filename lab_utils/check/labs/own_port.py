"""A port that a learner writes from nothing: run as a program on this CPU, then judged by the dry run."""

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lab_utils.check.outcome import CannotCheck, Wrong
from lab_utils.check.tools import expect
from lab_utils.common import scratch
from lab_utils.common.figures import counted

_CHILD = "lab_utils.check.labs.own_port_child"
_PATIENCE = 120  # seconds for the program on this CPU, and for its dry run
_DEFAULT_LOOP = "2"  # TPUConfig's
_WITH_VALUE, _BARE = "--use_tpu=True", "--use_tpu"
_LOOK = "look --use_tpu=False"  # a job of the child
# What messages of TensorFlow mean here.
_MEANINGS = {
    "CrossReplicaSum": "A CPU has no all-reduce: wrap the optimizer only if params['use_tpu'] (change 1).",
    "`config` must be provided": "The config is one of tf.estimator: make a tpu.RunConfig (change 3).",
    "are reserved keys": "TPUEstimator adds batch_size and use_tpu to params itself: leave them out.",
}


def check_port(text: str) -> str:
    """What is right about a program, in a sentence.

    Args:
        text: of the program; without flags it trains and evaluates on a CPU, with --use_tpu on a TPU.

    Raises:
        Wrong: something is missing.
        NotImplementedError: it is not written yet.
        CannotCheck: the dry run cannot be carried out here.
    """
    if not _statements(text):
        raise NotImplementedError
    with scratch.folder() as name:
        folder = Path(name)
        (folder / "port.py").write_text(text, encoding="utf-8")
        flags = (_BARE, _WITH_VALUE) if "store_true" in text else (_WITH_VALUE, _BARE)
        look = [_LOOK] if flags[0] == _WITH_VALUE else []
        # TensorFlow takes seconds to start, so one process does all that a right program needs.
        noted = _notes(folder, "run", f"judge {flags[0]}", *look)
        ran = noted["run"]
        sentences = [
            _trained(ran),
            _evaluated(ran["evaluations"][-1] if ran["evaluations"] else {}),
        ]
        try:
            judged = _judged(noted.__getitem__, flags)
        except (Wrong, CannotCheck, KeyError):
            # The reason may be what the program has left in its process: defined flags, for example.
            judged = _judged(partial(_note, folder), flags)
    return " ".join([*sentences, judged])


def _statements(text: str) -> list[ast.stmt]:
    """What the program does, without the texts and the `raise` that a file begins with."""
    try:
        body = ast.parse(text).body
    except SyntaxError as error:
        raise Wrong(f"port.py is not Python yet: line {error.lineno}, {error.msg}.") from None
    starter = "raise NotImplementedError("
    return [each for each in body if not ast.unparse(each).startswith((starter, "'", '"'))]


def _notes(folder: Path, *jobs: str) -> dict[str, Any]:
    """What a child process notes of the program in its jobs, by job: of the first one, and of others in time.

    Raises:
        Wrong: the first one does not end.
    """
    notes = folder / "notes.json"
    notes.unlink(missing_ok=True)
    command = [sys.executable, "-m", _CHILD, "port.py", notes.name, *jobs]
    options = {"cwd": folder, "capture_output": True, "text": True, "timeout": _PATIENCE}
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, **options)
        last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
        why = f"port.py ends its process with status {ended.returncode}: {last}"
    except subprocess.TimeoutExpired:
        where = "on this CPU" if jobs[0] == "run" else "in the dry run"
        why = f"port.py takes more than {_PATIENCE} s {where}: take fewer steps, or less data."
    expect(notes.exists(), why)
    return json.loads(notes.read_text(encoding="utf-8"))


def _note(folder: Path, job: str) -> dict[str, Any]:
    """What a process of its own notes of the program in one job."""
    return _notes(folder, job)[job]


def _trained(ran: dict[str, Any]) -> str:
    """What is right about the training on this CPU."""
    kinds, failed = set(ran["kinds"]), ran["failed"]
    others = ", ".join(sorted(kinds - {"TPUEstimator"}))
    expect(
        not others,
        f"port.py uses a class of tf.estimator, {others}: make a TPUEstimator (change 4).",
    )
    message = "Pass steps or max_steps to train: a TPU requires one of the two."
    expect(not ran["endless"], message)
    meaning = next((text for part, text in _MEANINGS.items() if part in failed), "")
    message = f"{meaning}\n`python port.py` fails on this CPU. {failed}".lstrip()
    expect(not failed, message)
    message = (
        "`python port.py` fails, since this TensorFlow has no Estimator: "
        "from lab_utils.estimator import tf, tpu, v1"
    )
    expect(not ran["bare"] or not kinds, message)
    message = "train_and_evaluate does not drive a TPU: call train, then evaluate."
    expect(not ran["both"], message)
    expect(bool(kinds), "port.py ends without calling train and evaluate of a TPUEstimator.")
    expect(ran["trained"] > 0, "port.py evaluates, but it does not train.")
    expect(bool(ran["evaluations"]), "port.py trains, but it does not evaluate.")
    return f"Trained {counted(ran['trained'], 'step')} on this CPU."


def _evaluated(seen: dict[str, Any]) -> str:
    """What is right about the last evaluation on this CPU: each example counts once."""
    message = "Pass steps to evaluate: a TPU requires it."
    expect(seen["steps"] is not None, message)
    whole, missing, extra = seen["held_out"], seen["missing"], seen["extra"]
    if not whole:
        dropped = "The last, smaller batch of the evaluation is dropped: its examples are never evaluated."
        expect(not missing, dropped)
        raise Wrong(
            "The input of the evaluation has no end that could be found, so nobody can tell whether each "
            "example is evaluated once: leave out repeat there."
        )
    message = "The evaluation input yields different examples each time it is read. Remove everything random from it."
    expect(missing < whole, message)
    fix = "Choose a batch size that divides their number, or pad with examples of weight 0."
    message = f"{missing} of {whole:,} held-out examples are never evaluated. {fix}"
    expect(not missing, message)
    # Those of each example: the loss counts batches, and a metric may count several values an example.
    read, steps = seen["examples"], seen["steps"]
    metrics = {name: n for name, n in seen["counted"].items() if n <= read and n != steps}
    padding = extra or seen["alike"]
    for name, number in metrics.items():
        message = (
            f"{name} counts {number:,.0f} examples, but at least {padding} of the {read:,} that are "
            "read only repeat others or fill a batch. Read each example once, or give padding the weight 0 in "
            "the loss and in each metric."
        )
        expect(not padding or number <= read - padding, message)
    message = (
        f"{extra} examples are evaluated more than once: take as many steps as there are batches."
    )
    expect(not extra or bool(metrics), message)
    number = min(metrics.values(), default=read)
    return f"Evaluated {number:,.0f} examples, each once."


def _judged(note: Callable[[str], dict[str, Any]], flags: tuple[str, ...]) -> str:
    """What is right about the program as it is meant for a TPU, by what the child notes of a job."""
    for flag in flags:
        judged = note(f"judge {flag}")
        if judged["use_tpu"]:
            break
    why = judged["failed"].partition("\n")[0]
    message = f"port.py ends itself at its flags: does it know --use_tpu? ({why})"
    expect(not judged["exits"], message)
    if judged["failed"]:
        raise Wrong(f"`python port.py {flag}` cannot be judged: {judged['failed']}")
    message = "With --use_tpu, TPUEstimator still gets use_tpu=False: hand the flag over to it."
    expect(judged["use_tpu"], message)
    message = "With --use_tpu, the RunConfig has no cluster: how does the program find the TPU? (change 3)"
    expect(judged["found"], message)
    message = (
        f"The loop has {judged['loop']} steps, TPUConfig's default: the host gets control back all the time. "
        "Set iterations_per_loop. (change 3)"
    )
    expect(judged["loop"] != _DEFAULT_LOOP, message)
    if not judged["ready"] and not judged["findings"]:
        raise CannotCheck(judged["sentence"])
    first, *others = judged["findings"] or [""]
    rules = ", ".join(each.split(" at ")[0] for each in others)
    told = "\n".join(filter(None, [judged["sentence"], first, rules and f"Also: {rules}."]))
    expect(judged["ready"], told)
    if flag == _WITH_VALUE:
        off = note(_LOOK)
        message = (
            "With --use_tpu=False, TPUEstimator gets use_tpu=True. What does port.py make of the text 'False'? "
            "(type=bool of argparse makes True of every text but the empty one.)"
        )
        expect(not off["use_tpu"], message)
    return f"The dry run of `port.py {flag}`: {judged['sentence']}"
