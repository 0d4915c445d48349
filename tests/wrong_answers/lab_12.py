"""What learners get wrong in lab 12, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_10B = r"""
def choose(chip, api, python):
    if api == "JAX":
        return "jax[tpu]"
    if chip in ("v2", "v3", "v4"):
        return "tpu-vm-tf-2.15.0-se"
    if api == "TPUStrategy" and chip in ("v5e", "v5p", "v6e"):
        if tuple(python[:2]) in ((3, 11), (3, 12)):
            return "tensorflow-tpu==2.19.1 libtpu==0.0.10"
        if tuple(python[:2]) == (3, 13):
            return "tensorflow-tpu==2.20.0 libtpu==0.0.21.1"
    return None
"""

_10E = r"""
def reading(report):
    losses = report["losses"]
    if not all(math.isfinite(loss) for loss in losses) or not losses[-1] < losses[0]:
        return "broken"
    if report["platform"] != "tpu":
        return "no chip"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    return "reached"
"""

ANSWERS = {
    "12a": [
        Mutant("if chip in PJRT_CHIPS:", "if True:", "stream executor"),
        Mutant("if chip in PJRT_CHIPS:", 'if chip == "v5e":', "v5p"),
        Mutant(
            '"NEXT_PLUGGABLE_DEVICE_USE_C_API": "true"',
            '"NEXT_PLUGGABLE_DEVICE_USE_C_API": True',
            "takes strings alone",
        ),
        # Setdefault
        Right(r"""
def prepare(environ, chip, library):
    if chip not in PJRT_CHIPS:
        return
    for name, value in {"PJRT_DEVICE": "TPU", "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": str(library)}.items():
        environ.setdefault(name, value)
"""),
        # Merge
        Right(r"""
def prepare(environ, chip, library):
    if chip in PJRT_CHIPS:
        wanted = dict(PJRT_DEVICE="TPU", NEXT_PLUGGABLE_DEVICE_USE_C_API="true", TF_PLUGGABLE_DEVICE_LIBRARY_PATH=library)
        environ.update({k: v for k, v in wanted.items() if k not in environ})
"""),
        # Helper, returns environ
        Right(r"""
def _set_once(environ, name, value):
    if environ.get(name) is None:
        environ[name] = value
def prepare(environ, chip, library):
    if chip in ("v5e", "v5p", "v6e"):
        _set_once(environ, "PJRT_DEVICE", "TPU")
        _set_once(environ, "NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
        _set_once(environ, "TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
    return environ
"""),
        # True with a capital
        Right(r"""
def prepare(environ, chip, library):
    if chip in PJRT_CHIPS:
        environ.setdefault("PJRT_DEVICE", "TPU")
        environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "True")
        environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
"""),
        # Writes over
        Wrong(
            r"""
def prepare(environ, chip, library):
    if chip in PJRT_CHIPS:
        environ["PJRT_DEVICE"] = "TPU"
        environ["NEXT_PLUGGABLE_DEVICE_USE_C_API"] = "true"
        environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] = library
""",
            "The user had set PJRT_DEVICE=CPU, and yours overwrote it",
        ),
        # On every chip
        Wrong(
            r"""
def prepare(environ, chip, library):
    environ.setdefault("PJRT_DEVICE", "TPU")
    environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
    environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
""",
            "where no PJRT variable belongs",
        ),
        # On any chip but None
        Wrong(
            r"""
def prepare(environ, chip, library):
    if chip:
        environ.setdefault("PJRT_DEVICE", "TPU")
        environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
        environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
""",
            "where no PJRT variable belongs",
        ),
        # True, no text
        Wrong(
            r"""
def prepare(environ, chip, library):
    if chip in PJRT_CHIPS:
        environ.setdefault("PJRT_DEVICE", "TPU")
        environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", True)
        environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
""",
            "The value of NEXT_PLUGGABLE_DEVICE_USE_C_API must be a string",
        ),
        # Os.environ, not what was given
        Wrong(
            r"""
