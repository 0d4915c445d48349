"""Runs a program's own main, notes the estimator that it makes and what it calls, and trains nothing.

Most programs have no function that returns an Estimator: they make one in main() and call train, evaluate,
predict or an export on it. Within `recording` those calls are noted and return at once; no TPU is contacted.
A Keras program is run up to its first fit (own_fit.py).
"""

import logging
import os
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest import mock

from lab_utils.common import source
from lab_utils.dry_run.frontends import own_around, own_cells, own_fit, own_waits
from lab_utils.dry_run.frontends.own_waits import Enough
from lab_utils.dry_run.records import Mode
from lab_utils.estimator import tf, tpu, v1

_MOST_CALLS = 20  # of one program: a loop of train and evaluate has shown all its calls by then


class NothingCalled(Exception):
    """The program called no Estimator; the message says what to do."""


@dataclass
class Recording:
    """What a program made and called.

    Attributes:
        estimator: the one that it trained first, else the first one that it called at all.
        inputs: the first input function of each mode.
        fitted: a Keras model and the dataset of its fit, or a step and that of strategy.run.
        calls: in words, in their order: "train(max_steps=1000)".
        broke: what it raised after its last call, with the place; "" where it went on to its end.
        waited: why it was ended after its last call; "" where it was not.
        called: is called at each call.
    """

    estimator: Any = None
    inputs: dict[Mode, Callable] = field(default_factory=dict)
    fitted: tuple[Any, Any] | None = None
    calls: list[str] = field(default_factory=list)
    broke: str = ""
    waited: str = ""
    called: Callable[[], None] = lambda: None

    def note(self, mode: Mode, estimator: Any, input_fn: Callable, **said: Any) -> None:
        """Notes a call of `estimator`; raises Enough where the program goes on and on."""
        if self.estimator is None or (mode is Mode.TRAIN and Mode.TRAIN not in self.inputs):
            if self.estimator is not estimator:
                self.inputs.clear()
            self.estimator = estimator
        if self.estimator is estimator:
            self.inputs.setdefault(mode, input_fn)
        words = ", ".join(f"{name}={value}" for name, value in said.items() if value is not None)
        self.calls.append(f"{mode}({words})")
        self.called()
        if len(self.calls) >= _MOST_CALLS:
            raise Enough

    def refuse_program(self, what: str) -> None:
        """Raises Enough, or NothingCalled where nothing was called yet: another program begins."""
        if self.calls:
            raise Enough
        raise NothingCalled(
            f"the program starts {what}, and what trains there cannot be seen: name that program with "
            "--main, or train in this one's own process"
        )

    def note_fit(self, subject: Any, dataset: Any, call: str) -> None:
        """Notes a call of fit or strategy.run; raises Enough: what follows needs a trained model."""
        self.calls.append(call)
        if self.estimator is None:
            self.fitted = subject, dataset
        raise Enough


def recorded(program: Path | ModuleSpec, arguments: Sequence[str], cores: int = 8) -> Recording:
    """Runs a program with its own `arguments`, as `python file arguments` or `python -m module` would.

    A TPUStrategy that it makes has `cores` replicas.

    Raises:
        NothingCalled: it ended, or failed, before any call.
        own_cells.NotANotebook: its file ends in .ipynb, and is none.
        own_fit.CannotTake: its training cannot be judged so.
        Exception: what it raised before any call of an Estimator.
    """
    module = types.ModuleType("__main__")
    if isinstance(program, ModuleSpec):
        path, folder, name = Path(program.origin), Path.cwd(), program.origin
        module.__spec__, module.__package__ = program, program.parent
    else:
        path, folder, name = program.absolute(), program.absolute().parent, str(program)
    module.__file__ = str(path)
    has_keras = b"keras" in path.read_bytes()
    with recording() as seen, ExitStack() as stack:
        stack.enter_context(own_fit.standing_in(cores, seen.note_fit, has_keras))
        forks = stack.enter_context(own_around.standing_in(path, seen.refuse_program))
        stack.enter_context(mock.patch.object(sys, "argv", [name, *arguments]))
        # Not mock.patch.dict, which would forget what the program imports: its model_fn runs later.
        stack.callback(sys.modules.__setitem__, "__main__", sys.modules["__main__"])
        sys.modules["__main__"] = module
        sys.path.insert(0, str(folder))
        here = os.getpid()
        try:
            module.__dict__.update(own_cells.names_of(path, module.__dict__))
            for code in own_cells.code_of(path):
                exec(code, module.__dict__)
        except Enough as enough:
            seen.waited = str(enough)
        except SystemExit as ended:
            if not seen.calls and ended.code not in (None, 0):
                raise
        except Exception as error:  # results of calls that did nothing may well break what follows
            if not seen.calls:
                own_cells.explain(error, module.__dict__)
                raise
            seen.broke = f"{source.told(error)}\n  at {source.place(error)}"
        finally:
            if os.getpid() != here:  # a process that the program forked: it judges nothing
                os._exit(0)
    if not seen.calls and forks:
        seen.refuse_program(f"another process ({forks[0]})")
    if not seen.calls:
        raise NothingCalled(
            f"{path.name} ended without calling train, evaluate or predict on an Estimator, or fit on "
            "a Keras model: give the flags that make it train after `--`"
            + own_cells.started(module.__dict__)
        )
    return seen


