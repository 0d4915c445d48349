"""Random views of training images, drawn inside the model, on the device that trains.

A view is a random part of the image, stretched and mirrored at random. Bilinear sampling along one axis
is linear, so a whole batch of views is two batched matmuls, which is what a TPU does best; the
same work in tf.data would cost the host more time than decoding does.
"""

import math

import tensorflow as tf

SMALLEST_AREA = 0.4  # a view shows at least this share of the image
ASPECT = 0.25  # the view's aspect changes by at most e**0.25
LIGHT = 0.25  # brightness, contrast and saturation change by at most this


def _sampling_matrix(start: tf.Tensor, length: tf.Tensor, source: int, target: int) -> tf.Tensor:
    """Bilinear weights that cut `[start, start + length]` of an axis out of `source` pixels.

    Args: start, length: float32 [B], as shares of the axis; a negative length mirrors.
    Returns: float32 [B, target, source]; each row sums to 1.
    """
    steps = (tf.range(target, dtype=tf.float32) + 0.5) / target
    centres = (start[:, None] + length[:, None] * steps) * source - 0.5
    centres = tf.clip_by_value(centres, 0.0, source - 1.0)
    pixels = tf.range(source, dtype=tf.float32)
    return tf.maximum(0.0, 1.0 - tf.abs(centres[:, :, None] - pixels))


def random_views(images: tf.Tensor, size: int, seed: tf.Tensor) -> tf.Tensor:
    """Cuts one random view out of each image.

    Args:
        images: float [B, S, S, 3], values in [-1, 1].
        size: side of the views, in pixels.
        seed: two integers, as a tensor or a sequence. The same seed draws the same views: made from the
            step, it lets a run that was stopped and resumed see what an uninterrupted one sees.

    Returns:
        [B, size, size, 3] of the same dtype. Light changes too: values may leave [-1, 1].
    """
    batch, source = images.shape[0], images.shape[1]
    seed = tf.cast(tf.convert_to_tensor(seed), tf.int32)

    def uniform(key: int, low: float, high: float, width: int = 1) -> tf.Tensor:
        return tf.random.stateless_uniform([batch, width], seed + [key, 0], low, high)

    scale = tf.sqrt(uniform(0, SMALLEST_AREA, 1.0))
    stretch = tf.exp(uniform(1, -ASPECT / 2, ASPECT / 2))
    height = tf.minimum(1.0, scale * stretch)[:, 0]
    width = tf.minimum(1.0, scale / stretch)[:, 0]
    top = uniform(2, 0.0, 1.0)[:, 0] * (1.0 - height)
    left = uniform(3, 0.0, 1.0)[:, 0] * (1.0 - width)
    mirrored = uniform(4, 0.0, 1.0)[:, 0] < 0.5
    left = tf.where(mirrored, left + width, left)
    width = tf.where(mirrored, -width, width)

    rows = tf.cast(_sampling_matrix(top, height, source, size), images.dtype)
    columns = tf.cast(_sampling_matrix(left, width, source, size), images.dtype)
    images = tf.matmul(rows, tf.reshape(images, [batch, source, source * 3]))
    images = tf.reshape(images, [batch, size, source, 3])
    images = tf.einsum("bwj,bhjc->bhwc", columns, images)
    return _random_light(images, uniform)


def _random_light(images: tf.Tensor, uniform) -> tf.Tensor:
    """Changes brightness, contrast and saturation, folded into one pass over the pixels."""

    def factor(key: int) -> tf.Tensor:
        change = uniform(key, -math.log1p(LIGHT), math.log1p(LIGHT))
        return tf.cast(tf.exp(change), images.dtype)[:, :, None, None]

    grey = tf.reduce_mean(images, 3, keepdims=True)
    mean = tf.reduce_mean(grey, [1, 2], keepdims=True)
    contrast, saturation = factor(6), factor(7)
    brightness = tf.cast(uniform(5, -LIGHT, LIGHT), images.dtype)[:, :, None, None]
    shift = grey * (contrast * (1 - saturation)) + (mean * (1 - contrast) + brightness)
    return images * (contrast * saturation) + shift
