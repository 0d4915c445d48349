"""The genuine Estimator and TPUEstimator (package tensorflow-estimator 2.15.0) under today's TensorFlow.

One import line hands out TensorFlow with `tf.estimator` in place, its version 1 API, and the TPU
Estimator's names:

    from lab_utils.estimator import tf, tpu, v1
    tpu.TPUEstimator(...)

TensorFlow 2.15 has the API itself. TensorFlow 2.16 removed it, with five private names that the package
still imports. None of the five does any work for a plain Estimator or TPUEstimator: they register names
for the public API, coordinate parameter servers, shut down TPU workers, and hold TPU embeddings.
Stand-ins fill their places here; those that would have work to do say that they cannot.
This file is the only one that touches them, and tests/test_estimator.py fails when one moves.
"""

import importlib.util
import sys
import types

from lab_utils.common import loading, notices

loading.prepare()
with loading.quietly():
    import tensorflow as tf

# In a notebook AutoGraph prints its warnings as well as logging them: the log and its level remain.
tf.autograph.set_verbosity(0, alsologtostdout=False)

OLDEST, NEWEST = (2, 15), (2, 21)


def _stand_in(name: str, **attributes: object) -> types.ModuleType:
    """Puts a module of `attributes` at `name`; any other attribute is a class that refuses to be made."""

    def missing(attribute: str) -> type:
        if attribute.startswith("__"):
            raise AttributeError(attribute)

        def refuse(self, *args: object, **kwargs: object) -> None:
            raise loading.LeftTensorFlow(
                f"{name}.{attribute} left TensorFlow in 2.16 (this is {tf.__version__}): "
                "code that needs it runs on TensorFlow 2.15 alone."
            )

        return type(attribute, (), {"__init__": refuse})

    module = types.ModuleType(name)
    module.__dict__.update(attributes)
    module.__getattr__ = missing
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    setattr(importlib.import_module(parent), leaf, module)
    return module


def _has_keras_2() -> bool:
    """Whether tf.compat.v1.layers is that of tf-keras."""
    try:
        return tf.compat.v1.layers.conv2d.__module__.startswith("tf_keras")
    except (ImportError, AttributeError):  # those of Keras 3
        return False


def _install() -> None:
    """Makes `tf.estimator` and `tf.compat.v1.estimator`.

    Raises:
        ImportError: for a TensorFlow that this was not made for, for a missing tf-keras, or where
            `tf.compat.v1.layers` was already bound to Keras 3 in this process.
    """
    version = tuple(int(part) for part in tf.__version__.split(".")[:2])
    if not OLDEST <= version <= NEWEST:
        raise ImportError(
            f"lab_utils.estimator works with TensorFlow {'.'.join(map(str, OLDEST))} to "
            f"{'.'.join(map(str, NEWEST))}; this is {tf.__version__}. "
            "Install one of those, for example: pip install tensorflow==2.20.0 tf-keras==2.20.1"
        )
    graph = tf.Graph()
    with notices.hide_native_notices(), graph.as_default(), tf.compat.v1.Session() as session:
        session.run(tf.no_op())  # the first session of a process writes a notice about MLIR, once
    if version == OLDEST:
        return
    lacking = ""
    if not importlib.util.find_spec(
        "tf_keras"
    ):  # asked first: a lazy module that fails once never loads
        lacking = f"install it with `pip install 'tf-keras~={version[0]}.{version[1]}.0'`"
    elif not _has_keras_2():
        lacking = "this process uses Keras 3 already"
    if lacking:
        raise ImportError(
            f"Estimator code needs Keras 2, and tf.compat.v1.layers has none here: {lacking}. Restart "
            "Python, and import lab_utils.estimator before anything touches tf.keras."
        )

    # tensorflow.python.layers, and with it tf-slim, asks for a module that tf-keras keeps at tf_keras.src.
    for leaf in ("", ".base", ".convolutional", ".core", ".normalization", ".pooling"):
        home = importlib.import_module(f"tf_keras.src.legacy_tf_layers{leaf}")
        sys.modules.setdefault(f"tf_keras.legacy_tf_layers{leaf}", home)

    exports = types.ModuleType("tensorflow_estimator.python.estimator.estimator_export")
    # The decorator that registers a symbol in TensorFlow's public API.
    exports.estimator_export = lambda *names, **options: lambda symbol: symbol
    sys.modules[exports.__name__] = exports
    _stand_in(
        "tensorflow.python.distribute.estimator_training",
        init_run_config=lambda config, tf_config: None,
        should_run_distribute_coordinator=lambda config: False,
    )
    _stand_in(
        "tensorflow.python.tpu.session_support",
        # The hook that shuts down TPU workers before they are preempted; this one does nothing.
        GracefulShutdownHook=lambda **options: tf.compat.v1.train.SessionRunHook(),
    )
    embedding = _stand_in("tensorflow.python.tpu.tpu_embedding")
    for optimizer in ("Adagrad", "Adam", "Ftrl", "StochasticGradientDescent"):
        name = f"{optimizer}Parameters"
        setattr(tf.compat.v1.tpu.experimental, name, getattr(embedding, name))
    _stand_in("tensorflow.python.tpu.tpu_embedding_gradient")

    tf.compat.v1.estimator = importlib.import_module("tensorflow_estimator._api.v1.estimator")
    tf.estimator = importlib.import_module("tensorflow_estimator._api.v2.estimator")
    # As in TensorFlow 2.15, for `from tensorflow.estimator import Estimator`.
    sys.modules["tensorflow.estimator"] = tf.estimator
    sys.modules["tensorflow.compat.v1.estimator"] = tf.compat.v1.estimator


if not hasattr(tf.compat.v1, "estimator"):
    _install()

v1 = tf.compat.v1
tpu = v1.estimator.tpu
