"""Runs a program's own main, notes the models that it makes and what it calls on them, and trains nothing.

Most programs have no function that returns an Estimator: they make one in main() and call train, evaluate,
predict or an export on it. Those calls are noted and return at once; no TPU is contacted
(estimator_calls.py). A Keras program is run up to its first fit, and a training loop of its own up to the
first strategy.run (fits.py). Neither TensorFlow nor JAX is imported before the program does it.
"""

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from lab_utils.common import interrupts, loading, source
from lab_utils.common.figures import counted
from lab_utils.dry_run import elsewhere
from lab_utils.dry_run.frontends import cells, fits, imports, jax_runs, trainings
from lab_utils.dry_run.frontends.calls import Enough, Recording
from lab_utils.dry_run.frontends.imports import on_import
from lab_utils.dry_run.frontends.stand_ins import patched
from lab_utils.dry_run.progress import progress
from lab_utils.runtime import colab

PATIENCE = 60  # seconds from a call of the Estimator to the next
_COLAB = "colab.dry-run.invalid:8470"  # of the TPU that programs for Colab are given: no such host exists


def record(
    program: Path | ModuleSpec, arguments: Sequence[str], cores: int = 8, step: str = ""
) -> Recording:
    """Runs a program with its own `arguments`, as `python file arguments` or `python -m module` would.

    A TPUStrategy that it makes has `cores` replicas. `step` names the function of JAX to judge.

    Raises:
        CannotJudge: it ended before any call, or trains in another way; or an .ipynb file holds no cells.
        Exception: what it raised before any call of an Estimator.
    """
    module, path, name = _module(program)
    with recording(cores) as calls, ExitStack() as stack:
        stack.enter_context(progress(f"running {path.name}"))
        stack.enter_context(fits.without_training(cores, calls.note_fit))
        steps, met = _jax_met(calls, cores, step, stack)
        stack.enter_context(met)
        text = path.read_bytes()
        for mark, give in _GIVEN:
            if mark in text:
                give(stack)
        stack.enter_context(_as_main(module, path.parent, [name, *arguments]))
        shell = cells.Shell(module.__dict__)
        _execute(path, module, shell, calls, steps)
    calls.note_steps(steps)
    if steps.cpu_at:
        calls.observed.not_checked.append(
            f"The device: the program asks JAX for the CPU (at {steps.cpu_at.position}), but was "
            "judged as if it asked for the TPU. Remove that line on a TPU."
        )
    calls.traced_only = steps.within
    if calls.fit:
        calls.observed.not_covered = trainings.others(path, calls.observed.trained_at)
    if not calls.calls:
        raise cells.CannotJudge(
            f"{path.name} ended without calling train, evaluate or predict on an Estimator, fit on a Keras "
            f"model, strategy.run, or a step of JAX: {_advice(calls, calls.other_program or shell.program)}"
        )
    return calls


def _module(program: Path | ModuleSpec) -> tuple[types.ModuleType, Path, str]:
    """The program as __main__, not yet executed; its file, and its name as Python gives it to the program."""
    module = types.ModuleType("__main__")
    if isinstance(program, ModuleSpec):
        module.__spec__, module.__package__ = program, program.parent
        module.__file__ = program.origin
        return module, Path(program.origin), program.origin
    module.__file__ = str(program.absolute())
    return module, program.absolute(), str(program)


def _give_colab_address(stack: ExitStack) -> None:
    stack.enter_context(mock.patch.dict(os.environ, COLAB_TPU_ADDR=_COLAB))


def _give_distutils(stack: ExitStack) -> None:
    """Such programs import distutils only: older TensorFlow imported the rest."""
    with contextlib.suppress(ImportError):
        importlib.import_module("distutils.version")


# What a program finds where its text has the first, until the stack is left.
_GIVEN: list[tuple[bytes, Callable[[ExitStack], None]]] = [
    (b"google.colab", lambda stack: colab.stand_in()),
    (b"COLAB_TPU_ADDR", _give_colab_address),
    (b"distutils.version", _give_distutils),
]


@contextmanager
def _as_main(module: types.ModuleType, folder: Path, arguments: list[str]) -> Iterator[None]:
    """Context manager: `module` is Python's __main__, with these arguments. Its folder stays in sys.path."""
    before = sys.modules["__main__"]
    streams = sys.stdout, sys.stderr
    with warnings.catch_warnings(), mock.patch.object(sys, "argv", arguments):
        # Not mock.patch.dict, which would forget what the program imports: its model_fn runs later.
        sys.modules["__main__"] = module
        sys.path.insert(0, str(folder))
        try:
            yield
        finally:
            sys.modules["__main__"] = before
            _restore_streams(*streams)


def _execute(
    path: Path,
    module: types.ModuleType,
    shell: cells.Shell,
    calls: Recording,
    steps: jax_runs.Steps,
) -> None:
    """Executes the program. What it raises behind its first call is noted as the end of what is judged."""
    try:
        if cells.needs_jupyter(path):
            module.__dict__.update(get_ipython=lambda: shell, display=lambda *_, **__: None)
        for code in cells.code_of(path):
            exec(code, module.__dict__)
    except Enough as enough:
        calls.after = str(enough)
    except (cells.CannotJudge, KeyboardInterrupt):
        raise
    except BaseException as error:
        is_end = isinstance(error, SystemExit) and error.code in (None, 0)
        has_called = bool(calls.calls or steps.found)
        if not (is_end or has_called):
            raise
        if not isinstance(error, SystemExit):
            # results of calls that did nothing may well break what follows
            why = elsewhere.reason(error)
            failed = f"it failed, perhaps because those calls did nothing: {source.told(error)}"
            calls.after = f"{why or failed}\n  at {source.place(error)}"


