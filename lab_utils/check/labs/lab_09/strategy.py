"""Where it runs: TODO 9a, the strategy, and 9b, batches for all its replicas."""

import contextlib
from collections.abc import Callable, Iterator
from unittest import mock

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf


class _Recorder:
    """Stands for the calls that find a TPU, and notes them."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.name = None
        # Learners print what they have found: resolver.master(), strategy.num_replicas_in_sync.
        self.strategy = mock.MagicMock(num_replicas_in_sync=8)
        self.resolver = mock.MagicMock()
        self.given: list[object] = []

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Context manager: TensorFlow's own functions give way to this recorder."""
        with contextlib.ExitStack() as stack:
            for place, name, instead in (
                (tf.config, "experimental_connect_to_cluster", self._note("connect")),
                (tf.tpu.experimental, "initialize_tpu_system", self._note("initialize")),
                (tf.distribute.cluster_resolver, "TPUClusterResolver", self._resolver()),
                (tf.distribute, "TPUStrategy", self._note("strategy", self.strategy)),
            ):
                stack.enter_context(mock.patch.object(place, name, instead))
            yield

    def _note(self, name: str, gives: object = None) -> Callable:
        def call(*args: object, **kwargs: object) -> object:
            self.calls.append(name)
            self.given += [*args, *kwargs.values()][:1]
            return gives

        return call

    def _resolver(self) -> Callable:
        def made(tpu: str | None = None, **options: object) -> object:
            self.calls.append("resolver")
            self.name = tpu
            return self.resolver

        def connected(tpu: str | None = None, **options: object) -> object:
            self.calls += ["resolver", "connect", "initialize"]  # as the genuine one does
            self.name = tpu
            return self.resolver

        made.connect = connected
        return made


class Strategy:
    """Stands for a strategy of so many replicas."""

    def __init__(self, replicas: int) -> None:
        self.num_replicas_in_sync = replicas


@todo(
    "9a",
    hints=(
        'The default strategy is there already: tf.distribute.get_strategy().',
        'With a TPU four calls follow each other. Which object do the last three of them take?',
    ),
    why='One flag decides where the model lives; the rest of the code asks the strategy.',
)
def strategy(make_strategy: Callable) -> str:
    """The default strategy without a TPU; with one it is found, connected and initialised first."""
    without = _Recorder()
    with without.patched():
        found = make_strategy(use_tpu=False)
    expect(not without.calls, "Where use_tpu is false, nothing should look for a TPU.")
    expect(
        isinstance(found, tf.distribute.Strategy),
        f"Where use_tpu is false, return a strategy too; yours returns {a(found)}.",
    )
    expect(
        found is tf.distribute.get_strategy(),
        f"Where use_tpu is false, return the default strategy, tf.distribute.get_strategy(); yours is "
        f"{a(found)}.",
    )
    recorder = _Recorder()
    with recorder.patched():
        found = make_strategy(use_tpu=True, tpu="my-tpu")
    expect("resolver" in recorder.calls, "With use_tpu, a TPUClusterResolver finds the TPU first.")
    expect(
        recorder.name == "my-tpu",
        f"The resolver should look for the TPU that is named, tpu; yours looks for {recorder.name!r}.",
    )
    for call, name in (
        ("connect", "tf.config.experimental_connect_to_cluster(resolver)"),
        ("initialize", "tf.tpu.experimental.initialize_tpu_system(resolver)"),
        ("strategy", "tf.distribute.TPUStrategy(resolver)"),
    ):
        expect(call in recorder.calls, f"With use_tpu, {name} is missing.")
    order = [recorder.calls.index(call) for call in ("resolver", "connect", "initialize", "strategy")]
    expect(
        order == sorted(order),
        "The order is: find the TPU, connect, initialize_tpu_system, and last TPUStrategy. Yours: "
        f"{', '.join(recorder.calls)}.",
    )
    expect(
        all(given is recorder.resolver for given in recorder.given),
        "experimental_connect_to_cluster, initialize_tpu_system and TPUStrategy take the resolver, not the "
        "TPU's name.",
    )
    expect(found is recorder.strategy, f"Return the TPUStrategy that you made, not {a(found)}.")
    return "One flag decides where the model lives; nothing else in the code asks."


@todo(
    "9b",
    hints=(
        'Keras splits what the dataset yields over the replicas. How many examples is that in a step?',
        "The strategy knows the number of replicas. And what fixes a batch's shape?",
    ),
    why='The dataset yields the global batch, and the strategy gives each replica its part.',
)
def dataset(make_dataset: Callable) -> str:
    """Full batches of per_core examples for each replica."""
    sizes = {}
    for split, replicas in (("train", 8), ("train", 2), ("eval", 2), ("eval", 8)):
        made = make_dataset(split, 4, Strategy(replicas))
        expect(
            isinstance(made, tf.data.Dataset), f"Return a dataset; make_dataset gives {a(made)}."
        )
        images, labels = made.element_spec
        expect(
            images.shape.is_fully_defined() and labels.shape.is_fully_defined(),
            f"The shape of a batch of {split}, {images.shape}, is not fixed: the last batch may be short, so "
            "XLA would compile twice. drop_remainder=True.",
        )
        expect(
            split == "train" or made.cardinality() != tf.data.INFINITE_CARDINALITY,
            "The evaluation never ends: only training repeats.",
        )
        expect(
            sizes.setdefault(replicas, images.shape[0]) == images.shape[0],
            f"On {replicas} replicas a batch of train and one of eval differ, {sizes[replicas]} and "
            f"{images.shape[0]} examples: per_core for each replica, in both.",
        )
    expect(
        sizes[8] != 4,
        "With per_core=4 on eight replicas yours yields batches of 4: that is one replica's, and the dataset "
        "has to yield a batch for all eight together.",
    )
    expect(
        sizes == {8: 32, 2: 8},
        f"With per_core=4, batches should hold 32 examples on eight replicas and 8 on two: take the number "
        f"of replicas from the strategy. Yours hold {sizes[8]} and {sizes[2]}.",
    )
    return "A global batch of fixed shape, whatever the number of replicas."
