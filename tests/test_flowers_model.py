"""The model: layouts, random views, bfloat16, metrics, and the graphs that a TPU runs."""

import numpy as np
import pytest

from lab_utils.estimator import tf, v1
from lab_utils.flowers import augment, recipe
from lab_utils.flowers.input_pipeline import train_size
from lab_utils.flowers.model import learning_rate, metric_fn, model_fn

MODES = tf.estimator.ModeKeys
SIZE, CLASSES = 32, 3


def params(**changes) -> dict:
    return {
        "labels": ["a", "b", "c"],
        "image_size": SIZE,
        "train_steps": 10,
        "learning_rate": 0.05,
        "model_dir": "unused",
        "use_tpu": False,
    } | changes


def random_images(batch: int, side: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, [batch, side, side, 3], np.uint8)


def batch_of(mode: str):
    """(features, labels) as the input pipeline gives them."""
    side = train_size(SIZE) if mode == MODES.TRAIN else SIZE
    images = random_images(4, side)
    features = {"image": tf.constant(images), "weight": tf.ones([4])}
    return features, tf.constant([0, 1, 2, 0])


def evaluate(fetch, mode: str, **changes):
    """Builds model_fn and runs what `fetch(graph, spec)` names, with the same weights each time."""
    random = np.random.default_rng(0)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.train.get_or_create_global_step()
        features, labels = batch_of(mode)
        spec = model_fn(
            features, None if mode == MODES.PREDICT else labels, mode, params(**changes)
        )
        session.run([v1.global_variables_initializer(), v1.local_variables_initializer()])
        for variable in v1.trainable_variables():
            if "kernel" in variable.name:
                variable.load(random.normal(0, 0.1, variable.shape), session)
        return session.run(fetch(graph, spec))


def logits_of_evaluation(graph, spec):
    return spec.eval_metrics[1][1]


@pytest.fixture
def no_dropout(monkeypatch):
    monkeypatch.setattr(recipe, "DROPOUT", 0.0)


def test_evaluation_and_prediction_augment_nothing():
    def probabilities_of_evaluation(graph, spec):
        return tf.nn.softmax(logits_of_evaluation(graph, spec))

    first, second = (evaluate(probabilities_of_evaluation, MODES.EVAL) for _ in range(2))
    served = evaluate(lambda graph, spec: spec.predictions["probabilities"], MODES.PREDICT)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, served)


def views(images, seed, size=SIZE):
    return augment.random_views(images, size, tf.constant(seed, tf.int32)).numpy()


@pytest.fixture(scope="module")
def images() -> tf.Tensor:
    return tf.cast(random_images(6, 40), tf.float32) / 127.5 - 1


def test_the_whole_image_unmirrored_in_its_own_light_is_the_image(monkeypatch, images):
    monkeypatch.setattr(augment, "SMALLEST_AREA", 1.0)
    monkeypatch.setattr(augment, "ASPECT", 0.0)
    monkeypatch.setattr(augment, "LIGHT", 0.0)
    pairs = list(zip(views(images, [0, 0], size=40), images, strict=True))
    same = [np.allclose(view, image, atol=1e-5) for view, image in pairs]
    mirrored = [np.allclose(view[:, ::-1], image, atol=1e-5) for view, image in pairs]
    assert all(np.logical_or(same, mirrored)) and any(same) and any(mirrored)


def test_views_are_fixed_by_the_seed(images):
    one = views(images, [3, 7])
    np.testing.assert_array_equal(one, views(images, [3, 7]))
    assert not np.allclose(one, views(images, [3, 8]))
    assert not np.allclose(one, views(images, [4, 7]))


@pytest.mark.parametrize("mode", [MODES.TRAIN, MODES.EVAL])
def test_bfloat16_computes_in_it_and_keeps_float32_variables(mode, no_dropout):
    def fetch(graph, spec):
        assert {v.dtype.base_dtype for v in v1.trainable_variables()} == {tf.float32}
        convolutions = {op.outputs[0].dtype for op in graph.get_operations() if op.type == "Conv2D"}
        assert convolutions == {tf.bfloat16}
        return (
            [spec.loss] if mode == MODES.TRAIN else [logits_of_evaluation(graph, spec), spec.loss]
        )

    values = evaluate(fetch, mode, use_bfloat16=True)
    exact = evaluate(
        lambda graph, spec: spec.loss if mode == MODES.TRAIN else logits_of_evaluation(graph, spec),
        mode,
    )
    assert all(np.isfinite(value).all() for value in values)
    np.testing.assert_allclose(values[0], exact, rtol=0.1, atol=0.1)


def test_metrics_count_padding_for_nothing():
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, 8).astype(np.int32)
    logits = random.normal(size=[8, CLASSES]).astype(np.float32)
    loss = random.uniform(0, 2, 8).astype(np.float32)
    weights = np.array([1.0] * 6 + [0.0] * 2, np.float32)

    def metrics() -> dict:
        """After two batches of four."""
        columns = [labels, logits, loss, weights]
        with tf.Graph().as_default(), v1.Session() as session:
            batch = [v1.placeholder(part.dtype, [4, *part.shape[1:]]) for part in columns]
            metrics = metric_fn(*batch)
            session.run(v1.local_variables_initializer())
            for rows in (slice(4), slice(4, 8)):
                values = {place: part[rows] for place, part in zip(batch, columns, strict=True)}
                session.run([update for _, update in metrics.values()], values)
            return session.run({name: value for name, (value, _) in metrics.items()})

    first = metrics()
    right = logits[:6].argmax(1) == labels[:6]
    assert first["accuracy"] == pytest.approx(right.mean())
    assert first["cross_entropy"] == pytest.approx(loss[:6].mean(), rel=1e-6)
    assert first["confusion"].sum() == 6
    assert np.trace(first["confusion"]) == right.sum()
    labels[6:], logits[6:], loss[6:] = 2, 1e9, 1e9
    for name, value in metrics().items():
        np.testing.assert_array_equal(value, first[name])


def test_the_learning_rate_rises_and_falls_to_zero():
    with tf.Graph().as_default(), v1.Session() as session:
        rates = [
            session.run(learning_rate(params(train_steps=100), tf.constant(step)))
            for step in (0, 5, 11, 60, 100, 150)
        ]
    assert 0 < rates[0] < rates[1] < rates[2]
    assert rates[2] > rates[3] > 0
    np.testing.assert_allclose(rates[-2:], 0, atol=1e-8)
