"""What the command is to judge: the function or the program that its arguments name."""

import importlib
import importlib.util
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from lab_utils.common import source


class TargetError(Exception):
    """What MODULE:FUNCTION names cannot be used; the message says why, and what to do."""


def load(target: str) -> tuple[object, object, dict]:
    """Calls the function that `target` names; returns what to judge, its data, and options for `dry_run`.

    Raises:
        TargetError: the module or function is not there or raises, or returns something else.
    """
    module_name, _, function_name = target.rpartition(":")
    if not module_name or not function_name:
        raise TargetError("name it as MODULE:FUNCTION or FILE.py:FUNCTION")
    try:
        module = _module(module_name)
        _default_flags()
        function = getattr(module, function_name, None)
        if not callable(function):
            raise TargetError(f"{module_name} has no function {function_name}")
        returned = function()
    except TargetError:
        raise
    except (Exception, SystemExit) as error:  # a script may end itself when it is imported
        said = textwrap.shorten(str(error), 1000)
        place = source.place(error)
        where = f"at {place}" if place else "while it was imported or called"
        raise TargetError(f"{_kind(error)}: {said}\n  {where}") from error
    if not isinstance(returned, tuple | list) or len(returned) not in (2, 3):
        raise TargetError(
            f"{function_name} must return (estimator, input_fn) or the like, see --help; "
            f"it returned {type(returned).__name__}"
        )
    subject, data, *rest = returned
    if rest and not isinstance(rest[0], Mapping):
        raise TargetError(
            f"the third thing that {function_name} returns must be a dict of options for dry_run, not "
            f"{type(rest[0]).__name__}"
        )
    return subject, data, dict(rest[0]) if rest else {}


def load_main(name: str, arguments: Sequence[str], cores: int = 8) -> tuple[object, object, dict]:
    """Runs the program in the file or the module `name` with its own flags; returns the Estimator that it
    made, its input function, and the others as options for `dry_run`; or its Keras model and dataset.

    Raises:
        TargetError: there is no such program, or it raises or ends before it calls an Estimator.
    """
    from lab_utils.dry_run.frontends import own_cells, own_fit, own_main, own_writes
    from lab_utils.dry_run.records import Mode

    try:
        with own_writes.noted() as written:
            seen = own_main.recorded(_program(name), arguments, cores)
    except TargetError:
        raise
    except (own_main.NothingCalled, own_fit.CannotTake, own_cells.NotANotebook) as error:
        raise TargetError(str(error)) from error
    except (Exception, SystemExit) as error:
        said = textwrap.shorten(str(error), 1000)
        place = source.place(error)
        where = f"at {place}" if place else f"while {name} ran"
        advice = _of_package(name, error)
        if isinstance(error, SystemExit):
            advice = "\n  If it lacks flags: those of the program follow after --"
        raise TargetError(f"{_kind(error)}: {said}\n  {where}{advice}") from error
    print(f"{name} called {', '.join(dict.fromkeys(seen.calls))}.", file=sys.stderr)
    if said := own_writes.told(written):
        print(said, file=sys.stderr)
    if seen.broke:
        print(
            f"Then it failed, perhaps since those calls did nothing: {seen.broke}\n"
            "  What it would call after that is not judged.",
            file=sys.stderr,
        )
    if seen.waited:
        print(
            f"Then it was ended: {seen.waited}. What it would call after that is not judged.",
            file=sys.stderr,
        )
    if seen.fitted:
        return *seen.fitted, {}
    inputs = seen.inputs
    data = inputs.get(Mode.TRAIN) or next(iter(inputs.values()))
    return (
        seen.estimator,
        data,
        {
            "eval_input_fn": inputs.get(Mode.EVAL),
            "predict_input_fn": inputs.get(Mode.PREDICT),
            "serving_input_receiver_fn": inputs.get(Mode.SERVING),
        },
    )


def _program(name: str) -> Path | ModuleSpec:
    """The program that `python name` or `python -m name` would run."""
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir() and ("/" in name or not (path / "__main__.py").is_file()):
        raise TargetError(f"{path.absolute()} is a folder: name the program in it")
    if name.endswith((".py", ".ipynb")) or "/" in name:
        raise TargetError(f"there is no file {path.absolute()}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = importlib.util.find_spec(name)
        if found and found.submodule_search_locations is not None:
            found = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        found = None
    if not found or not found.has_location:
        raise TargetError(
            f"there is no file {path.absolute()}, and no module {name} below {Path.cwd()}"
        )
    return found


def _kind(error: BaseException) -> str:
    """What an error says of the program: nothing, where this TensorFlow lacks what it needs."""
    from lab_utils.estimator import LeftTensorFlow  # TensorFlow is here by now

    return "cannot be checked here" if isinstance(error, LeftTensorFlow) else type(error).__name__


def _of_package(name: str, error: BaseException) -> str:
    """How a file of a package is run, where it failed for having been run as a file."""
    path = Path(name).absolute()
    if not isinstance(error, ImportError) or "no known parent package" not in str(error):
        return ""
    top = path.parent
    while (top / "__init__.py").exists() and top != top.parent:
        top = top.parent
    dotted = ".".join(path.relative_to(top).with_suffix("").parts)
    return f"\n  It belongs to a package: give --main {dotted}, from the folder {top}"


def _default_flags() -> None:
    """Gives the flags that the target defines with absl their defaults, as its own main does not run."""
    flags = sys.modules.get("absl.flags")
    if flags and not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()


def _module(name: str) -> ModuleType:
    """The module `name`, or the one in the file `name`; its neighbours can be imported by it."""
    if name.endswith(".ipynb"):
        raise TargetError(f"{name} is a notebook: --main {name} runs its cells, up to its training")
    if not name.endswith(".py"):
        sys.path.insert(0, str(Path.cwd()))
        return importlib.import_module(name)
    path = Path(name).absolute()
    if not path.is_file():
        raise TargetError(f"there is no file {path}")
    sys.path.insert(0, str(path.parent))
    taken = path.stem in sys.stdlib_module_names  # profile.py must not stand for Python's own
    return module_of_file(path, f"{path.stem}_" if taken else path.stem)


def module_of_file(path: Path, name: str) -> ModuleType:
    """Runs the file as the module `name`, which AutoGraph and pickle find under that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
