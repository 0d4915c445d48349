"""The checks of lab 12, on real TPUs: what stands before the first step, what it costs, and a report."""

import math
import re
from collections.abc import Callable
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect
from lab_utils.runtime.verify.report import checks

_LIBRARY = "/usr/lib/python3/libtpu/libtpu.so"
_NEW = ("v5e", "v5p", "v6e")
_STREAM = "is driven by the stream executor, where no PJRT variable belongs"


@todo(
    "12a",
    hints=(
        "On which chips does this belong? Leave at once on others.",
        "A dict has a method that sets a key only where there is none. Values in an environment are text.",
    ),
    why="What the user set stays, and the stream executor's chips get nothing.",
    slips={
        (
            "environ.setdefault(name, value)",
            "environ[name] = value",
        ): "The user had set PJRT_DEVICE=CPU, "
        "and yours overwrote it: setdefault leaves what is there.",
        (
            "environ.setdefault(name, value)",
            "environ[name] = environ.get(name) or value",
        ): "A variable that the user has set stays as it is, also where it is empty.",
        ('"PJRT_DEVICE": "TPU",', ""): "PJRT_DEVICE is not set.",
        (
            '"PJRT_DEVICE": "TPU"',
            '"PJRT_DEVICE": "tpu"',
        ): "PJRT_DEVICE should be 'TPU', in capitals.",
        (
            '"TF_PLUGGABLE_DEVICE_LIBRARY_PATH": library',
            '"TPU_LIBRARY_PATH": library',
        ): "That is not the "
        "name under which TensorFlow looks for the library: TF_PLUGGABLE_DEVICE_LIBRARY_PATH.",
    },
)
def environment(prepare: Callable) -> Cases:
    """The PJRT variables where they belong, and nothing overwritten."""
    for chip, before, told in (
        ("v5e", {"HOME": "/root"}, "The environment for a v5e"),
        ("v5e", {"PJRT_DEVICE": "CPU"}, "On a v5e the user had set PJRT_DEVICE=CPU, and it stays"),
        ("v5p", {}, "The environment for a v5p"),
        ("v6e", {}, "The environment for a v6e"),
        ("v2", {}, f"A v2 {_STREAM}"),
        ("v3", {}, f"A v3 {_STREAM}"),
        ("v4", {}, f"A v4 {_STREAM}"),
        (None, {"HOME": "/root"}, "Without a chip nothing has to be set"),
        (
            "v2",
            {"PJRT_DEVICE": "CPU"},
            "A variable that the user has set stays as it is, on a v2 too",
        ),
        (
            "v5e",
            {"PJRT_DEVICE": ""},
            "A variable that the user has set stays as it is, an empty one too",
        ),
    ):
        environ: dict[str, Any] = dict(before)
        prepare(environ, chip, _LIBRARY)
        wrong = [name for name, value in environ.items() if not isinstance(value, str)]
        expect(
            not wrong,
            f"The value of {', '.join(wrong)} must be a string: os.environ takes strings alone.",
        )
        c_api = environ.get("NEXT_PLUGGABLE_DEVICE_USE_C_API", "")
        if c_api.lower() in ("true", "1"):
            environ["NEXT_PLUGGABLE_DEVICE_USE_C_API"] = "true"
        yield told, environ
    return "Set before the import, where it belongs, and never over the user's own."


