"""What the command is to judge: the function or the program that its arguments name."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from lab_utils.common import command, loading, source
from lab_utils.dry_run.frontends.cells import CannotJudge
from lab_utils.dry_run.records import Mode

if TYPE_CHECKING:
    from lab_utils.dry_run.frontends.calls import Recording
    from lab_utils.dry_run.workload import Observed


class Target(NamedTuple):
    """What the command is to judge; `observed` is what a run of the program has shown besides."""

    subject: object
    data: object
    options: dict
    observed: "Observed | None" = None


def load(target: str) -> Target:
    """Calls the function that `target` names: MODULE:FUNCTION or FILE.py:FUNCTION.

    Raises:
        CannotJudge: the module or function is not there or raises, or returns something else.
    """
    module_name, _, function_name = target.rpartition(":")
    if not module_name or not function_name:
        raise CannotJudge("name it as MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        module = _module(module_name)
        _default_flags()
        function = getattr(module, function_name, None)
        if not callable(function):
            raise CannotJudge(f"{module_name} has no function {function_name}")
        result = function()
    except (CannotJudge, KeyboardInterrupt):
        raise
    except (
        BaseException
    ) as error:  # a script may end itself when it is imported, or raise a CancelledError
        raise _cannot_judge(error) from error
    parts = [*result, {}][:3] if isinstance(result, tuple | list) else []
    if len(parts) < 3 or not isinstance(parts[2], Mapping):
        raise CannotJudge(
            f"{function_name} must return (estimator, input_fn) or another form that --help lists, "
            f"and may add a dict of options, but it returned {result!r:.200}"
        )
    return Target(*parts)


def load_main(name: str, arguments: Sequence[str], cores: int = 8, step: str = "") -> Target:
    """Runs the program in the file or the module `name` with its own flags, up to its training.

    The target is the Estimator that it made, its input function, and the others as options; or its Keras
    model and dataset; or its step of JAX, with the calls of it. `step` names the one that is meant.

    Raises:
        CannotJudge: there is no such program, or it raises or ends before it calls an Estimator.
    """
    from lab_utils.dry_run.frontends import recorder

    try:
        calls = recorder.record(_program(name), arguments, cores, step)
    except (CannotJudge, KeyboardInterrupt):
        raise
    except BaseException as error:
        advice = "\n  Put the program's own flags after --"
        raise _cannot_judge(error, advice if isinstance(error, SystemExit) else "") from error
    print(f"{name} called {', '.join(dict.fromkeys(calls.calls))}.", file=sys.stderr)
    if calls.after:
        print(f"What it does after these calls is not judged: {calls.after}", file=sys.stderr)
    return of_recording(calls, name)


def of_recording(calls: "Recording", name: str) -> Target:
    """What is to be judged of the program `name`, by what it called.

    Raises:
        CannotJudge: it trains, evaluates and predicts nothing.
    """
    observed = calls.observed
    if calls.after:
        observed.not_checked.append(f"What {name} does after its recorded calls: {calls.after}.")
    if calls.step:
        return Target(calls.step.function, calls.step, {}, observed)
    if calls.fit:
        return Target(*calls.fit, {}, observed)
    subject = calls.subject
    others = (model for model in calls.models if model is not subject)
    observed.not_judged = [f"{model} (give it as MODULE:FUNCTION)" for model in others]
    observed.judged = subject.first
    inputs = {mode: call.input_fn for mode, call in subject.first.items()}
    options = {
        "eval_input_fn": inputs.get(Mode.EVAL),
        "predict_input_fn": inputs.get(Mode.PREDICT),
        "serving_input_receiver_fn": inputs.get(Mode.SERVING),
    }
    data = next(
        (inputs[mode] for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT) if mode in inputs), None
    )
    if not data:
        raise CannotJudge(
            "it only exports a model, but the dry run judges a step on the cores. If the program "
            "trains, evaluates or predicts with other flags, give them after `--`"
        )
    return Target(subject.estimator, data, options, observed)


def _cannot_judge(error: BaseException, advice: str = "") -> CannotJudge:
    """An error of the learner's code with its place; of an exit that an error led to, that error."""
    if isinstance(error, SystemExit) and isinstance(error.__context__, Exception):
        error = error.__context__
    from lab_utils.dry_run.advice import for_keras_2, known
    from lab_utils.dry_run.elsewhere import reason
    from lab_utils.dry_run.wording import first_line

    tensorflow = loading.tensorflow()
    is_of_ops = tensorflow is not None and isinstance(error, tensorflow.errors.OpError)
    kind = "cannot be checked here" if reason(error) else type(error).__name__
    text = first_line(error) if is_of_ops else str(error)
    if isinstance(error, ImportError):
        text = command.missing(error)
    message = source.shortened(source.uncoloured(reason(error) or text), 1000)
    where = f"\n  at {place}" if (place := source.place(error)) else ""
    fix = f"\n  {fix}" if (fix := known(message) or for_keras_2(error)) else ""
    return CannotJudge(f"{kind}: {message}{where}{fix}{advice}")


def _program(name: str) -> Path | ModuleSpec:
    """The program that `python name` or `python -m name` would run."""
    path = Path(name)
    if path.is_file():
        return path
    if name.endswith((".py", ".ipynb")) or "/" in name or name.startswith("."):
        if path.is_dir():
            raise CannotJudge(f"{path.absolute()} is a folder: name a program in it")
        raise CannotJudge(f"there is no file {path.absolute()}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        spec = importlib.util.find_spec(name)
        if spec and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    if not spec or not spec.has_location:
        raise CannotJudge(
            f"there is neither a file {path.absolute()} nor a module {name} below {Path.cwd()}"
        )
    return spec


def _default_flags() -> None:
    """Gives the flags that the target defines with absl their defaults, as its own main does not run."""
    flags = sys.modules.get("absl.flags")
    if flags and not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


def _module(name: str) -> ModuleType:
    """The module `name`, or the one in the file `name`; its neighbours can be imported by it."""
    if name.endswith(".ipynb"):
        raise CannotJudge(f"{name} is a notebook: --main {name} runs its cells, up to its training")
    if not name.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(name)
    path = Path(name).absolute()
    if not path.is_file():
        raise CannotJudge(f"there is no file {path}")
    sys.path.insert(0, str(path.parent))
    is_pythons = path.stem in sys.stdlib_module_names  # profile.py must not stand for Python's own
    return module_of_file(path, f"{path.stem}_" if is_pythons else path.stem)


def module_of_file(path: Path, name: str) -> ModuleType:
    """Runs the file as the module `name`, which AutoGraph and pickle find under that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
