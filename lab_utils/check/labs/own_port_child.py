"""Runs a learner's program as a program, and writes down what it did: `own_port_child.py FILE NOTES JOB [JOB ...]`.

The job "run" runs the program on this CPU to its end, and NOTES gets its training and its evaluations. "judge
FLAGS" runs it up to its training with FLAGS, where nothing is trained, and NOTES gets the settings of its
Estimator and the dry run's verdict; "look FLAGS" does so for the settings only. NOTES of a job that failed have
its exception, in words, and no other job follows. A later job finds what an earlier one left in this process.
"""

import collections
import contextlib
import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.tools import failure
from lab_utils.common import files
from lab_utils.dry_run import dry_run
from lab_utils.dry_run.inspect import CannotJudge, load_main, settings
from lab_utils.estimator import tf, tpu, v1

TOPOLOGY, CORES = "v2:2x2", 8
_MOST = 100_000  # examples of an evaluation that are looked at


@dataclass
class Evaluation:
    """One call of evaluate on this CPU; what cannot be told is 0, or not there.

    Attributes:
        steps: as the program gave them; None where it gave none.
        examples: that these steps read.
        held_out: examples of one pass over the input with nothing dropped.
        missing: examples of that pass that no step read.
        extra: examples that the steps read more often than the pass holds them.
        alike: examples at the end of the pass that are all the same, and like no other: padding, probably.
        counted: how many examples each metric counted.
    """

    steps: int | None
    examples: int = 0
    held_out: int = 0
    missing: int = 0
    extra: int = 0
    alike: int = 0
    counted: dict[str, float] = field(default_factory=dict)


@dataclass
class Ran:
    """What a program did on this CPU.

    Attributes:
        kinds: the classes of the Estimators that it trained or evaluated.
        trained: the step that training reached.
        endless: train was given neither steps nor max_steps.
        both: it called train_and_evaluate.
        bare: this TensorFlow has no Estimator, and the program does not take it from here.
        evaluations: in their order.
        failed: the exception that ended it; "" for none.
    """

    kinds: list[str] = field(default_factory=list)
    trained: int = 0
    endless: bool = False
    both: bool = False
    bare: bool = False
    evaluations: list[Evaluation] = field(default_factory=list)
    failed: str = ""


@dataclass
class Judged:
    """What the dry run says of a program; `failed` is why it could not be judged."""

    use_tpu: bool = False
    found: bool = False  # a resolver finds the TPU
    loop: str = ""
    sentence: str = ""
    ready: bool = False
    findings: list[str] = field(default_factory=list)
    failed: str = ""
    exits: bool = False  # the program ends itself, as where it does not know a flag


class _Counts(v1.train.SessionRunHook):
    """Reads how many examples each metric has counted when an evaluation ends."""

    def __init__(self) -> None:
        self.counted: dict[str, float] = {}

    def begin(self) -> None:
        variables = v1.get_collection(v1.GraphKeys.METRIC_VARIABLES)
        self._variables = {each.op.name: each for each in variables}

    def end(self, session: v1.Session) -> None:
        values = session.run(self._variables)
        for name, value in values.items():
            metric, _, part = name.rpartition("/")
            if part == "count" and f"{metric}/total" in values:
                self.counted[metric] = float(value)


def run(path: Path) -> Ran:
    """Runs the program on this CPU, and notes what it trains and evaluates."""
    ran = Ran(bare=b"lab_utils" not in path.read_bytes() and not tf.__version__.startswith("2.15"))
    base = v1.estimator.Estimator  # whose methods those of the others call
    train, evaluate, both = base.train, base.evaluate, tf.estimator.train_and_evaluate

    def noted_train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        ran.kinds.append(type(self).__name__.removesuffix("V2"))
        ran.endless |= steps is None and max_steps is None
        if not ran.endless:  # else nothing would end it
            train(self, input_fn, hooks, steps, max_steps, saving_listeners)
            ran.trained = max(ran.trained, int(self.get_variable_value("global_step")))
        return self

    def noted_evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        counts, seen = _Counts(), Evaluation(steps)
        result = evaluate(self, input_fn, steps, [*(hooks or []), counts], checkpoint_path, name)
        seen.counted = counts.counted
        ran.kinds.append(type(self).__name__.removesuffix("V2"))
        ran.evaluations.append(seen)
        if steps is not None and isinstance(self, tpu.TPUEstimator):
            _count(seen, input_fn, self.params | {"batch_size": settings(self).eval_batch_size})
        return result

    def noted_both(*arguments: Any, **options: Any) -> Any:
        ran.both = True
        return both(*arguments, **options)

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", [path.name]))
        for owner, name, stand_in in (
            (base, "train", noted_train),
            (base, "evaluate", noted_evaluate),
            (tf.estimator, "train_and_evaluate", noted_both),
            (v1.estimator, "train_and_evaluate", noted_both),
        ):
            stack.enter_context(mock.patch.object(owner, name, stand_in))
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            ran.failed = f"it ends with status {end.code}" if end.code else ""
        except Exception as error:
            ran.failed = failure(error)
    return ran


