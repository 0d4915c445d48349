"""The flowers model in Keras is the Estimator's, and on JAX too: variables, outputs, steps, a short run."""

import keras
import numpy as np
import pytest

from lab_utils.equivalence import ladder
from lab_utils.estimator import tpu
from lab_utils.flowers import keras_model, model
from lab_utils.flowers.recipe import DROPOUT

SIDE = 64
LABELS = ["daisy", "roses", "tulips"]


@pytest.fixture(scope="module")
def flowers_batches():
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (4, 16, SIDE, SIDE, 3), dtype=np.uint8)
    labels = rng.integers(0, 3, (4, 16)).astype("int32")
    weight = np.ones(16, np.float32)
    return [({"image": x, "weight": weight}, y) for x, y in zip(images, labels, strict=True)]


def flowers_estimator(folder):
    params = {
        "labels": LABELS,
        "image_size": SIDE,
        "train_steps": 40,
        "learning_rate": 0.05,
        "model_dir": folder,
        "repeatable": True,
    }
    return tpu.TPUEstimator(
        model.model_fn,
        config=tpu.RunConfig(model_dir=folder),
        use_tpu=False,
        train_batch_size=16,
        predict_batch_size=16,
        params=params,
    )


def to_keras(features, labels):
    return features["image"], np.eye(len(LABELS), dtype="float32")[labels]


def test_the_flowers_model_in_keras_is_the_estimators(flowers_batches, tmp_path):
    port = keras_model.network(SIDE, len(LABELS), dropout=0.0)
    port.compile(keras_model.optimizer(0.05, 40), loss=keras_model.loss())
    found = ladder(
        flowers_estimator(str(tmp_path)),
        port,
        flowers_batches,
        prediction="probabilities",
        output=keras.ops.softmax,
        to_keras=to_keras,
        run_tolerance=1e-4,
    )
    assert found.holds, found


def test_a_saved_model_comes_back_whole(tmp_path):
    port = keras_model.network(SIDE, len(LABELS), dtype="mixed_bfloat16")
    port.compile(keras_model.optimizer(0.05, 40), loss=keras_model.loss())
    port.save(tmp_path / "flowers.keras")
    again = keras.saving.load_model(tmp_path / "flowers.keras")
    assert again.get_layer("dropout").rate == DROPOUT
    assert isinstance(again.optimizer, keras_model.Momentum)
    assert again.outputs[0].dtype == "float32"