import os
def prepare(environ, chip, library):
    if chip in PJRT_CHIPS:
        os.environ.setdefault("PJRT_DEVICE", "TPU")
        os.environ.setdefault("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true")
        os.environ.setdefault("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)
""",
            "at ['PJRT_DEVICE'] expected 'TPU', yours gives nothing",
        ),
        # An empty text counts as not set
        Wrong(
            r"""
def prepare(environ, chip, library):
    if chip in PJRT_CHIPS:
        for name, value in (("PJRT_DEVICE", "TPU"), ("NEXT_PLUGGABLE_DEVICE_USE_C_API", "true"), ("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", library)):
            environ[name] = environ.get(name) or value
""",
            "A variable that the user has set stays as it is",
        ),
        # Clears for older chips
        Wrong(
            r"""
def prepare(environ, chip, library):
    names = {"PJRT_DEVICE": "TPU", "NEXT_PLUGGABLE_DEVICE_USE_C_API": "true", "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": library}
    for name, value in names.items():
        if chip in PJRT_CHIPS:
            environ.setdefault(name, value)
        else:
            environ.pop(name, None)
""",
            "A variable that the user has set stays as it is, on a v2 too",
        ),
    ],
    "12b": [
        Mutant(
            'if api == "TPUEstimator" or chip == "tpu7x":',
            'if chip == "tpu7x":',
            "TPUEstimator on a v5e",
        ),
        Mutant(
            'if api == "TPUEstimator" or chip == "tpu7x":', 'if api == "TPUEstimator":', "TPU7x"
        ),
        Mutant("if python >= (3, 13):", "if False:", "3.13"),
        Mutant('if api == "JAX":', 'if api == "JAX" and chip == "v5e":', "JAX"),
        Mutant('return "tpu-vm-tf-2.15.0-se"', 'return "tensorflow==2.15.0"', "image"),
        # The one that the wrong ones below are made from
        Right(_10B),
        # Dict
        Right(r"""
def choose(chip, api, python):
    table = {}
    for c in ("v2", "v3", "v4"):
        table[c, "TPUEstimator"] = table[c, "TPUStrategy"] = "tpu-vm-tf-2.15.0-se"
    for c in ("v5e", "v5p", "v6e"):
        table[c, "TPUStrategy"] = {(3, 11): "tensorflow-tpu==2.19.1 libtpu==0.0.10", (3, 12): "tensorflow-tpu==2.19.1 libtpu==0.0.10", (3, 13): "tensorflow-tpu==2.20.0 libtpu==0.0.21.1"}.get(python)
    return "jax[tpu]" if api == "JAX" else table.get((chip, api))
"""),
        # Google's images for the newer chips
        Right(r"""
def choose(chip, api, python):
    if api == "JAX":
        return "jax[tpu]"
    if chip in ("v2", "v3", "v4"):
        return "tpu-vm-tf-2.15.0-se"
    if chip in ("v5e", "v5p", "v6e") and api == "TPUStrategy":
        return "tpu-vm-tf-2.18.0-pjrt"
"""),
        # An image of before PJRT
        Wrong(
            r"""
def choose(chip, api, python):
    if api == "JAX":
        return "jax[tpu]"
    if chip in ("v2", "v3", "v4"):
        return "tpu-vm-tf-2.15.0-se"
    if chip in ("v5e", "v5p", "v6e") and api == "TPUStrategy":
        return "tpu-vm-tf-2.14.1-pjrt"
""",
            "from 2.15.0 on will do as well",
        ),
        # v4 forgotten
        Mutant('chip in ("v2", "v3", "v4")', 'chip in ("v2", "v3")', "on a v4 needs an image"),
        # Match
        Right(r"""
def choose(chip, api, python):
    match chip, api, python:
        case _, "JAX", _:
            return "jax[tpu]"
        case "v2" | "v3" | "v4", "TPUEstimator" | "TPUStrategy", _:
            return "tpu-vm-tf-2.15.0-se"
        case "v5e" | "v5p" | "v6e", "TPUStrategy", (3, 11) | (3, 12):
            return "libtpu==0.0.10 tensorflow-tpu==2.19.1"
        case "v5e" | "v5p" | "v6e", "TPUStrategy", (3, 13):
            return "libtpu==0.0.21.1 tensorflow-tpu==2.20.0"
"""),
        # The table as a list of rows
        Right(r"""
ROWS = [(("v2", "v3", "v4"), ("TPUEstimator", "TPUStrategy"), None, "tpu-vm-tf-2.15.0-se"), (PJRT_CHIPS, ("TPUStrategy",), ((3, 11), (3, 12)), "tensorflow-tpu==2.19.1 libtpu==0.0.10"),
        (PJRT_CHIPS, ("TPUStrategy",), ((3, 13),), "tensorflow-tpu==2.20.0 libtpu==0.0.21.1"), (PJRT_CHIPS + ("v2", "v3", "v4", "tpu7x"), ("JAX",), None, "jax[tpu]")]
def choose(chip, api, python):
    return next((take for chips, apis, pythons, take in ROWS if chip in chips and api in apis and (pythons is None or python in pythons)), None)
"""),
        # 3.13 and later
        Right(_10B.replace("tuple(python[:2]) == (3, 13)", "tuple(python[:2]) >= (3, 13)")),
        # 3.12 and earlier
        Right(
            _10B.replace("tuple(python[:2]) in ((3, 11), (3, 12))", "tuple(python[:2]) <= (3, 12)")
        ),
        # TPUEstimator on v5e
        Wrong(
            _10B.replace('api == "TPUStrategy" and ', ""),
            "is not known to work with anything",
        ),
        # TPU7x with TPUStrategy
        Wrong(
            _10B.replace('("v5e", "v5p", "v6e")', '("v5e", "v5p", "v6e", "tpu7x")'),
            "No TensorFlow runs on TPU7x, with TPUStrategy",
        ),
        # V6e forgotten
        Wrong(_10B.replace('("v5e", "v5p", "v6e")', '("v5e", "v5p")'), "on a v6e with Python 3.12"),
        # The pairs swapped
        Wrong(
            _10B.replace("in ((3, 11), (3, 12))", "== (3, 13)").replace(
                '== (3, 13):\n            return "tensorflow-tpu==2.20',
                'in ((3, 11), (3, 12)):\n            return "tensorflow-tpu==2.20',
            ),
            "expected 'tensorflow-tpu==2.19.1 libtpu==0.0.10', yours",
        ),
        # Libtpu left out
        Wrong(
            _10B.replace("tensorflow-tpu==2.19.1 libtpu==0.0.10", "tensorflow-tpu==2.19.1"),
            "libtpu is to be pinned too: with the newest one, importing",
        ),
        # JAX on TPU7x not known
        Wrong(
            _10B.replace('if api == "JAX":', 'if api == "JAX" and chip != "tpu7x":'),
            "is jax[tpu]: expected 'jax[tpu]', yours gives None",
        ),
        # JAX not on v2
        Wrong(
            _10B.replace(
                'if api == "JAX":', 'if api == "JAX" and chip in PJRT_CHIPS + ("tpu7x",):'
            ),
            "is jax[tpu]: expected 'jax[tpu]', yours gives 'tpu-vm",
        ),
        # The image for TPUEstimator alone
        Wrong(
            _10B.replace(
                'if chip in ("v2", "v3", "v4"):',
                'if chip in ("v2", "v3", "v4") and api == "TPUEstimator":',
            ),
            "no wheel on PyPI has it",
        ),
        # "nothing" as a text
        Wrong(
            _10B.replace("return None", 'return "nothing"'),
            "is not known to work with anything",
        ),
        # A list of requirements
        Wrong(
            _10B.replace(
                'return "tensorflow-tpu==2.19.1 libtpu==0.0.10"',
                'return ["tensorflow-tpu==2.19.1", "libtpu==0.0.10"]',
            ),
            "choose should return text or None; for v",
        ),
    ],
    "12c": [
        Mutant(
            "    try:\n        run(create)\n        return work()\n    finally:\n        run(delete)",
            "    run(create)\n    found = work()\n    run(delete)\n    return found",
            "the work raises an exception, the machine is deleted",
        ),
        # Errors caught by kind: a Stop is none of them
        Wrong(
            r"""
def rent(run, create, delete, work):
    try:
        run(create)
        found = work()
    except Exception:
        run(delete)
        raise
    run(delete)
    return found
""",
            "somebody presses Stop",
        ),
        # The error is swallowed
        Wrong(
            r"""
def rent(run, create, delete, work):
    try:
        run(create)
        return work()
    except Exception as error:
        print(error)
    finally:
        run(delete)
""",
            "the caller has to hear of it",
        ),
        # A return in finally swallows as well
        Wrong(
            r"""
def rent(run, create, delete, work):
    found = None
    try:
        run(create)
        found = work()
    finally:
        run(delete)
        return found
""",
            "the caller has to hear of it",
        ),
        # Create outside
        Wrong(
            r"""
def rent(run, create, delete, work):
    run(create)
    try:
        return work()
    finally:
        run(delete)
""",
            "a timeout",
        ),
        # A deletion whose failure is not heard
        Wrong(
            r"""
def rent(run, create, delete, work):
    try:
        run(create)
        return work()
    finally:
        try:
            run(delete)
        except Exception:
            pass
""",
            "you go on paying",
        ),
        # Deleted twice
        Wrong(
            r"""
def rent(run, create, delete, work):
    try:
        run(create)
        return work()
    except BaseException:
        run(delete)
        raise
    finally:
        run(delete)
""",
            "'delete', 'delete']",
        ),
        # A context manager
        Right(
            r"""
import contextlib
def rent(run, create, delete, work):
    with contextlib.ExitStack() as stack:
        stack.callback(run, delete)
        run(create)
        return work()
"""
        ),
        # Every error named
        Right(
            r"""
def rent(run, create, delete, work):
    try:
        run(create)
        result = work()
    except BaseException:
        run(delete)
        raise
    run(delete)
    return result
"""
        ),
        # A generator-based context manager
        Right(
            r"""
from contextlib import contextmanager
@contextmanager
def machine(run, create, delete):
    try:
        run(create)
        yield
    finally:
        run(delete)
def rent(run, create, delete, work):
    with machine(run, create, delete):
        return work()
"""
        ),
    ],
    "12d": [
        # Steps
        Right(r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    training = step_seconds * steps / 3600
    around = other_minutes / 60
    return (training + around) * chips * price
"""),
        # Lambda, minutes
        Right(r"""
bill = lambda step_seconds, steps, chips, price, other_minutes: price * chips * (other_minutes + step_seconds * steps / 60) / 60
"""),
        # Helper, datetime
        Right(r"""
import datetime
def hours(**kwargs):
    return datetime.timedelta(**kwargs).total_seconds() / 3600
def bill(step_seconds, steps, chips, price, other_minutes):
    total = hours(seconds=step_seconds * steps, minutes=other_minutes)
    return total * chips * price
"""),
        # Minutes as hours
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return (step_seconds * steps / 3600 + other_minutes) * chips * price
""",
            "The other minutes are not hours",
        ),
        # One chip
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return (step_seconds * steps / 3600 + other_minutes / 60) * price
""",
            "The price is for a chip and an hour: four chips cost four",
        ),
        # Minutes without chips
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return step_seconds * steps / 3600 * chips * price + other_minutes / 60 * price
""",
            "One hour of steps and one of waiting, on eight chips at",
        ),
        # Training alone
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return step_seconds * steps / 3600 * chips * price
""",
            "The machine costs until it is deleted, at work or not",
        ),
        # Hours rounded up
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return math.ceil(step_seconds * steps / 3600 + other_minutes / 60) * chips * price
""",
            "the machine costs until it is deleted, at work or not",
        ),
        # Seconds as hours
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return (step_seconds * steps + other_minutes * 60) * chips * price
""",
            "steps of half a second are one hour",
        ),
        # Rounded to cents
        Wrong(
            r"""
def bill(step_seconds, steps, chips, price, other_minutes):
    return round((step_seconds * steps / 3600 + other_minutes / 60) * chips * price, 2)
""",
            "not rounded",
        ),
    ],
    "12e": [
        Mutant("spot / useful < full", "spot / useful <= full", "not cheaper"),
        Mutant("spot / useful < full", "spot * useful < full", "1.80"),
        # Lost time added instead of divided by
        Wrong(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    return spot * (1 + interruptions * lost_minutes / 60) < full
""",
            "0.60 / 0.5 = 1.20",
        ),
        # The price itself
        Wrong(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    return spot / (1 - interruptions * lost_minutes / 60 + 1e-9)
""",
            "True or False",
        ),
        # In minutes
        Right(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    left = 60 - interruptions * lost_minutes
    if left <= 0:
        return False
    return 60 * spot < full * left
"""
        ),
        # By infinity
        Right(
            r"""
def spot_pays(spot, full, interruptions, lost_minutes):
    useful = max(0.0, 1 - interruptions * lost_minutes / 60)
    price = spot / useful if useful else math.inf
    return price < full
"""
        ),
    ],
    "12f": [
        Mutant("not all(map(math.isfinite, losses)) or ", "", "infinite"),
        Mutant(" or losses[-1] >= losses[0]", "", "rose"),
        Mutant('report["platform"] != "tpu"', 'report["platform"] == "cpu"', "GPU"),
        Mutant('figure(report, "step") < figure(report, "least time")', "False", "least time"),
        Mutant(
            'figure(report, "step") < figure(report, "least time")',
            'figure(report, "step") > figure(report, "least time")',
            "bound",
        ),
        Mutant('figure(report, "step") <', 'figure(report, "first step") <', "first step"),
        Mutant('return "reached"', "return True", "one of"),
        # The one that the wrong ones below are made from
        Right(_10E),
        # Numpy, conditional chain
        Right(r"""
import numpy as np
def reading(report):
    losses = np.asarray(report["losses"], float)
    broken = not np.isfinite(losses).all() or losses[-1] >= losses[0]
    return ("broken" if broken else "no chip" if report["platform"] != "tpu"
            else "clock" if figure(report, "step") < figure(report, "least time") else "reached")
"""),
        # Helpers
        Right(r"""
def _falls(losses):
    return all(map(math.isfinite, losses)) and losses[0] > losses[-1]
def _too_fast(report):
    step, least = (figure(report, name) for name in ("step", "least time"))
    return step < least
def reading(report):
    for said, found in (("broken", lambda: not _falls(report["losses"])), ("no chip", lambda: report.get("platform") != "tpu"), ("clock", lambda: _too_fast(report))):
        if found():
            return said
    return "reached"
"""),
        # Any, early return
        Right(r"""
def reading(report):
    first, *_, last = report["losses"]
    if any(math.isnan(x) or math.isinf(x) for x in report["losses"]):
        return "broken"
    if last >= first:
        return "broken"
    if not report["platform"] == "tpu":
        return "no chip"
    if figure(report, "least time") > figure(report, "step"):
        return "clock"
    else:
        return "reached"
"""),
        # Platform first
        Wrong(
            r"""
def reading(report):
    losses = report["losses"]
    if report["platform"] != "tpu":
        return "no chip"
    if not all(math.isfinite(loss) for loss in losses) or not losses[-1] < losses[0]:
        return "broken"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    return "reached"
""",
            "A step that does not learn is broken on any machine",
        ),
        # Clock before the platform
        Wrong(
            r"""
def reading(report):
    losses = report["losses"]
    if not all(math.isfinite(loss) for loss in losses) or not losses[-1] < losses[0]:
        return "broken"
    if figure(report, "step") < figure(report, "least time"):
        return "clock"
    if report["platform"] != "tpu":
        return "no chip"
    return "reached"
""",
            "The platform is asked for before the clock",
        ),
        # Nan alone
        Wrong(
            _10E.replace("math.isfinite(loss) for", "not math.isnan(loss) for"),
            "A loss on the way was infinite: the last one alone does",
        ),
        # Inf alone
        Wrong(
            _10E.replace("math.isfinite(loss) for", "not math.isinf(loss) for"),
            "A loss on the way was no number",
        ),
        # The last loss's finiteness alone
        Wrong(
            _10E.replace(
                "not all(math.isfinite(loss) for loss in losses)", "not math.isfinite(losses[-1])"
            ),
            "A loss on the way was infinite: the last one alone does",
        ),
        # Finite only where all are not
        Wrong(
            _10E.replace("not all(math", "not any(math"),
            "A loss on the way was infinite: the last one alone does",
        ),
        # Equal losses pass
        Wrong(
            _10E.replace("not losses[-1] < losses[0]", "losses[-1] > losses[0]"),
            "The last loss is not below the first: they are equal",
        ),
        # Must fall at every step
        Wrong(
            _10E.replace(
                "not losses[-1] < losses[0]", "not all(b < a for a, b in zip(losses, losses[1:]))"
            ),
            "The last loss is below the first: it may rise on the way",
        ),
        # Slower than 10 times is the clock
        Wrong(
            _10E.replace(
                'figure(report, "step") < figure(report, "least time")',
                'figure(report, "step") <= figure(report, "least time")',
            ),
            "The step takes its least time, and not less",
        ),
        # Compares the lowest
        Wrong(
            _10E.replace("losses[-1] < losses[0]", "min(losses) < losses[0]"),
            "The last loss is above the first, whatever came between",
        ),
    ],
}