@todo(
    "12b",
    hints=(
        "Which API does not ask for the chip? Which chips do not ask for the Python?",
        "What is left after these depends on python alone; tuples compare part by part.",
    ),
    why="The table's rows, from the widest to the narrowest.",
    slips={
        (
            " libtpu==0.0.21.1",
            "",
        ): "libtpu is to be pinned too: with the newest one, importing TensorFlow "
        "ends the process.",
        (
            " libtpu==0.0.10",
            "",
        ): "libtpu is to be pinned too: with the newest one, importing TensorFlow "
        "ends the process.",
        (
            "if python >= (3, 13):",
            "if True:",
        ): "With Python 3.11 and 3.12 goes the safest pair known, that of 2.19.1.",
    },
)
def choice(choose: Callable) -> Cases:
    """What to install for a chip and an API; None where nothing is known to work."""
    for chip in ("v2", "v3", "v4"):
        for api in ("TPUEstimator", "TPUStrategy"):
            if (chip, api) != ("v4", "TPUEstimator"):  # nobody has reported it: both answers stand
                told = f"{api} on a {chip} needs an image: no wheel on PyPI has it"
                yield told, _chosen(choose, chip, api, (3, 10))
    for chip in _NEW:
        told = f"TPUEstimator on a {chip} is not known to work with anything"
        yield told, _chosen(choose, chip, "TPUEstimator", (3, 12))
        for python, why in (
            ((3, 12), ""),
            ((3, 11), ""),
            ((3, 13), ", for which 2.19.1 has no wheel"),
        ):
            found = _chosen(choose, chip, "TPUStrategy", python)
            if not _is_official(found):
                told = f"TPUStrategy on a {chip} with Python {python[0]}.{python[1]}{why}"
                yield (
                    f"{told} (an image tpu-vm-tf-x.y.z-pjrt from 2.15.0 on will do as well)",
                    found,
                )
    for api in ("TPUStrategy", "TPUEstimator"):
        yield f"No TensorFlow runs on TPU7x, with {api}", _chosen(choose, "tpu7x", api, (3, 12))
    for chip in ("v2", "v3", "v4", *_NEW, "tpu7x"):
        found = _chosen(choose, chip, "JAX", (3, 12))
        right = found is not None and all(each.startswith("jax[tpu]") for each in found.split())
        yield f"JAX on a {chip} is jax[tpu]", "jax[tpu]" if right else found
    return "The pairs that import, the image, and None where nothing is known to work."


def _is_official(found: str | None) -> bool:
    """Whether that is one of Google's images for v5e, v5p and v6e: tpu-vm-tf-x.y.z[-pod]-pjrt, 2.15.0 or later."""
    named = re.fullmatch(r"tpu-vm-tf-(\d+)\.(\d+)\.\d+(-pod)?-pjrt", found or "")
    return named is not None and (int(named[1]), int(named[2])) >= (2, 15)


def _chosen(choose: Callable, chip: str, api: str, python: tuple[int, int]) -> str | None:
    """What is to be installed, in an order of its own."""
    found = choose(chip, api, python)
    if found is None:
        return None
    expect(
        isinstance(found, str),
        f"choose should return text or None; for {chip} and {api} yours returns {a(found)}.",
    )
    parts = found.removeprefix("pip install ").split()
    return " ".join(sorted((each.strip("'\"") for each in parts), reverse=True))


@todo(
    "12c",
    hints=(
        "Which statement of Python runs its block whatever happened before it?",
        "Where does create stand: inside what is guarded, or before it? A command that failed may still have made "
        "the machine.",
        "What does the caller have to hear: the work's result, its error, or the deletion's?",
    ),
    why="A machine costs until it is deleted; finally runs after a return, an error and a Stop alike.",
    slips={
        (
            "finally:\n        run(delete)",
            "finally:\n        pass",
        ): "There is no deletion: you pay until there is one.",
        ("run(create)\n        ", ""): "The machine is never created: run(create).",
        ("return work()", "work()"): "rent should return what work() returned.",
        (
            "try:\n        run(create)\n",
            "run(create)\n    try:\n",
        ): "When create fails, the machine may still be "
        "there (a timeout): delete it in that case too.",
    },
)
def start_and_end(rent: Callable) -> Cases:
    """The machine is deleted once, last, after success, errors and a Stop; errors and results come through."""
    stop = "somebody presses Stop (KeyboardInterrupt is not an Exception)"
    for when, fails in (
        ("nothing fails", {}),
        ("the work raises an exception", {"work": ValueError("work")}),
        (stop, {"work": KeyboardInterrupt("work")}),
        ("the work calls sys.exit", {"work": SystemExit("work")}),
        ("create fails, perhaps by a timeout", {"create": RuntimeError("create")}),
        ("the deletion fails, and you go on paying", {"delete": RuntimeError("delete")}),
    ):
        done, found, error = _rented(rent, **fails)
        yield f"When {when}, the machine is deleted in the end, once", done
        heard = fails.get(
            "work", error
        )  # an error of create or of the deletion may become another one
        told = f"When {when}, the caller has to hear of it" if fails else "What rent returns"
        yield told, "the error" if error and error is heard else found
    return "Created, used, and deleted in every case; results and errors come through."


