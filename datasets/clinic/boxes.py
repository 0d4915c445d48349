"""Finds the boxes of parcels in a picture: labels of differing number, evaluation padded to full batches."""

import numpy as np
import tensorflow.compat.v1 as tf

SIDE, MAX_BOXES, NUM_TRAIN, NUM_EVAL = 16, 6, 256, 150


class Hyperparameters(dict):
    """A dict whose entries are attributes too."""

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


def default_hparams():
    return Hyperparameters(filters=8, learning_rate=0.02, momentum=0.9, box_weight=5.0)


def parcels(count, seed):
    """A picture and its boxes [n, 4] (middle, height, width; 0 to 1), n from 1 to 6, one after another."""
    random = np.random.RandomState(seed)
    for _ in range(count):
        number = random.randint(1, MAX_BOXES + 1)
        boxes = random.uniform(0.1, 0.9, [number, 4]).astype(np.float32)
        picture = random.uniform(0, 0.1, [SIDE, SIDE, 1]).astype(np.float32)
        for y, x, _, _ in boxes:
            picture[int(y * SIDE), int(x * SIDE)] = 1.0
        yield picture, boxes


class ParcelReader:
    """Reads pictures with their boxes; in evaluation it fills the last batch with pictures that do not count."""

    def __init__(self, count, seed, training):
        self.count, self.seed, self.training = count, seed, training

    def _padded(self, picture, boxes):
        number = tf.shape(boxes)[0]
        boxes = tf.pad(boxes, [[0, MAX_BOXES - number], [0, 0]])
        boxes = tf.ensure_shape(boxes, [MAX_BOXES, 4])
        labels = {"boxes": boxes, "number": number}
        return {"image": picture, "is_real": tf.constant(1.0)}, labels

    def _filler(self):
        none = {"image": tf.zeros([SIDE, SIDE, 1]), "is_real": tf.constant(0.0)}
        labels = {"boxes": tf.zeros([MAX_BOXES, 4]), "number": tf.constant(1)}
        return tf.data.Dataset.from_tensors((none, labels)).repeat()

    def __call__(self, params):
        batch_size = params["batch_size"]
        signature = (tf.TensorSpec([SIDE, SIDE, 1]), tf.TensorSpec([None, 4]))
        rows = lambda: parcels(self.count, self.seed)
        dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)
        dataset = dataset.map(self._padded)
        if self.training:
            dataset = dataset.shuffle(NUM_TRAIN).repeat()
        else:
            steps = -(-self.count // batch_size)
            dataset = dataset.concatenate(self._filler()).take(steps * batch_size)
        return dataset.batch(batch_size, drop_remainder=True)


def network(image, params, training):
    net = tf.layers.conv2d(image, params.filters, 3, 2, "same", activation=tf.nn.relu, name="one")
    net = tf.layers.conv2d(net, params.filters, 3, 2, "same", activation=tf.nn.relu, name="two")
    net = tf.layers.flatten(net)
    count = tf.layers.dense(net, MAX_BOXES, name="count")
    boxes = tf.reshape(tf.layers.dense(net, MAX_BOXES * 4, name="boxes"), [-1, MAX_BOXES, 4])
    return count, boxes


def box_losses(boxes, labels):
    """The mean squared error of the boxes that are there, an example: [B]."""
    there = tf.sequence_mask(labels["number"], MAX_BOXES, tf.float32)
    errors = tf.reduce_sum(tf.square(boxes - labels["boxes"]), axis=2) * there
    return tf.reduce_sum(errors, axis=1) / tf.cast(labels["number"], tf.float32)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    count, boxes = network(features["image"], params, training)
    count_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels["number"] - 1, logits=count
    )
    losses = count_losses + params.box_weight * box_losses(boxes, labels)
    loss = tf.reduce_mean(losses)
    if training:
        optimizer = tf.train.MomentumOptimizer(params.learning_rate, params.momentum)
        if params.use_tpu:
            optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def metric_fn(number, count, box_loss, is_real):
        chosen = tf.argmax(count, axis=1, output_type=tf.int32) + 1
        return {
            "count_accuracy": tf.metrics.accuracy(number, chosen, weights=is_real),
            "box_loss": tf.metrics.mean(box_loss, weights=is_real),
        }

    tensors = {
        "number": labels["number"],
        "count": count,
        "box_loss": box_losses(boxes, labels),
        "is_real": features["is_real"],
    }
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, tensors))


def port():
    config = tf.estimator.tpu.RunConfig(
        model_dir="run/boxes",
        save_checkpoints_steps=500,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=250),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=64,
        eval_batch_size=64,
        params=default_hparams(),
    )
    inputs = {"eval_input_fn": ParcelReader(NUM_EVAL, 2, training=False)}
    return estimator, ParcelReader(NUM_TRAIN, 1, training=True), inputs


