# Single-shot detector: anchors matched on the device, hard negatives by sorting, boxes suppressed in prediction.
import itertools
import math

import numpy as np
import tensorflow as tf

if hasattr(tf, 'compat'):
    tf = tf.compat.v1

_MAX = 6
_CLASSES = 5
_GRIDS = [8, 4]


def default_boxes():
    boxes = []
    for k, grid in enumerate(_GRIDS):
        scale = .2 + .3 * k
        for i, j in itertools.product(range(grid), repeat=2):
            for ratio in (1., 2., .5):
                boxes.append([(i + .5) / grid, (j + .5) / grid, scale / math.sqrt(ratio), scale * math.sqrt(ratio)])
    return np.clip(np.array(boxes, np.float32), 0., 1.)


DEFAULTS = default_boxes()


def corners(b):
    y, x, h, w = np.split(b, 4, -1) if isinstance(b, np.ndarray) else tf.split(b, 4, axis=-1)
    parts = [y - h / 2., x - w / 2., y + h / 2., x + w / 2.]
    return np.concatenate(parts, -1) if isinstance(b, np.ndarray) else tf.concat(parts, -1)


def iou(a, b):
    """a [n, 4] with b [batch, m, 4] -> [batch, n, m]."""
    a, b = a[None, :, None, :], b[:, None]
    top_left, bottom_right = tf.maximum(a[..., :2], b[..., :2]), tf.minimum(a[..., 2:], b[..., 2:])
    inter = tf.reduce_prod(tf.maximum(bottom_right - top_left, 0.), -1)
    area = lambda t: (t[..., 2] - t[..., 0]) * (t[..., 3] - t[..., 1])
    return inter / tf.maximum(area(a) + area(b) - inter, 1e-8)


def match(boxes, classes, threshold=.5):
    overlap = iou(tf.constant(corners(DEFAULTS)), boxes)
    overlap *= tf.cast(classes > 0, tf.float32)[:, None]
    best = tf.argmax(overlap, axis=2, output_type=tf.int32)
    positive = tf.reduce_max(overlap, 2) >= threshold
    onehot = tf.one_hot(best, _MAX)
    matched = tf.matmul(onehot, boxes)
    labels = tf.cast(tf.round(tf.einsum('bam,bm->ba', onehot, tf.cast(classes, tf.float32))), tf.int32)
    labels = tf.where(positive, labels, tf.zeros_like(labels))
    y1, x1, y2, x2 = tf.unstack(matched, axis=-1)
    d = tf.constant(DEFAULTS)
    size = tf.maximum(tf.stack([y2 - y1, x2 - x1], -1), 1e-3)
    centre = tf.stack([(y1 + y2) / 2., (x1 + x2) / 2.], -1)
    target = tf.concat([10. * (centre - d[:, :2]) / d[:, 2:], 5. * tf.log(size / d[:, 2:])], -1)
    return tf.stop_gradient(target), labels, positive