def _count(seen: Evaluation, input_fn: Callable, params: dict[str, Any]) -> None:
    """Compares the examples that an evaluation read with those of one pass over its input."""
    read = list(_examples(input_fn, params, seen.steps))
    seen.examples = len(read)
    with _whole_passes():
        try:
            whole = list(_examples(input_fn, params, None))
        except tf.errors.InvalidArgumentError:  # of a last batch that does not have the fixed size
            seen.missing = 1
            return
    if len(whole) >= _MOST:
        return
    seen.held_out = len(whole)
    before, after = collections.Counter(whole), collections.Counter(read)
    seen.missing, seen.extra = (before - after).total(), (after - before).total()
    if whole and whole[-before[whole[-1]] :] == before[whole[-1]] * whole[-1:]:
        seen.alike = before[whole[-1]] if before[whole[-1]] > 1 else 0


def _examples(input_fn: Callable, params: dict[str, Any], steps: int | None) -> Iterator[bytes]:
    """The examples of the first `steps` batches of an input function, or of all, each as its bytes."""
    with tf.Graph().as_default() as graph, v1.Session(graph=graph) as session:
        batch = input_fn(params)
        if isinstance(batch, tf.data.Dataset):
            iterator = v1.data.make_initializable_iterator(batch)
            v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            batch = iterator.get_next()
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        parts, number, count = tf.nest.flatten(batch), 0, 0
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while number != steps and count < _MOST:
                arrays = [np.asarray(array) for array in session.run(parts)]
                yield from (
                    b"".join(row) for row in zip(*(map(_bytes, a) for a in arrays), strict=True)
                )
                number, count = number + 1, count + len(arrays[0])


def _bytes(value: Any) -> bytes:
    return np.asarray(value).tobytes()


@contextlib.contextmanager
def _whole_passes() -> Iterator[None]:
    """Context manager: datasets drop no last batch, and nothing repeats without an end."""
    kind = tf.data.Dataset
    batch, repeat = kind.batch, kind.repeat

    def whole_batch(self, batch_size, drop_remainder=False, *arguments, **options):
        return batch(self, batch_size, False, *arguments, **options)

    def once(self, count=None, name=None):
        return self if count in (None, -1) else repeat(self, count)

    with mock.patch.object(kind, "batch", whole_batch), mock.patch.object(kind, "repeat", once):
        yield


def judge(path: Path, flags: list[str], look: bool = False) -> Judged:
    """Runs the program with `flags` up to its training; the dry run judges the Estimator that it made.

    To `look` is to note its settings, without a dry run.
    """
    try:
        target = load_main(str(path), flags, CORES)
    except (Exception, CannotJudge) as error:
        return Judged(failed=str(error), exits=isinstance(error.__cause__, SystemExit))
    if not isinstance(target.subject, tpu.TPUEstimator):
        return Judged(failed=f"it trains a {type(target.subject).__name__}, not a TPUEstimator")
    made = settings(target.subject)
    judged = Judged(made.use_tpu, made.config.cluster is not None)
    judged.loop = str(made.config.tpu_config.iterations_per_loop)
    if look:
        return judged
    options = {"progress": False, "observed": target.observed, **target.options}
    report = dry_run(target.subject, target.data, TOPOLOGY, **options)
    judged.ready, judged.sentence = report.ready, report.verdict_sentence
    told = [each for each in report.findings if each.severity != "note"]
    judged.findings = [f"{each.rule} at {each.where}: {each.why} {each.fix}" for each in told]
    return judged


def main(program: str, notes: str, *jobs: str) -> None:
    """Does the jobs, and writes the notes by job after each of them."""
    here, path, noted = Path.cwd(), Path(program), {}
    for job in jobs:
        os.chdir(here)  # a program may go elsewhere
        how, *flags = job.split()
        made = run(path) if how == "run" else judge(path, flags, look=how == "look")
        noted[job] = asdict(made)
        files.write(here / notes, json.dumps(noted))
        if made.failed:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
