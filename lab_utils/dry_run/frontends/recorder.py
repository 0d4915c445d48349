"""Runs a program's own main, notes the models that it makes and what it calls on them, and trains nothing.

Most programs have no function that returns an Estimator: they make one in main() and call train, evaluate,
predict or an export on it. Those calls are noted and return at once; no TPU is contacted. A Keras program is
run up to its first fit, and a training loop of its own up to the first strategy.run (fits.py).
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
import types
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

from lab_utils.common import source
from lab_utils.common.figures import counted
from lab_utils.dry_run.frontends import cells, fits, jax_runs, trainings
from lab_utils.dry_run.frontends.calls import Enough, Recording
from lab_utils.dry_run.frontends.imports import on_import
from lab_utils.dry_run.private.tpu_estimator import NO_HOST
from lab_utils.dry_run.progress import progress
from lab_utils.dry_run.records import Mode
from lab_utils.estimator import tf, tpu, v1
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
    module = types.ModuleType("__main__")
    if isinstance(program, ModuleSpec):
        path, folder, name = Path(program.origin), Path.cwd(), program.origin
        module.__spec__, module.__package__ = program, program.parent
    else:
        path, folder, name = program.absolute(), program.absolute().parent, str(program)
    module.__file__ = str(path)
    text = path.read_bytes()
    with recording(cores) as calls, ExitStack() as stack:
        stack.enter_context(progress(f"running {path.name}"))
        stack.enter_context(fits.without_training(cores, calls.note_fit))
        steps, met = _jax_met(calls, cores, step, stack)
        stack.enter_context(met)
        if b"google.colab" in text:
            colab.stand_in()
        if b"COLAB_TPU_ADDR" in text:
            stack.enter_context(mock.patch.dict(os.environ, COLAB_TPU_ADDR=_COLAB))
        stack.enter_context(warnings.catch_warnings())
        stack.callback(_restore_streams, sys.stdout, sys.stderr)
        stack.enter_context(mock.patch.object(sys, "argv", [name, *arguments]))
        # Not mock.patch.dict, which would forget what the program imports: its model_fn runs later.
        stack.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
        sys.modules["__main__"] = module
        sys.path.insert(0, str(folder))
        try:
            shell = cells.Shell(module.__dict__)
            if cells.needs_jupyter(path):
                module.__dict__.update(get_ipython=lambda: shell, display=lambda *_, **__: None)
            for code in cells.code_of(path):
                exec(code, module.__dict__)
        except Enough as enough:
            calls.after = str(enough)
        except SystemExit as end:
            if not (calls.calls or steps.found) and end.code not in (None, 0):
                raise
        except (cells.CannotJudge, KeyboardInterrupt):
            raise
        except (
            BaseException
        ) as error:  # results of calls that did nothing may well break what follows
            if not (calls.calls or steps.found):
                raise
            calls.after = (
                "it failed, perhaps since those calls did nothing: "
                f"{source.told(error)}\n  at {source.place(error)}"
            )
    calls.note_steps(steps)
    calls.traced_only = steps.within
    if calls.fit:
        calls.later_trainings = trainings.others(path, calls.trained_at)
    if not calls.calls:
        raise cells.CannotJudge(
            f"{path.name} ended without calling train, evaluate or predict on an Estimator, fit on a Keras "
            f"model, strategy.run, or a step of JAX: {_advice(calls, calls.other_program or shell.program)}"
        )
    return calls


def _advice(calls: Recording, program: str) -> str:
    """What to do with a program that called nothing; `program`: the one that it starts, if any."""
    if program:
        return (
            f"it starts {program}, and what trains there cannot be seen: give --main that program"
        )
    if calls.traced_only:
        return (
            f"it takes gradients at {calls.traced_only.position} only within a function of JAX that no "
            "jax.jit of the program compiles, such as jax.vmap or jax.lax.while_loop. Compile the whole "
            "step with jax.jit, and call that"
        )
    if calls.imports_jax:
        return (
            "it uses JAX, and it called no function of jax.jit, jax.pmap or jax.grad that trains. Compile "
            "the whole step with jax.jit, or name its function with --step NAME if it is compiled; or write "
            "a function that returns (step, (state, batch)), with arrays or their shapes, and name it as "
            "FILE.py:function"
        )
    return "give the flags that make it train after `--`"


def _jax_met(
    calls: Recording, cores: int, named: str, stack: ExitStack
) -> tuple[jax_runs.Steps, contextlib.AbstractContextManager[None]]:
    """The steps of a program of JAX, and a context manager that finds them.

    JAX has as many devices of this machine's CPU as the topology has cores.
    """

    def end(step: jax_runs.Step) -> NoReturn:
        raise Enough(
            f"it was stopped at {counted(len(step.calls), 'call')} of {step}, none of them carried out"
        )

    steps = jax_runs.Steps(end, fed=lambda: calls.on_call(), named=named)

    def imported(name: str) -> Callable[[types.ModuleType], None]:
        def action(module: types.ModuleType) -> None:
            if name == "jax":
                calls.imports_jax = True
                jax_runs.stand_in(module, cores, stack)
            jax_runs.watch(name, module, steps, stack)

        return action

    return steps, on_import({name: imported(name) for name in jax_runs.MODULES})


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
    """Context manager: Estimators note what they are asked for, and do nothing; no TPU is contacted."""
    calls = Recording()
    with ExitStack() as stack:

        def replace(owner: Any, name: str, stand_in: Any) -> None:
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, stand_in))

        session, start = v1.Session.__init__, subprocess.Popen.__init__

        def open_here(self, target="", graph=None, config=None):
            calls.note_address(target)
            session(self, "", graph, config)

        def popen(self, args, *more, **options):
            calls.refuse_program(args)
            start(self, args, *more, **options)

        stand_ins = _methods(calls)
        for owner in (tpu.TPUEstimator, v1.estimator.Estimator, tf.estimator.Estimator):
            for name in stand_ins.keys() & vars(owner).keys():
                replace(owner, name, stand_ins[name])
        for module in (tf.estimator, v1.estimator):
            replace(module, "train_and_evaluate", stand_ins["train_and_evaluate"])
        replace(subprocess.Popen, "__init__", popen)
        replace(os, "system", lambda command: subprocess.call(command, shell=True))
        replace(v1.Session, "__init__", open_here)
        replace(v1.Session, "reset", _nothing)
        for module in (tf.train, v1.train):
            replace(module, "checkpoints_iterator", _checkpoints)
        in_a_row = [[[core, 0, 0, 0] for core in range(cores)]]  # of one host
        topology = tf.tpu.experimental.Topology(None, [cores, 1, 1, 1], in_a_row)
        for root in (tf, tf.compat.v2, v1):
            resolver = type(
                "TPUClusterResolver", (_Resolver,), {"asked": staticmethod(calls.note_address)}
            )
            replace(root.distribute.cluster_resolver, "TPUClusterResolver", resolver)
            replace(root.config, "experimental_connect_to_cluster", _nothing)
            replace(root.config, "experimental_connect_to_host", _connect_to_host(calls))
            replace(root.tpu.experimental, "shutdown_tpu_system", _nothing)
            replace(root.tpu.experimental, "initialize_tpu_system", lambda *_: topology)
        calls.on_call = stack.enter_context(_patience())
        yield calls


def _nothing(*_: Any, **__: Any) -> None:
    """What would contact a TPU does nothing."""


def _connect_to_host(calls: Recording) -> Callable[..., None]:
    def connect_to_host(remote_host: Any = None, *_: Any, **__: Any) -> None:
        calls.note_address(remote_host)

    return connect_to_host


def _methods(calls: Recording) -> dict[str, Callable]:
    """What stands in for the methods of an Estimator."""

    def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        limits = {"steps": steps, "max_steps": max_steps, "saving_listeners": saving_listeners}
        calls.note(Mode.TRAIN, self, input_fn, hooks=hooks, **limits)
        return self

    def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        calls.note(Mode.EVAL, self, input_fn, hooks=hooks, steps=steps)
        return defaultdict(float)  # whatever metric the program reads

    def predict(self, input_fn, predict_keys=None, hooks=None, *arguments, **options):
        calls.note(Mode.PREDICT, self, input_fn, hooks=hooks, predict_keys=predict_keys)
        return iter(())

    def export(self, export_dir_base, serving_input_receiver_fn, *arguments, **options):
        calls.note(Mode.SERVING, self, serving_input_receiver_fn)
        return str(export_dir_base).encode()

    def train_and_evaluate(estimator, train_spec, eval_spec):
        limit = {"max_steps": train_spec.max_steps, "hooks": train_spec.hooks}
        train(estimator, train_spec.input_fn, **limit, saving_listeners=train_spec.saving_listeners)
        limit = {"steps": eval_spec.steps, "hooks": eval_spec.hooks}
        return evaluate(estimator, eval_spec.input_fn, **limit), []

    real = v1.estimator.Estimator.latest_checkpoint

    def latest_checkpoint(self):
        trained = any(model.trained for model in calls.models)  # a program may wait for one then
        return real(self) or (f"{self.model_dir}/model.ckpt-0" if trained else None)

    return {
        "train": train,
        "evaluate": evaluate,
        "predict": predict,
        "export_saved_model": export,
        "export_savedmodel": export,
        "latest_checkpoint": latest_checkpoint,
        "train_and_evaluate": train_and_evaluate,
    }


def _checkpoints(checkpoint_dir: str, *arguments: Any, **options: Any) -> Iterator[str]:
    """As tf.train.checkpoints_iterator, which waits for what a training elsewhere writes: one, at once."""
    yield f"{checkpoint_dir}/model.ckpt-0"


class _Resolver(tf.distribute.cluster_resolver.SimpleClusterResolver):
    """Stands for a TPUClusterResolver: it asks no cloud, and names a TPU that nobody will contact.

    `asked` is told for which TPU.
    """

    asked: Callable[[Any], None]

    def __init__(self, tpu: Any = None, *arguments: Any, **options: Any) -> None:
        self.asked(tpu)
        cluster = tf.train.ClusterSpec({"worker": [NO_HOST]})
        super().__init__(cluster, master=f"grpc://{NO_HOST}", task_type="worker", task_id=0)

    def get_master(self) -> str:
        """As TPUClusterResolver has it."""
        return self.master()

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> "_Resolver":
        """As TPUClusterResolver has it."""
        return cls(*arguments, **options)


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
