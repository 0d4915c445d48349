"""Where it runs, and how it trains: TODO 10a, the strategy, 10b, its batches, 10d, a part of the loss, 10e, going on."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import a, expect, expect_dataset, returns, same
from lab_utils.estimator import tf

# isort: split
import keras


class _Recorder:
    """Stands for the calls that find a TPU, and notes them with what they are given."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        # Learners print what they have found: resolver.master(), strategy.num_replicas_in_sync.
        self.strategy = mock.MagicMock(num_replicas_in_sync=8)
        self.resolver = mock.MagicMock()

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Context manager: TensorFlow's own functions give way to this recorder."""
        connect = (tf.config, "experimental_connect_to_cluster")
        initialize = (tf.tpu.experimental, "initialize_tpu_system")
        find = self._call("TPUClusterResolver", self.resolver)

        def connected(
            tpu: str | None = None, **_: Any
        ) -> Any:  # TPUClusterResolver.connect, as it does
            found = find(tpu)
            self._call(connect[1])(found)
            self._call(initialize[1])(found)
            return found

        find.connect = connected
        with contextlib.ExitStack() as stack:
            for place, name, instead in (
                (*connect, self._call(connect[1])),
                (*initialize, self._call(initialize[1])),
                (tf.distribute.cluster_resolver, "TPUClusterResolver", find),
                (tf.distribute, "TPUStrategy", self._call("TPUStrategy", self.strategy)),
            ):
                stack.enter_context(mock.patch.object(place, name, instead))
            yield

    def _call(self, name: str, result: Any = None) -> Callable:
        def call(*args: Any, **named: Any) -> Any:
            first = [*args, *named.values()][:1]
            shown = "resolver" if first == [self.resolver] else ", ".join(map(repr, first))
            self.calls.append(f"{name}({shown})")
            return result

        return call


@todo(
    "10a",
    hints=(
        "The default strategy is there already: tf.distribute.get_strategy().",
        "With a TPU four calls follow each other. Which object do the last three of them take?",
    ),
    why="One flag decides where the model lives; the rest of the code asks the strategy.",
)
def strategy(make_strategy: Callable) -> Cases:
    """The default strategy without a TPU; with one it is found, connected and initialised first."""
    recorder = _Recorder()
    with recorder.patched():
        found = make_strategy(use_tpu=False)
    yield "Where use_tpu is false, nothing should look for a TPU: the calls for one", recorder.calls
    expect(
        found is tf.distribute.get_strategy(),
        f"Where use_tpu is false, return the default strategy, tf.distribute.get_strategy(); yours is {a(found)}.",
    )
    recorder = _Recorder()
    with recorder.patched():
        found = make_strategy(use_tpu=True, tpu="my-tpu")
    yield (
        (
            "With use_tpu, find the TPU that is named, connect, initialize_tpu_system, and last TPUStrategy, all three "
            "of the resolver: the calls"
        ),
        recorder.calls,
    )
    expect(found is recorder.strategy, f"Return the TPUStrategy that you made, not {a(found)}.")
    return "One flag decides where the model lives; nothing else in the code asks."


class _Replicas:
    """Stands for a strategy of so many replicas."""

    def __init__(self, replicas: int) -> None:
        self.num_replicas_in_sync = replicas


@todo(
    "10b",
    hints=(
        "Keras splits what the dataset yields over the replicas. How many examples is that in a step?",
        "The strategy knows the number of replicas. And what fixes a batch's shape?",
    ),
    why="The dataset yields the global batch, and the strategy gives each replica its part.",
    slips={
        (
            "per_core * strategy.num_replicas_in_sync",
            "per_core",
        ): "That is one replica's, and the dataset has to yield a batch for all eight together.",
    },
)
def dataset(make_dataset: Callable) -> Cases:
    """Full batches of per_core examples for each replica."""
    for split, replicas in (("train", 8), ("train", 2), ("eval", 2), ("eval", 8)):
        made = make_dataset(split, 4, _Replicas(replicas))
        expect_dataset(made, "make_dataset")
        yield (
            (
                f"A batch of {split} with per_core=4 on {replicas} replicas (take the number of replicas from the strategy; "
                "with None the shape is not fixed: the last batch may be short, so XLA would compile twice, drop_remainder=True)"
            ),
            [f"{each.dtype.name} {each.shape}" for each in made.element_spec],
        )
        expect(
            split == "train" or made.cardinality() != tf.data.INFINITE_CARDINALITY,
            "The evaluation never ends: only training repeats.",
        )
    return "A global batch of fixed shape, whatever the number of replicas."


