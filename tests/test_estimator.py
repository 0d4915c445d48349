"""The genuine Estimator API under the installed TensorFlow; `make test-versions` tries each supported one."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lab_utils import estimator  # noqa: F401

tf = pytest.importorskip("tensorflow")
v1 = tf.compat.v1

WITH_STAND_INS = pytest.mark.skipif(
    tf.__version__.startswith("2.15"), reason="TensorFlow 2.15 has the Estimator and Keras 2 itself"
)
STAND_INS = (
    "tensorflow.python.distribute.estimator_training",
    "tensorflow.python.tpu.session_support",
    "tensorflow.python.tpu.tpu_embedding",
    "tensorflow.python.tpu.tpu_embedding_gradient",
)

ROOT = Path(__file__).parents[1]


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)


def model_fn(features, labels, mode, params):
    hidden = v1.layers.dense(features["x"], 8, activation=tf.nn.relu)
    hidden = v1.layers.batch_normalization(hidden, training=mode == "train", momentum=0.5)
    logits = v1.layers.dense(hidden, 2)
    if mode == "infer":
        predictions = {"class": tf.argmax(logits, 1)}
        outputs = {"serving_default": v1.estimator.export.PredictOutput(predictions)}
        return v1.estimator.tpu.TPUEstimatorSpec(
            mode, predictions=predictions, export_outputs=outputs
        )
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == "eval":
        correct = [labels, tf.argmax(logits, 1)]
        metrics = (lambda *pair: {"accuracy": v1.metrics.accuracy(*pair)}, correct)
        return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
    optimizer = v1.train.AdamOptimizer(0.05)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    x = np.random.RandomState(0).randn(256, 4).astype(np.float32)
    y = (x.sum(1) > 0).astype(np.int32)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    tpu = v1.estimator.tpu
    loops = tpu.TPUConfig(iterations_per_loop=10)
    folder = str(tmp_path_factory.mktemp("model"))
    config = tpu.RunConfig(model_dir=folder, tf_random_seed=1, tpu_config=loops)
    sizes = {"train_batch_size": 32, "eval_batch_size": 64, "predict_batch_size": 64}
    made = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, export_to_tpu=False, **sizes)
    made.train(input_fn, max_steps=60)
    return made


def test_trains_evaluates_predicts_and_exports_a_saved_model(trained, tmp_path):
    assert type(trained).__module__.startswith("tensorflow_estimator.")
    metrics = trained.evaluate(input_fn, steps=4)
    assert metrics["global_step"] == 60 and metrics["accuracy"] > 0.9
    first = next(iter(trained.predict(lambda params: input_fn(params).take(1))))
    assert first["class"] in (0, 1)

    def receiver():
        x = v1.placeholder(tf.float32, [None, 4], "x")
        return v1.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    path = trained.export_saved_model(str(tmp_path), receiver).decode()
    serve = tf.saved_model.load(path).signatures["serving_default"]
    assert serve(x=tf.ones([3, 4]))["class"].numpy().tolist() == [1, 1, 1]


@WITH_STAND_INS
@pytest.mark.parametrize("name", STAND_INS)
def test_only_what_tensorflow_lacks_is_stood_in_for(name):
    """Says which stand-in to delete, should TensorFlow bring a module back."""
    genuine = Path(tf.__file__).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
    assert not genuine.exists(), (
        f"TensorFlow {tf.__version__} has {name}: lab_utils.estimator need not make it"
    )
    with pytest.raises(NotImplementedError, match="left TensorFlow in 2.16"):
        importlib.import_module(name).AnythingElse()


@WITH_STAND_INS
def test_an_unsupported_tensorflow_and_keras_3_in_use_are_refused_with_the_way_out():
    code = """
import tensorflow as tf
hasattr(tf.compat.v1.layers, "dense")  # where the shell has chosen Keras 3
tf.__version__, genuine = "2.99.0", tf.__version__
try:
    import lab_utils.estimator
except ImportError as error:
    assert "works with TensorFlow 2.15 to 2.21; this is 2.99.0" in str(error), error
tf.__version__ = genuine
import lab_utils.estimator
"""
    answer = run_python(code, TF_USE_LEGACY_KERAS="0")
    assert "uses Keras 3 already. Restart Python" in answer.stderr


@WITH_STAND_INS
def test_importing_and_training_print_nothing(tmp_path):
    """Nor make a folder called ~ where they run, or a known name among temporary files, for a user without a
    home whose shell wants Keras 3.
    """
    code = f"""
import os; os.chdir({str(tmp_path)!r})
from tests.test_estimator import model_fn, input_fn, v1
tpu = v1.estimator.tpu
config = tpu.RunConfig(model_dir="model")
v1.keras.backend.floatx()
made = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=8, eval_batch_size=8)
made.train(input_fn, steps=2)
made.evaluate(input_fn, steps=1)
"""
    (tmp_path / "tmp").mkdir()
    answer = run_python(
        code, PYTHONPATH=str(ROOT), HOME="~", TF_USE_LEGACY_KERAS="0", TMPDIR=str(tmp_path / "tmp")
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout + answer.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "tmp"]
    assert not list((tmp_path / "tmp").iterdir())  # a fixed name there may be anybody's


def test_tensorflow_comes_without_jax_which_can_be_imported_afterwards():
    answer = run_python(
        "import sys, lab_utils.estimator; print('jax' in sys.modules); import jax; jax.jit(abs)(1)"
    )
    assert answer.stdout == "False\n", answer.stderr
