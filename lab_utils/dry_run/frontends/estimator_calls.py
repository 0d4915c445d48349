"""What stands in for TensorFlow's Estimators while a program runs, and notes what they are asked for.

Estimators that share a model are one, and others are told apart. Imported once the program has TensorFlow.
"""

import functools
import inspect
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from lab_utils.dry_run.frontends.caller import caller
from lab_utils.dry_run.frontends.calls import Enough, Model, Recording
from lab_utils.dry_run.frontends.stand_ins import StandIn
from lab_utils.dry_run.private import tensorflow as _tensorflow
from lab_utils.dry_run.private import tpu_estimator as _tpu_estimator
from lab_utils.dry_run.records import Mode
from lab_utils.dry_run.workload import Call
from lab_utils.estimator import tf, tpu, v1

_ADDRESS = re.compile(r"grpc://|[\w.-]+:\d+$")
_ROOTS = tf, tf.compat.v2, v1
_MOST_CALLS = 20  # of one program: a loop of train and evaluate has shown all its calls by then


def stand_ins(calls: Recording, cores: int) -> Iterator[StandIn]:
    """What lets Estimators note their calls in `calls`, so that no TPU is contacted."""
    session = v1.Session.__init__

    def open_here(self, target="", graph=None, config=None):
        note_address(calls, target)
        session(self, "", graph, config)

    methods = _methods(calls)
    for owner in (tpu.TPUEstimator, v1.estimator.Estimator, tf.estimator.Estimator):
        own = methods.keys() & vars(owner).keys()
        yield from ((owner, name, methods[name]) for name in own)
    for module in (tf.estimator, v1.estimator):
        yield module, "train_and_evaluate", methods["train_and_evaluate"]
    for kind in (tpu.RunConfig, tpu.TPUEstimator):
        yield kind, "__init__", _noting_its_line(kind.__init__)
    yield v1.Session, "__init__", open_here
    yield v1.Session, "reset", _nothing
    for module in (tf.train, v1.train):
        yield module, "checkpoints_iterator", _checkpoints
    yield from _of_tpus(calls, cores)


def _of_tpus(calls: Recording, cores: int) -> Iterator[StandIn]:
    """For what would look up a TPU or connect to one."""
    in_a_row = [[[core, 0, 0, 0] for core in range(cores)]]  # of one host
    topology = tf.tpu.experimental.Topology(None, [cores, 1, 1, 1], in_a_row)
    asked = staticmethod(functools.partial(note_address, calls))
    resolver = type("TPUClusterResolver", (_Resolver,), {"asked": asked})
    public = (root.distribute.cluster_resolver for root in _ROOTS)
    for module in (*public, *_tensorflow.RESOLVERS):
        yield module, "TPUClusterResolver", resolver
    for root in _ROOTS:
        yield root.config, "experimental_connect_to_cluster", _nothing
        yield root.config, "experimental_connect_to_host", _connect_to_host(calls)
        yield root.tpu.experimental, "shutdown_tpu_system", _nothing
        yield root.tpu.experimental, "initialize_tpu_system", lambda *_: topology


def _noting_its_line(init: Callable) -> Callable:
    """As `init`, an __init__; the object has its line of the program, of any file, as `made_at`."""

    @functools.wraps(init)
    def noted(self, *arguments, **options):
        init(self, *arguments, **options)
        self.made_at = caller()

    return noted


def _nothing(*_: Any, **__: Any) -> None:
    """What would contact a TPU does nothing."""


def _connect_to_host(calls: Recording) -> Callable[..., None]:
    def connect_to_host(remote_host: Any = None, *_: Any, **__: Any) -> None:
        note_address(calls, remote_host)

    return connect_to_host