@contextmanager
def recording() -> Iterator[Recording]:
    """Context manager: Estimators note what they are asked for, and do nothing."""
    seen = Recording()
    with ExitStack() as stack:
        for owner in (tpu.TPUEstimator, v1.estimator.Estimator, tf.estimator.Estimator):
            for name, stand_in in _METHODS.items():
                if name in vars(owner):
                    stack.enter_context(mock.patch.object(owner, name, stand_in(seen)))
        for module in (tf.estimator, v1.estimator):
            both = _train_and_evaluate(seen)
            stack.enter_context(mock.patch.object(module, "train_and_evaluate", both))
        seen.called = stack.enter_context(own_waits.cut_short())
        stack.enter_context(mock.patch.object(v1.Session, "__init__", _local(v1.Session.__init__)))
        for module in (tf.train, v1.train):
            stack.enter_context(mock.patch.object(module, "checkpoints_iterator", _checkpoints))
        for root in (tf, tf.compat.v2, v1):
            module = root.distribute.cluster_resolver
            stack.enter_context(mock.patch.object(module, "TPUClusterResolver", _Resolver))
        logger = logging.getLogger("tensorflow")
        logger.addFilter(_is_the_programs)
        stack.callback(logger.removeFilter, _is_the_programs)
        yield seen


def _is_the_programs(record: logging.LogRecord) -> bool:
    """Whether a message is to be shown: an Estimator tells its whole configuration, twice under absl."""
    return record.levelno >= logging.WARNING or not source.is_installed(record.pathname)


def _train(seen: Recording) -> Callable:
    def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        seen.note(Mode.TRAIN, self, input_fn, steps=steps, max_steps=max_steps)
        return self

    return train


def _evaluate(seen: Recording) -> Callable:
    def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        seen.note(Mode.EVAL, self, input_fn, steps=steps)
        return defaultdict(float)  # whatever metric the program reads

    return evaluate


def _predict(seen: Recording) -> Callable:
    def predict(self, input_fn, *arguments, **options):
        seen.note(Mode.PREDICT, self, input_fn)
        return iter(())

    return predict


def _export(seen: Recording) -> Callable:
    def export(self, export_dir_base, serving_input_receiver_fn, *arguments, **options):
        seen.note(Mode.SERVING, self, serving_input_receiver_fn)
        return str(export_dir_base).encode()

    return export


def _checkpoints(checkpoint_dir: str, *arguments: Any, **options: Any) -> Iterator[str]:
    """As tf.train.checkpoints_iterator, which waits for what a training elsewhere writes: one, at once."""
    yield f"{checkpoint_dir}/model.ckpt-0"


def _latest_checkpoint(seen: Recording) -> Callable:
    real = v1.estimator.Estimator.latest_checkpoint

    def latest_checkpoint(self):
        trained = Mode.TRAIN in seen.inputs  # then a program may wait until there is one
        return real(self) or (f"{self.model_dir}/model.ckpt-0" if trained else None)

    return latest_checkpoint


def _local(real: Callable) -> Callable:
    def init(self, target="", graph=None, config=None):
        on_tpu = own_around.ADDRESS in (target or "")  # it would wait for that host for good
        real(self, "" if on_tpu else target, graph, config)

    return init


_METHODS = {
    "train": _train,
    "evaluate": _evaluate,
    "predict": _predict,
    "export_saved_model": _export,
    "export_savedmodel": _export,
    "latest_checkpoint": _latest_checkpoint,
}


def _train_and_evaluate(seen: Recording) -> Callable:
    def train_and_evaluate(estimator, train_spec, eval_spec):
        seen.note(Mode.TRAIN, estimator, train_spec.input_fn, max_steps=train_spec.max_steps)
        seen.note(Mode.EVAL, estimator, eval_spec.input_fn, steps=eval_spec.steps)
        return defaultdict(float), []

    return train_and_evaluate


class _Resolver(tf.distribute.cluster_resolver.SimpleClusterResolver):
    """Stands for a TPUClusterResolver: it asks no cloud, and names a TPU that nobody will contact."""

    def __init__(self, tpu: str | None = None, *arguments: Any, **options: Any) -> None:
        address = own_around.ADDRESS
        cluster = tf.train.ClusterSpec({"worker": [address]})
        super().__init__(cluster, master=f"grpc://{address}", task_type="worker", task_id=0)

    def get_master(self) -> str:
        """As TPUClusterResolver has it."""
        return self.master()

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> "_Resolver":
        """As TPUClusterResolver has it."""
        return cls(*arguments, **options)