def _advice(calls: Recording, program: str) -> str:
    """What to do with a program that called nothing; `program`: the one that it starts, if any."""
    if program:
        return (
            f"it starts {program}, and the dry run cannot see what trains there, so pass that "
            "program to --main"
        )
    if calls.traced_only:
        return (
            f"it takes gradients at {calls.traced_only.position} only within a function of JAX "
            "that no jax.jit of the program compiles, such as jax.vmap or jax.lax.while_loop. "
            "Compile the whole step with jax.jit, and call the compiled function"
        )
    if calls.without_estimators:
        return calls.without_estimators
    if calls.imports_jax:
        return (
            "it uses JAX, but it called no function of jax.jit, jax.pmap or jax.grad that trains. "
            "Compile the whole step with jax.jit, or, if it is compiled already, name its "
            "function with --step NAME. Or write a function that returns (step, (state, batch)), "
            "with arrays or their shapes, and name it as FILE.py:function"
        )
    return "after `--`, give the flags that make it train"


def _jax_met(
    calls: Recording, cores: int, named: str, stack: ExitStack
) -> tuple[jax_runs.Steps, contextlib.AbstractContextManager[None]]:
    """The steps of a program of JAX, and a context manager that finds them.

    JAX has as many devices of this machine's CPU as the topology has cores.
    """

    def end(step: jax_runs.Step) -> NoReturn:
        if step.new:  # a batch comes with each call
            calls.observed.not_checked.append(
                "A batch of a different size in later calls, such as a shorter one at the end of "
                "an epoch: JAX compiles the step again for it, and the cores must be able to "
                "share it evenly."
            )
        raise Enough(
            f"the dry run stopped it at {counted(len(step.calls), 'call')} of {step}, and did not "
            "carry them out"
        )

    steps = jax_runs.Steps(end, fed=lambda: calls.on_call(), named=named)

    def imported(name: str) -> Callable[[types.ModuleType], None]:
        def action(module: types.ModuleType) -> None:
            if name == "jax":
                calls.imports_jax = True
                jax_runs.give_devices(module, cores)
                stack.enter_context(patched(jax_runs.stand_ins(module, steps)))
            jax_runs.watch(name, module, steps, stack)

        return action

    # An interrupt would end the import of native code in an abort.
    actions = {name: imported(name) for name in jax_runs.MODULES}
    return steps, on_import(actions, within=interrupts.held_back)


def _restore_streams(*before: Any) -> None:
    """Streams that a program wrapped or closed, as a log or a Tee does, are opened again."""
    for number, (name, stream) in enumerate(zip(("stdout", "stderr"), before, strict=True), 1):
        current = getattr(sys, name)
        if current is not stream or stream.closed:
            with contextlib.suppress(ValueError, OSError, AttributeError):
                current.flush()
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


@contextmanager
def recording(cores: int) -> Iterator[Recording]:
    """Context manager: Estimators note what they are asked for, and do nothing; no TPU is contacted.

    TensorFlow is looked after as soon as the program imports it.
    """
    calls = Recording()
    with ExitStack() as stack:
        start = subprocess.Popen.__init__

        def popen(self, args, *more, **options):
            calls.refuse_program(args)
            start(self, args, *more, **options)

        def imported(estimator: types.ModuleType) -> None:
            from lab_utils.dry_run.frontends import estimator_calls

            stack.enter_context(patched(estimator_calls.stand_ins(calls, cores)))

        def imported_tensorflow(tensorflow: types.ModuleType) -> None:
            """Notes why there are no Estimators: JAX may train all the same, with data of TensorFlow's."""
            if (
                imports.ESTIMATOR not in sys.modules
            ):  # else it is there, or is what imports TensorFlow
                try:
                    importlib.import_module(imports.ESTIMATOR)
                except ImportError as error:
                    calls.without_estimators = str(error)

        def system(command):
            return subprocess.call(command, shell=True)

        table = [(subprocess.Popen, "__init__", popen), (os, "system", system)]
        stack.enter_context(patched(table))
        stack.enter_context(on_import({imports.ESTIMATOR: imported}))
        stack.enter_context(on_import({"tensorflow": imported_tensorflow}, within=loading.quietly))
        calls.on_call = stack.enter_context(_patience())
        yield calls


@contextmanager
def _patience() -> Iterator[Callable[[], None]]:
    """Context manager: a program that waits for what nobody makes here is ended by Enough.

    No sleep takes longer than a second. Yields a function to call at each call of an Estimator: the program
    is ended PATIENCE seconds after the last one.
    """
    real = time.sleep

    def end(number: int, frame: Any) -> None:
        raise Enough(f"it made no other call within {PATIENCE} s")

    with mock.patch.object(time, "sleep", lambda seconds: real(min(seconds, 1))):
        if not hasattr(signal, "SIGALRM"):  # Windows
            yield lambda: None
            return
        before = signal.signal(signal.SIGALRM, end)
        try:
            yield lambda: signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