def _methods(calls: Recording) -> dict[str, Callable]:
    """What stands in for the methods of an Estimator."""

    def train(self, input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        limits = {"steps": steps, "max_steps": max_steps, "saving_listeners": saving_listeners}
        note(calls, Mode.TRAIN, self, input_fn, hooks=hooks, **limits)
        return self

    def evaluate(self, input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        note(calls, Mode.EVAL, self, input_fn, hooks=hooks, steps=steps)
        return defaultdict(float)  # whatever metric the program reads

    def predict(self, input_fn, predict_keys=None, hooks=None, *arguments, **options):
        note(calls, Mode.PREDICT, self, input_fn, hooks=hooks, predict_keys=predict_keys)
        return iter(())

    def export(self, export_dir_base, serving_input_receiver_fn, *arguments, **options):
        note(calls, Mode.SERVING, self, serving_input_receiver_fn)
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
        cluster = tf.train.ClusterSpec({"worker": [_tpu_estimator.NO_HOST]})
        super().__init__(
            cluster, master=f"grpc://{_tpu_estimator.NO_HOST}", task_type="worker", task_id=0
        )

    def get_master(self) -> str:
        """As TPUClusterResolver has it."""
        return self.master()

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> "_Resolver":
        """As TPUClusterResolver has it."""
        return cls(*arguments, **options)


def note(
    calls: Recording, mode: Mode, estimator: Any, input_fn: Callable, **arguments: Any
) -> None:
    """Notes a call of `estimator`; raises Enough where the program goes on and on."""
    call = Call(mode, estimator, input_fn, arguments, caller())
    model = _model_of(calls, estimator, mode)
    if _stands_for(calls, model.estimator, estimator, str(call)):
        model.first.setdefault(mode, call)
    model.calls.append(str(call))
    calls.calls.append(str(call))
    calls.observed.calls.append(call)
    calls.on_call()
    if len(calls.calls) >= _MOST_CALLS:
        raise Enough(f"it continues after {_MOST_CALLS} calls")


def note_address(calls: Recording, address: Any) -> None:
    """Notes where the program looks for a TPU, if that is an address: a name may mean its own host."""
    for text in address if isinstance(address, list | tuple) else [address]:
        text = os.fsdecode(text) if isinstance(text, str | bytes) else ""
        if _ADDRESS.match(text) and _tpu_estimator.NO_HOST not in text:
            calls.observed.address = calls.observed.address or text


def _model_of(calls: Recording, estimator: Any, mode: Mode) -> Model:
    """The model of an Estimator. Programs make a second one to evaluate, or a new one in each round."""
    for model in calls.models:
        if _identity(model.estimator, mode) == _identity(estimator, mode):
            if mode is Mode.TRAIN and not model.trained:
                _tpu_estimator.take_batch_sizes(estimator, model.estimator)
                model.estimator = estimator
            return model
    calls.models.append(Model(estimator, model_fn(estimator)))
    return calls.models[-1]


def _stands_for(calls: Recording, subject: Any, other: Any, call: str) -> bool:
    """Whether what `other` is called for is judged with the Estimator `subject`."""
    if subject is other or not isinstance(subject, tpu.TPUEstimator):
        return True
    on_host = not isinstance(other, tpu.TPUEstimator) or (
        _tpu_estimator.settings(subject).use_tpu and not _tpu_estimator.settings(other).use_tpu
    )
    sentence = ""
    if on_host:
        sentence = f"{call} of an Estimator with use_tpu=False: this runs on the host."
    elif repr(subject.params) != repr(other.params):
        sentence = (
            f"{call} with params of its own: the dry run used the params of the training instead."
        )
    if sentence and sentence not in calls.observed.not_checked:
        calls.observed.not_checked.append(sentence)
    if not on_host:
        _tpu_estimator.take_batch_sizes(subject, other)
    return not on_host


def model_fn(estimator: Any) -> Callable:
    """The program's function for a model."""
    if isinstance(estimator, tpu.TPUEstimator):
        return _tpu_estimator.settings(estimator).model_fn
    return estimator._model_fn


def _identity(estimator: Any, mode: Mode) -> object:
    """What tells the models of two Estimators apart: model_fn's code; to train, all that it works on, too."""
    function, bound = model_fn(estimator), []
    while isinstance(function, functools.partial):
        bound.append((function.args, function.keywords))
        function = function.func
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", function)
    if mode is not Mode.TRAIN:
        return code
    inner = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    return code, repr((estimator.params, bound, inner, getattr(function, "__self__", None)))
