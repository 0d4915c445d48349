"""Where it runs: TODO 9a, the strategy, and 9b, batches for all its replicas."""

import types
from collections.abc import Callable
from unittest import mock

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect
from lab_utils.estimator import tf


class _Recorder:
    """Stands for the calls that find a TPU, and notes them."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.name = None
        self.strategy = object()

    def patched(self) -> mock._patch:
        return mock.patch.multiple(
            "tensorflow",
            config=_overlay(tf.config, experimental_connect_to_cluster=self._note("connect")),
            tpu=types.SimpleNamespace(
                experimental=types.SimpleNamespace(initialize_tpu_system=self._note("initialize"))
            ),
            distribute=_overlay(
                tf.distribute,
                cluster_resolver=types.SimpleNamespace(TPUClusterResolver=self._resolver),
                TPUStrategy=self._made,
            ),
        )

    def _note(self, name: str) -> Callable:
        return lambda *args, **kwargs: self.calls.append(name)

    def _resolver(self, tpu=None, **options):
        self.calls.append("resolver")
        self.name = tpu
        return object()

    def _made(self, *args, **options):
        self.calls.append("strategy")
        return self.strategy


def _overlay(module: types.ModuleType, **replaced) -> types.SimpleNamespace:
    return types.SimpleNamespace(**{**vars(module), **replaced})


@todo(
    "9a",
    hints=(
        "Without a TPU: tf.distribute.get_strategy(), which is there already. With one: four calls.",
        "resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu); "
        "tf.config.experimental_connect_to_cluster(resolver); "
        "tf.tpu.experimental.initialize_tpu_system(resolver); tf.distribute.TPUStrategy(resolver).",
    ),
)
def strategy(make_strategy: Callable) -> str:
    """The default strategy without a TPU; with one it is found, connected and initialised first."""
    without = _Recorder()
    with without.patched():
        found = make_strategy(use_tpu=False)
    expect(not without.calls, "Where use_tpu is false, nothing should look for a TPU.")
    expect(
        isinstance(found, tf.distribute.Strategy),
        f"Where use_tpu is false, return a strategy all the same; yours returns {a(found)}.",
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
    expect(
        recorder.calls.index("initialize") < recorder.calls.index("strategy"),
        "initialize_tpu_system has to come before TPUStrategy.",
    )
    expect(found is recorder.strategy, f"Return the TPUStrategy that you made, not {a(found)}.")
    return "One flag decides where the model lives; nothing else in the code asks."


@todo(
    "9b",
    hints=(
        "Keras splits what the dataset yields over the replicas: it must yield their batches together.",
        "dataset.batch(per_core * strategy.num_replicas_in_sync, drop_remainder=True)",
    ),
)
def dataset(make_dataset: Callable) -> str:
    """Full batches of per_core examples for each replica."""
    sizes = {}
    for replicas in (8, 2):
        made = make_dataset("train", 4, types.SimpleNamespace(num_replicas_in_sync=replicas))
        expect(
            isinstance(made, tf.data.Dataset), f"Return a dataset; make_dataset gives {a(made)}."
        )
        images, labels = made.element_spec
        expect(
            images.shape.is_fully_defined() and labels.shape.is_fully_defined(),
            f"The shape of a batch, {images.shape}, is not fixed: the last batch may be short, so XLA would "
            "compile twice. drop_remainder=True.",
        )
        sizes[replicas] = images.shape[0]
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
