"""The input pipeline: what a batch looks like, and that no image is lost, doubled or augmented."""

import glob
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from lab_utils.estimator import tf
from lab_utils.flowers import input_pipeline
from lab_utils.flowers.input_pipeline import decode_image, decode_jpeg, make_input_fn, train_size
from lab_utils.flowers.records import Records

SIZE = 32
FEATURES = {
    "image/encoded": tf.io.FixedLenFeature([], tf.string),
    "image/class/label": tf.io.FixedLenFeature([], tf.int64),
}


def context(host: int, hosts: int) -> SimpleNamespace:
    """What TPUEstimator puts in params["context"]: (device, host, hosts, replicas)."""
    return SimpleNamespace(current_input_fn_deployment=lambda: (None, host, hosts, 8))


@pytest.fixture(scope="module")
def reader(tiny_records):
    """Makes the dataset of a split, `batch` images at a time."""

    def read(split: str, batch: int, *, deployment=None, **options) -> tf.data.Dataset:
        options = {"training": split == "train", "image_size": SIZE} | options
        params = {"batch_size": batch} | ({"context": deployment} if deployment else {})
        return make_input_fn(Records.find(f"{tiny_records.folder}/{split}-*"), **options)(params)

    return read


def stored(tiny_records, split: str, size: int) -> Counter:
    """(decoded image, label) of every record, read without the pipeline."""
    found = Counter()
    files = sorted(glob.glob(f"{tiny_records.folder}/{split}-*"))
    for record in tf.data.TFRecordDataset(files).as_numpy_iterator():
        example = tf.io.parse_single_example(record, FEATURES)
        image = decode_image(example["image/encoded"], size).numpy().tobytes()
        found[image, int(example["image/class/label"]) - 1] += 1
    return found


def seen(batches) -> list[tuple[bytes, int]]:
    """(image, label) of the images of weight 1, in order."""
    return [
        (image.tobytes(), int(label))
        for features, labels in batches
        for image, label, weight in zip(
            *(np.asarray(part) for part in (features["image"], labels, features["weight"])),
            strict=True,
        )
        if weight == 1
    ]


@pytest.mark.parametrize("split", ["train", "eval"])
def test_batches_have_static_shapes(reader, split):
    features, labels = reader(split, 6).element_spec
    side = train_size(SIZE) if split == "train" else SIZE
    assert features["image"] == tf.TensorSpec([6, side, side, 3], tf.uint8)
    assert features["weight"] == tf.TensorSpec([6], tf.float32)
    assert labels == tf.TensorSpec([6], tf.int32)


@pytest.mark.parametrize("batch", [5, 12, 20])
def test_evaluation_gives_every_image_once_and_then_padding(reader, tiny_records, batch):
    examples = tiny_records.splits["eval"].examples
    steps = -(-examples // batch)
    batches = list(reader("eval", batch).take(steps + 2))
    assert len(batches) == steps + 2
    weights = np.concatenate([features["weight"] for features, _ in batches])
    np.testing.assert_array_equal(weights, np.arange(len(weights)) < examples)
    assert Counter(seen(batches[:steps])) == stored(tiny_records, "eval", SIZE)


@pytest.mark.parametrize("cache_limit", [input_pipeline.CACHE_LIMIT, 0])
def test_training_repeats_and_shuffles_by_its_seed(reader, tiny_records, monkeypatch, cache_limit):
    monkeypatch.setattr(input_pipeline, "CACHE_LIMIT", cache_limit)
    images = stored(tiny_records, "train", train_size(SIZE))
    order, again, other = (seen(reader("train", 5, seed=seed).take(6)) for seed in (1, 1, 2))
    first, second = order[:15], order[15:]  # twice the 15 images
    assert Counter(first) == Counter(second) == images
    assert first != second and first != list(images)
    assert order == again and order != other


@pytest.fixture
def decoded(monkeypatch) -> list[np.ndarray]:
    """The images that the pipeline has decoded so far."""
    images = []

    def count(image):
        images.append(image)
        return image

    def counting(encoded, size):
        image = tf.numpy_function(count, [decode_jpeg(encoded, size)], tf.uint8)
        return tf.ensure_shape(image, [size, size, 3])

    monkeypatch.setattr(input_pipeline, "decode_jpeg", counting)
    return images


@pytest.mark.parametrize(("limit_in_images", "cached"), [(15, True), (14, False)])
def test_decoded_images_are_cached_where_they_fit(
    reader, decoded, monkeypatch, limit_in_images, cached
):
    monkeypatch.setattr(input_pipeline, "CACHE_LIMIT", limit_in_images * train_size(SIZE) ** 2 * 3)
    list(reader("train", 5).take(9))  # three times through 15 images
    assert (len(decoded) == 15) is cached


@pytest.mark.parametrize("hosts", [2, 5])
def test_evaluation_gives_each_image_to_one_host(reader, tiny_records, hosts):
    per_host = 4
    steps = -(-tiny_records.splits["eval"].examples // (per_host * hosts))
    shares = [
        seen(reader("eval", per_host, deployment=context(host, hosts)).take(steps))
        for host in range(hosts)
    ]
    assert sum(map(Counter, shares), Counter()) == stored(tiny_records, "eval", SIZE)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_decoding_squeezes_the_whole_image_whatever_its_kind():
    halves = np.zeros([40, 80, 3], np.uint8)
    halves[:, 40:] = (0, 0, 255)
    for encoded in (tf.io.encode_png(halves), tf.io.encode_jpeg(halves, quality=95)):
        image = decode_image(encoded, SIZE).numpy()
        assert image.shape == (SIZE, SIZE, 3)
        np.testing.assert_allclose(image[:, : SIZE // 2 - 1], 0, atol=12)
        blue = np.broadcast_to([0, 0, 255], [SIZE, SIZE // 2 - 1, 3])
        np.testing.assert_allclose(image[:, SIZE // 2 + 1 :], blue, atol=12)


@pytest.mark.parametrize("encode", [tf.io.encode_png, tf.io.encode_jpeg])
@pytest.mark.parametrize("shape", [(1600, 1600), (200, 1600)])
def test_no_pixels_are_passed_over(encode, shape):
    stripes = np.zeros([*shape, 3], np.uint8)
    stripes[:, ::2] = 255
    image = decode_image(encode(stripes), SIZE).numpy()
    np.testing.assert_allclose(image, 127, atol=6)