def _rented(rent: Callable, **fails: BaseException) -> tuple[list[str], Any, BaseException | None]:
    """What was done in which order, what rent returned, and what it raised, where those steps fail so."""
    done: list[str] = []

    def does(name: str) -> str:
        done.append(name)
        if name in fails:
            raise fails[name]
        return "result"

    def run(command: list[str]) -> None:
        fits = command in (["create"], ["delete"])
        expect(fits, f"run() gets one of the two commands as it is; yours: {command}.")
        does(command[0])

    try:
        return done, rent(run, ["create"], ["delete"], lambda: does("work")), None
    except BaseException as error:
        if isinstance(error, Wrong | NotImplementedError) and error not in fails.values():
            raise
        return done, None, error


@todo(
    "12d",
    hints=(
        "Bring steps and minutes into one unit first: the price is for an hour.",
        "Who is paid while the machine waits, and for how many chips?",
    ),
    why="A machine costs for as long as it is there, whatever it does.",
    slips={
        (
            "hours * chips * price",
            "hours * price",
        ): "The price is for a chip and an hour: four chips cost four times as much.",
        (" + other_minutes / 60", ""): "The machine costs until it is deleted, at work or not.",
        (
            "other_minutes / 60",
            "other_minutes",
        ): "The other minutes are not hours: 30 are half an hour.",
        (
            "steps * step_seconds / 3600",
            "step_seconds / 3600",
        ): "Twice the steps should take twice the time; yours does not look at steps.",
        (
            "steps * step_seconds / 3600",
            "steps * step_seconds / 60",
        ): "The price is for an hour, of 3,600 seconds.",
    },
)
def money(bill: Callable) -> Cases:
    """Hours of the machine, times chips, times the price."""
    for told, *inputs in (
        ("7,200 steps of half a second are one hour; on four chips at 2.00 an hour", 0.5, 7200, 4, 2.0, 0),
        ("14,400 such steps", 0.5, 14400, 4, 2.0, 0),
        ("30 minutes without a step at 6.00 an hour, for the machine costs until it is deleted, at work or not",
         0.5, 0, 1, 6.0, 30),
        ("One hour of steps and one of waiting, on eight chips at 2.00", 0.5, 7200, 8, 2.0, 60),
        ("1,500 steps of 1.5 ms on four chips at 1.00, not rounded", 1.5e-3, 1500, 4, 1.0, 0),
    ):  # fmt: skip
        yield told, bill(*inputs)
    return "Hours of the machine, at work or not, times chips, times the price."


