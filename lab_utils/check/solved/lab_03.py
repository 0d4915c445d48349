"""Made from solutions/source/03_static_shapes.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


import tempfile

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

v1 = tf.compat.v1
v1.logging.set_verbosity(v1.logging.ERROR)
tpu = v1.estimator.tpu

EVAL, PREDICT = "eval", "infer"  # tf.estimator.ModeKeys


digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.images))
held_out, kept = order[:360], order[360:]
train_images, train_labels = digits.images[kept], digits.target[kept].astype(np.int32)
eval_images, eval_labels = digits.images[held_out], digits.target[held_out].astype(np.int32)


def scaled(image):
    """Counts from 0 to 16, of any type -> float32 from 0 to 1."""
    return tf.cast(image, tf.float32) / 16.0


def inference(images):
    """float32 [B, 8, 8] from 0 to 1 -> logits, float32 [B, 10]."""
    net = images[:, :, :, None]
    net = v1.layers.conv2d(net, 32, 3, padding="same", activation=tf.nn.relu)
    net = v1.layers.max_pooling2d(net, 2, 2)
    net = v1.layers.flatten(net)
    net = v1.layers.dense(net, 64, activation=tf.nn.relu)
    return v1.layers.dense(net, 10)


def make_model(metric_fn):
    """The model_fn of lab 02; metric_fn(labels, logits, weight) makes its metrics."""

    def model_fn(features, labels, mode, params):
        logits = inference(features["image"])
        if mode == PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"class_id": tf.argmax(logits, axis=1)})
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        if mode == EVAL:
            tensors = [labels, logits, features["weight"]]
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, tensors))
        optimizer = v1.train.AdamOptimizer(params["learning_rate"])
        if params["use_tpu"]:
            optimizer = v1.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def count_all(labels, logits, weight):
    """The metric_fn of lab 02: every row counts, whatever its weight."""
    return {"accuracy": v1.metrics.accuracy(labels, tf.argmax(logits, axis=1))}


def make_estimator(model_fn, model_dir):
    """A TPUEstimator: 32 examples a core in training, 16 in evaluation, on the eight cores of a v2."""
    return tpu.TPUEstimator(
        model_fn,
        config=tpu.RunConfig(model_dir=model_dir, tf_random_seed=1, log_step_count_steps=None),
        use_tpu=False,
        train_batch_size=256,
        eval_batch_size=128,
        predict_batch_size=128,
        params={"learning_rate": 0.003},
    )


def weighted_examples(images, labels):
    """Dataset of ({"image": float32 [8, 8], "weight": 1.0}, int32), one element an example."""
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return dataset.map(lambda image, label: ({"image": scaled(image), "weight": 1.0}, label))


def train_input(params):
    """Shuffled and endless: repeat() stands before batch(), so that nothing is dropped."""
    examples = weighted_examples(train_images, train_labels).shuffle(2048, seed=1).repeat()
    return examples.batch(params["batch_size"], drop_remainder=True)


def whole_picture(features, label):
    image = tf.where(features["image"][:, 4:5] > 0, features["image"], 0.0)
    return {"image": image, "weight": features["weight"]}, label


def rows_kept(params):
    examples = weighted_examples(train_images, train_labels).repeat().map(whole_picture)
    return examples.padded_batch(params["batch_size"], drop_remainder=True)


def eval_plan(examples, per_core, cores):
    """(seen, steps, padding) of an evaluation of that many examples: whole numbers."""
    # TODO 3a: seen, steps, padding
    batch = per_core * cores
    seen = examples // batch * batch
    steps = -(-examples // batch)
    return seen, steps, steps * batch - examples


def make_eval_input_fn(images, labels):
    """Returns input_fn(params): ({"image": float32 [B, 8, 8], "weight": float32 [B]}, int32 [B])."""

    def input_fn(params):
        examples = weighted_examples(images, labels)
        # TODO 3b: examples, then padding of weight 0; full batches
        nothing = ({"image": tf.zeros([8, 8]), "weight": 0.0}, 0)
        padding = tf.data.Dataset.from_tensors(nothing).repeat()
        return examples.concatenate(padding).batch(params["batch_size"], drop_remainder=True)

    return input_fn


def metric_fn(labels, logits, weight):
    """int32 [B], float32 [B, 10], float32 [B] -> metrics of the rows with weight 1."""
    # TODO 3c: {"accuracy": ...} of labels, logits and weight
    predicted = tf.argmax(logits, axis=1)
    return {"accuracy": v1.metrics.accuracy(labels, predicted, weights=weight)}


SIDE = 64


def prepared(encoded):
    """The bytes of a JPEG file, a scalar string -> float32 [SIDE, SIDE, 3] from 0 to 1."""
    # TODO 3d: a file of any size -> a picture of one
    image = tf.io.decode_jpeg(encoded, channels=3)
    return tf.image.resize(image, [SIDE, SIDE]) / 255.0


def stretched(image):
    """NumPy: float32 of any shape -> the same, the darkest value at 0 and the brightest at 1."""
    low, high = image.min(), image.max()
    return ((image - low) / max(high - low, 1e-6)).astype(np.float32)


def with_contrast(image):
    """float32 of a static shape -> the same by NumPy's `stretched`, with its static shape."""
    result = tf.numpy_function(stretched, [image], tf.float32)
    # TODO 3e: result, with the shape of image
    return tf.ensure_shape(result, image.shape)


SENTENCES = """call me ishmael
marley was dead to begin with
it was the best of times it was the worst of times it was the age of wisdom
there was no possibility of taking a walk that day
alice was beginning to get very tired of sitting by her sister on the bank
to be or not to be that is the question
my fathers family name being pirrip and my christian name philip my infant tongue could make nothing longer
it was a dark and stormy night"""
lines = [line.split() for line in SENTENCES.splitlines()]
every_word = sorted({word for line in lines for word in line})
vocabulary = {word: number for number, word in enumerate(every_word, 1)}
numbered = [[vocabulary[word] for word in line] for line in lines]


def sentences():
    """Dataset of int32 [any]: one sentence an element, 8 in all."""
    return tf.data.Dataset.from_generator(
        lambda: iter(numbered), output_signature=tf.TensorSpec([None], tf.int32)
    )


def padded(dataset, length, batch):
    """int32 [any] -> pairs (int32 [batch, length], how many of them are words: int32 [batch])."""
    # TODO 3f: sentences -> batches of one length, and their counts
    pairs = dataset.map(lambda words: (words[:length], tf.minimum(tf.size(words), length)))
    return pairs.padded_batch(batch, ([length], []), drop_remainder=True)


def mean_of_words(vectors, lengths):
    """float32 [B, T, D], int32 [B] -> float32 [B, D]: the mean of the first lengths[b] of T vectors."""
    # TODO 3g: the mean over words alone
    mask = tf.sequence_mask(lengths, vectors.shape[1], vectors.dtype)[:, :, None]
    total = tf.reduce_sum(vectors * mask, axis=1)
    return total / tf.maximum(tf.reduce_sum(mask, axis=1), 1.0)