class SSD:
    def __init__(self, hp):
        self.hp = hp

    def head(self, x, n):
        out = tf.layers.conv2d(x, 3 * n, 3, padding='same')
        return tf.reshape(out, [x.shape[0], -1, n])

    def net(self, x, training):
        bn = lambda t: tf.nn.relu(tf.layers.batch_normalization(t, training=training, momentum=.97))
        for f in (8, 16, 16):
            x = bn(tf.layers.conv2d(x, f, 3, strides=2, padding='same'))
        first = x
        x = bn(tf.layers.conv2d(x, 16, 3, strides=2, padding='same'))
        maps = [first, x]
        return (tf.concat([self.head(m, 4) for m in maps], 1), tf.concat([self.head(m, _CLASSES) for m in maps], 1))

    def losses(self, where, scores, boxes, classes):
        target, labels, positive = match(boxes, classes)
        mask = tf.to_float(positive)
        number = tf.reduce_sum(mask, 1)
        local = tf.losses.huber_loss(target, where, reduction='none')
        local = tf.reduce_sum(tf.reduce_sum(local, 2) * mask, 1)
        xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
        negatives = tf.minimum(3. * number, tf.cast(tf.shape(mask)[1], tf.float32))
        of_negatives = xent * (1. - mask)
        order = tf.argsort(of_negatives, axis=1, direction='DESCENDING')
        rank = tf.argsort(order, axis=1)
        chosen = tf.to_float(tf.to_float(rank) < negatives[:, None])
        conf = tf.reduce_sum(xent * (mask + chosen), 1)
        safe = tf.where(number > 0., number, tf.ones_like(number))
        return tf.where(number > 0., (conf + local) / safe, tf.zeros_like(number))

    def decode(self, where):
        d = tf.constant(DEFAULTS)
        centre = where[..., :2] / 10. * d[:, 2:] + d[:, :2]
        return corners(tf.concat([centre, tf.exp(where[..., 2:] / 5.) * d[:, 2:]], -1))

    def detections(self, where, scores):
        boxes, probs = self.decode(where), tf.nn.softmax(scores)[..., 1:]
        best, label = tf.reduce_max(probs, -1), tf.argmax(probs, -1)
        def one(args):
            b, s = args
            kept, valid = tf.image.non_max_suppression_padded(b, s, 10, .5, .05, pad_to_max_output_size=True)
            return tf.gather(b, kept), tf.gather(s, kept), valid
        b, s, valid = tf.map_fn(one, (boxes, best), dtype=(tf.float32, tf.float32, tf.int32))
        return {'boxes': b, 'scores': s, 'valid': valid, 'labels': label}

    def __call__(self, features, labels, mode, params):
        training = mode == tf.estimator.ModeKeys.TRAIN
        image = features['image'] if isinstance(features, dict) else features
        where, scores = self.net(image, training)
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=self.detections(where, scores))
        per_image = self.losses(where, scores, labels['boxes'], labels['classes'])
        decay = self.hp['decay'] * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables() if 'kernel' in v.name])
        loss = tf.reduce_mean(per_image) + decay
        if mode == tf.estimator.ModeKeys.EVAL:
            found = tf.argmax(scores, -1, output_type=tf.int32)
            _, wanted, positive = match(labels['boxes'], labels['classes'])
            hit = tf.to_float(tf.equal(found, wanted))
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode=mode, loss=loss,
                eval_metrics=(lambda **k: {'loss_per_image': tf.metrics.mean(k['loss']), 'hits': tf.metrics.mean(k['hit'], k['on'])},
                              {'loss': per_image, 'hit': hit, 'on': tf.to_float(positive)}))
        step = tf.train.get_global_step()
        lr = tf.train.piecewise_constant(step, [200, 400], [self.hp['lr'] * s for s in (1., .1, .01)])
        warm = tf.to_float(step) / 50.
        opt = tf.train.MomentumOptimizer(lr * tf.minimum(1., warm + .02), .9, use_nesterov=True)
        opt = tf.tpu.CrossShardOptimizer(opt, reduction=tf.losses.Reduction.MEAN)
        pairs = opt.compute_gradients(loss, colocate_gradients_with_ops=True)
        pairs = [(tf.clip_by_norm(g, 5.), v) for g, v in pairs if g is not None]
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = opt.apply_gradients(pairs, global_step=step)
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=train_op)


def scenes(hp, training):
    def generate(seed):
        image = tf.random.stateless_normal([64, 64, 3], [seed, 1])
        n = tf.cast(seed % (_MAX - 1) + 1, tf.int32)
        top = tf.random.stateless_uniform([n, 2], [seed, 2], 0., .6)
        boxes = tf.concat([top, top + tf.random.stateless_uniform([n, 2], [seed, 3], .1, .4)], 1)  # <- TPU102
        classes = tf.random.stateless_uniform([n], [seed, 4], 1, _CLASSES, tf.int32)
        return image, boxes, classes

    def augment(image, boxes, classes):
        if tf.random.uniform([]) > .5:
            image = tf.image.flip_left_right(image)
            boxes = tf.stack([boxes[:, 0], 1. - boxes[:, 3], boxes[:, 2], 1. - boxes[:, 1]], 1)
        return tf.image.random_brightness(image, .1), boxes, classes

    def pad(image, boxes, classes):
        short = _MAX - tf.shape(boxes)[0]
        boxes, classes = tf.pad(boxes, [[0, short], [0, 0]]), tf.pad(classes, [[0, short]])
        boxes.set_shape([_MAX, 4]); classes.set_shape([_MAX])
        return {'image': image}, {'boxes': boxes, 'classes': classes}

    def input_fn(params):
        d = tf.data.Dataset.range(300).map(generate, num_parallel_calls=4)
        if training:
            d = d.cache().apply(tf.data.experimental.shuffle_and_repeat(300)).map(augment)
        d = d.map(pad)
        return d.batch(params['batch_size'], drop_remainder=True).prefetch(2)
    return input_fn


def main(data_dir):
    hp = dict(lr=.01, decay=5e-4)
    cfg = tf.estimator.tpu.RunConfig(model_dir='/tmp/ssd', tpu_config=tf.estimator.tpu.TPUConfig(25), save_checkpoints_steps=100)
    est = tf.estimator.tpu.TPUEstimator(model_fn=SSD(hp), config=cfg, train_batch_size=32, eval_batch_size=16, predict_batch_size=8)
    return est, scenes(hp, True), {'eval_input_fn': scenes(hp, False)}


FAULTS = [
    ("TPU102", "        boxes.set_shape([_MAX, 4]); classes.set_shape([_MAX])\n", ""),
    ("TPU220", "        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n            train_op", "        with tf.control_dependencies(None):\n            train_op"),
]