_LOSSES = "tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)"
_PART = "tf.reduce_sum(losses) / global_batch"


@todo(
    "10d",
    hints=(
        "The replicas' gradients are summed. What must each give, so that the sum is the mean over all?",
        "A sum over this replica's examples, and a division: by how many?",
    ),
    why="Parts of one mean can be summed; means cannot.",
    slips={
        (
            _PART,
            "tf.reduce_mean(losses)",
        ): "That is 4 times the mean: a mean over the replica's own examples makes "
        "the step larger, the more replicas there are.",
        (
            _PART,
            "tf.reduce_sum(losses)",
        ): "That is 32 times the mean: the sum is not divided by global_batch.",
        (
            _PART,
            "tf.reduce_mean(losses) / global_batch",
        ): "That is an eighth of the mean: the mean over a replica is divided twice.",
        (
            _LOSSES,
            _LOSSES.replace("logits)", "tf.nn.softmax(logits))"),
        ): "That is the cross-entropy of softmax(logits): it takes the logits themselves.",
    },
)
def replica_loss(replica_loss: Callable) -> Cases:
    """The parts of all replicas sum to the mean over the global batch."""
    random = np.random.default_rng(7)
    logits = tf.constant(random.normal(size=(32, 10)), tf.float32)
    labels = tf.constant(random.integers(0, 10, 32), tf.int32)
    pairs = zip(tf.split(labels, 4), tf.split(logits, 4), strict=True)
    parts = [replica_loss(*pair, 32) for pair in pairs]
    expect(
        tf.is_tensor(parts[0]),
        f"A replica's part should be a tensor, through which gradients flow; yours is {a(parts[0])}.",
    )
    same(parts[0].shape, [], "The shape of a replica's part, which should be a scalar")
    total = tf.add_n([tf.cast(part, tf.float32) for part in parts])
    yield (
        "Four replicas of 8 examples each: their parts should sum to the mean over all 32",
        total,
        1e-3,
    )
    with tf.GradientTape() as tape:
        tape.watch(logits)
        part = replica_loss(labels, logits, 32)
    expect(
        tape.gradient(part, logits) is not None,
        "No gradient comes through to the logits: compute the part with TensorFlow's ops.",
    )
    return "Parts that sum to the global mean: the step does not depend on the number of replicas."


class _Stopped(Exception):
    """Stands for a machine that is taken away."""


def _fit(callbacks: list, stop_in: int | None = None) -> int | None:
    """Fits a tiny model for four epochs; returns the first epoch that began, from 1, or None."""
    begun = []

    def begin(epoch: int, logs: Any) -> None:
        begun.append(epoch + 1)
        if epoch + 1 == stop_in:
            raise _Stopped

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    watch = keras.callbacks.LambdaCallback(on_epoch_begin=begin)
    batch = np.ones((4, 2), np.float32)
    with contextlib.suppress(_Stopped):
        model.fit(batch, batch[:, :1], epochs=4, verbose=0, callbacks=[*callbacks, watch])
    return begun[0] if begun else None


@todo(
    "10e",
    hints=(
        "Look through keras.callbacks: one of them both saves and puts back.",
        "ModelCheckpoint saves, and nothing more.",
    ),
    why="Keras goes on only where a callback restores model, optimizer and epoch.",
)
def resumable(make_callbacks: Callable) -> Cases:
    """A run that is stopped in its third epoch goes on there."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        callbacks = make_callbacks(folder)
        returns(callbacks, (list, tuple), "make_callbacks", "a list of callbacks")
        others = [each for each in callbacks if not isinstance(each, keras.callbacks.Callback)]
        expect(not others, f"The list should hold callbacks of Keras; it holds {others[:1]}.")
        with contextlib.chdir(elsewhere):
            _fit(callbacks, stop_in=3)
            saves = any(files for *_, files in tf.io.gfile.walk(folder))
            first = _fit(make_callbacks(folder))
    expect(
        not saves or first != 1,
        "It saves, but nothing puts back what it saved: a run that was stopped started over.",
    )
    expect(
        saves or first in (None, 1),
        "What the run saved does not lie in folder: two runs would mix theirs up.",
    )
    yield (
        (
            "A run that was stopped in its third epoch started over, or somewhere else. What is saved has to lie in "
            "folder, at the end of each epoch. The epoch in which it goes on"
        ),
        first,
    )
    return "Stopped in epoch 3, it goes on with epoch 3: weights, optimizer and epoch."