@todo(
    "12e",
    hints=(
        "Of an hour that you pay for, which part is useful?",
        "What does an hour of useful work cost then? And what if nothing of the hour is left?",
    ),
    why="You pay for the hour and use a part of it: divide by that part.",
    slips={
        (
            "useful > 0 and ",
            "",
        ): "Interruptions eat more than the hour: the job never ends, at any price.",
        (
            "spot / useful < full",
            "spot < full",
        ): "Where half of each hour is lost, an hour of work costs 1.80, not 0.90.",
        (
            "spot / useful < full",
            "spot * (2 - useful) < full",
        ): "What is lost has to be done again on the "
        "same machine: an hour of work costs 0.60 / 0.5 = 1.20, not 0.60 times 1.5.",
        (
            "interruptions * lost_minutes / 60",
            "interruptions * lost_minutes",
        ): "30 lost minutes are half an hour: an hour of work costs 0.80.",
    },
)
def spot(spot_pays: Callable) -> Cases:
    """The price over the useful part of an hour, against the full price."""
    for told, *inputs in (
        ("Without interruptions 0.40 is less than 1.00", 0.4, 1.0, 0, 10),
        ("A spot machine at 1.20 is dearer than one at 1.00 from the start", 1.2, 1.0, 0, 10),
        ("Half of each hour is lost, so an hour of work costs 1.80, not 0.90", 0.9, 1.0, 1, 30),
        ("Half of each hour is lost, so an hour of work costs 0.80", 0.4, 1.0, 1, 30),
        ("Twice 15 minutes are lost, so an hour of work costs 0.60 / 0.5 = 1.20", 0.6, 1.0, 2, 15),
        ("Interruptions eat more than the hour: the job never ends, at any price", 0.1, 1.0, 4, 30),
        ("Interruptions eat the whole hour: the job never ends, at any price", 0.1, 1.0, 2, 30),
        ("Both cost 1.00 for an hour of work: spot is not cheaper", 0.5, 1.0, 1, 30),
    ):
        found = spot_pays(*inputs)
        is_bool = type(found).__name__ in ("bool", "bool_")
        expect(is_bool, f"spot_pays should return True or False; yours returns {a(found)}.")
        yield told, bool(found)
    return "An hour of useful work is what is compared."


@todo(
    "12f",
    hints=(
        "Four questions in the order of the list; the first one that is answered with yes decides.",
        "NaN is never smaller than anything; math.isfinite finds it anywhere in the list.",
    ),
    why="A step that learns nothing is broken anywhere; a time means something on a chip only.",
)
def verdict(reading: Callable) -> Cases:
    """Four kinds of report, told apart."""
    for told, report in (
        ("A step of 3 ms that needs at least 1.5 ms is a chip at work: a bound is not a target", {}),
        ("The loss rose: whatever ran, it did not learn", {"losses": [1.8, 1.9]}),
        ("A loss on the way was infinite: the last one alone does not show it", {"losses": [1.8, math.inf, 0.5]}),
        ("The last loss is not a number", {"losses": [1.8, math.nan]}),
        ("A loss on the way was no number", {"losses": [1.8, math.nan, 0.5]}),
        ("The last loss is not below the first: they are equal", {"losses": [1.8, 1.8]}),
        ("The last loss is above the first, whatever came between", {"losses": [1.8, 0.5, 1.9]}),
        ("The last loss is below the first: it may rise on the way", {"losses": [1.8, 2.5, 0.5]}),
        ("The platform is asked for before the clock", {"platform": "cpu", "step": 1.0}),
        ("The step takes its least time, and not less", {"step": 1.5}),
        ("This ran on a CPU", {"platform": "cpu", "step": 80.0}),
        ("This ran on a GPU, and the least time is a TPU's", {"platform": "gpu"}),
        ("A step that does not learn is broken on any machine", {"platform": "cpu", "losses": [1.8, 1.9]}),
        ("The step took less than the least time, which cannot be (the first step, with all that starts up, is not "
         "the one to look at)", {"step": 1.0, "first": 4.0}),
        ("The step took less than the least time that the compiler's bytes allow", {"step": 1.0, "first": 0.9}),
    ):  # fmt: skip
        said = reading(_report(**report))
        answers = ("broken", "no chip", "clock", "reached")
        expect(
            said in answers,
            f"reading should return one of {', '.join(answers)}; yours returns {said!r}.",
        )
        yield told, said
    return "It learns, on a chip, in a time that can be."


def _report(
    platform: str = "tpu", step: float = 3.0, first: float = 9.0, losses: tuple | list = (1.8, 0.5)
) -> dict[str, Any]:
    figures = [
        {"name": name, "value": value, "unit": unit, "kind": "made up"}
        for name, value, unit in (
            ("compilation", 12.0, "s"),
            ("first step", first, "ms"),
            ("step", step, "ms"),
            ("least time of the step, v5e", 1.5, "ms"),
        )
    ]
    made = {"platform": platform, "chip": "made up", "losses": list(losses), "figures": figures}
    return made | {"checks": checks(made)}