WARD = {
    "weight": "is_real",
    "others": {
        "a mask of unknown width": "sequence_mask gets MAX_BOXES, so the mask has a fixed width.",
        "the padding boxes are counted in the loss": "The mask sets their errors to zero.",
        "a subclass of dict cannot be params": (
            "TPUEstimator copies params and adds entries, which a subclass of dict allows."
        ),
        "the optimizer is wrapped on a CPU too": "It is wrapped only if params.use_tpu.",
        "the last evaluation examples are left out": "The last batch is filled up, so every picture is seen.",
    },
    "healthy": {
        "there = tf.sequence_mask(": "maxlen is given, so the mask has a fixed width.",
        "take(steps * batch_size)": (
            "All batches are full, since the last one is filled up, so every picture is seen."
        ),
        "errors = tf.reduce_sum(": "The mask removes the padding boxes.",
        "return self[name]": "TPUEstimator copies params and adds entries, so a subclass of dict is fine.",
        "from_generator(rows": "The generator runs on the host, and its signature names its shapes.",
    },
    "faults": [
        {
            "rule": "TPU128",
            "right": """        number = tf.shape(boxes)[0]
        boxes = tf.pad(boxes, [[0, MAX_BOXES - number], [0, 0]])
        boxes = tf.ensure_shape(boxes, [MAX_BOXES, 4])
        labels = {"boxes": boxes, "number": number}
        return {"image": picture, "is_real": tf.constant(1.0)}, labels

    def _filler(self):
        none = {"image": tf.zeros([SIDE, SIDE, 1]), "is_real": tf.constant(0.0)}
        labels = {"boxes": tf.zeros([MAX_BOXES, 4]), "number": tf.constant(1)}
""",
            "wrong": """        boxes = tf.RaggedTensor.from_tensor(boxes)
        number = tf.cast(boxes.nrows(), tf.int32)
        labels = {"boxes": boxes, "number": number}
        return {"image": picture, "is_real": tf.constant(1.0)}, labels

    def _filler(self):
        none = {"image": tf.zeros([SIDE, SIDE, 1]), "is_real": tf.constant(0.0)}
        boxes = tf.RaggedTensor.from_tensor(tf.zeros([1, 4]))
        labels = {"boxes": boxes, "number": tf.constant(1)}
""",
            "at": ("boxes = tf.RaggedTensor.from_tensor(boxes)", "dataset = dataset.map(self._padded)"),
            "why": "labels of differing length are sent as they are",
            "comment": "The infeed accepts only dense tensors of one shape, so pad the boxes, and keep their number.",
        },
        {
            "rule": "TPU214",
            "right": '        batch_size = params["batch_size"]\n        signature',
            "wrong": '        batch_size = params["batch_size"] // 8  # a core\'s share\n        signature',
            "at": ("batch_size = params[", "return dataset.batch(batch_size"),
            "why": "each core gets an eighth of the examples that it should get",
            "comment": (
                "params['batch_size'] is the size of the batches that input_fn should make: TPUEstimator has "
                "already divided the global batch."
            ),
        },
        {
            "rule": "TPU106",
            "right": "        train_batch_size=64,\n",
            "wrong": "        train_batch_size=60,\n",
            "why": "a number that eight cores cannot share",
            "comment": "60 is not a multiple of 8.",
        },
        {
            "rule": "TPU118",
            "right": '            "box_loss": tf.metrics.mean(box_loss, weights=is_real),\n        }\n\n    tensors',
            "wrong": '            "box_loss": tf.metrics.mean(box_losses(boxes, labels), weights=is_real),\n        }\n\n    tensors',
            "at": ('"box_loss": tf.metrics.mean(',),
            "why": "a function of the host uses a tensor of the core that the list lacks",
            "comment": "metric_fn runs on the host, and gets only the tensors that eval_metrics lists.",
        },
        {
            "rule": "",
            "right": "tf.metrics.accuracy(number, chosen, weights=is_real)",
            "wrong": "tf.metrics.accuracy(number, chosen)",
            "why": "examples that fill the last batch are counted",
            "comment": (
                "Without weights, the 42 padding pictures count too, so the accuracy is not that of the data set."
            ),
            "silent": True,
        },
        {
            "rule": "TPU224",
            "right": "    loss = tf.reduce_mean(losses)\n    if training:\n",
            "wrong": "    loss = tf.reduce_mean(losses)\n    mean_loss, update = tf.metrics.mean(losses)\n    if training:\n        with tf.control_dependencies([update]):\n            loss = tf.identity(loss)\n",
            "at": ("mean_loss, update = tf.metrics.mean(losses)", "with tf.control_dependencies([update])", "loss = tf.identity(loss)"),
            "why": "a metric is counted on each core, and nobody reads it",
            "comment": (
                "Metrics belong in metric_fn. Here, each core counts only its own examples, nobody reads the "
                "result, and the step gets slower."
            ),
            "silent": True,
        },
    ],
}
