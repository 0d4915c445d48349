"""The flowers model: one inference function, and the `model_fn` around it that a CPU and a TPU both run.

The four changes of a TPU port are all here or in `task.py`: the optimizer wrapped in CrossShardOptimizer,
TPUEstimatorSpec with a metric_fn, a RunConfig with TPUConfig, and TPUEstimator.
"""

from typing import Any

from lab_utils.estimator import tf, v1
from lab_utils.flowers import recipe
from lab_utils.flowers.augment import random_views

SUMMARY_STEPS = 10


def inference(
    images: tf.Tensor, *, classes: int, training: bool, dropout: float = recipe.DROPOUT
) -> tf.Tensor:
    """From images to class scores: the part that training, evaluation and serving share.

    Each 4 by 4 patch of pixels becomes one position with 48 channels: the first convolution then works
    on a quarter of the width and height, and a TPU is spared a last axis of 3 padded to 128. Pooling over
    all positions stands where 33 million dense weights once stood.

    Args:
        images: float32 or bfloat16 [B, S, S, 3] in [-1, 1]; S a multiple of 16, at least 32.
        classes: number of classes.
        training: use the batch's own statistics, and dropout.
        dropout: share of the pooled features that training drops.

    Returns:
        Logits, float32 [B, classes]. Variables are float32 whatever the images are.
    """
    # Named, since the layers' own default of the same distribution ignores the graph's seed.
    glorot = v1.glorot_uniform_initializer()
    x = tf.nn.space_to_depth(images, 4)
    for index, filters in enumerate(recipe.WIDTHS):
        if index:
            x = v1.layers.max_pooling2d(x, 2, 2)
        x = v1.layers.conv2d(
            x, filters, 3, padding="same", use_bias=False, kernel_initializer=glorot
        )
        x = tf.nn.relu(
            v1.layers.batch_normalization(x, training=training, momentum=recipe.STATISTICS_MOMENTUM)
        )
    x = tf.reduce_mean(x, [1, 2])
    x = v1.layers.dropout(x, dropout, training=training)
    return tf.cast(v1.layers.dense(x, classes, kernel_initializer=glorot), tf.float32)


def _logits(images: tf.Tensor, params: dict[str, Any], mode: str) -> tf.Tensor:
    """uint8 images as `input_pipeline` and `serving` give them -> logits."""
    training = mode == v1.estimator.ModeKeys.TRAIN
    predicting = mode == v1.estimator.ModeKeys.PREDICT
    bfloat16 = params.get("use_bfloat16") and (params["use_tpu"] or not predicting)
    images = tf.cast(images, tf.bfloat16 if bfloat16 else tf.float32) / 127.5 - 1.0
    repeatable = params.get("repeatable", False)
    if training and not repeatable:
        step = tf.cast(v1.train.get_or_create_global_step(), tf.int32)
        seed = tf.stack([params.get("seed", 0), step])
        images = random_views(images, params["image_size"], seed)
    arguments = {
        "classes": len(params["labels"]),
        "training": training,
        "dropout": 0.0 if repeatable else recipe.DROPOUT,
    }
    if bfloat16:
        with v1.tpu.bfloat16_scope():
            return inference(images, **arguments)
    return inference(images, **arguments)


def learning_rate(params: dict[str, Any], step: tf.Tensor) -> tf.Tensor:
    """Rises linearly, then falls along half a cosine to zero at `train_steps`; float32 scalar."""
    progress = tf.cast(step, tf.float32) / params["train_steps"]
    rise = tf.minimum(1.0, progress / recipe.WARMUP + 1e-3)
    fall = 0.5 * (1.0 + tf.cos(3.14159265 * tf.minimum(1.0, progress)))
    return params["learning_rate"] * rise * fall


def _confusion(labels, predicted, weights, classes: int) -> tuple[tf.Tensor, tf.Tensor]:
    """A streaming confusion matrix, float32 [classes, classes]: rows are labels, columns predictions."""
    total = v1.get_variable(
        "confusion",
        [classes, classes],
        initializer=v1.zeros_initializer(),
        trainable=False,
        collections=[v1.GraphKeys.LOCAL_VARIABLES, v1.GraphKeys.METRIC_VARIABLES],
    )
    batch = tf.math.confusion_matrix(labels, predicted, classes, weights, tf.float32)
    return total.read_value(), total.assign_add(batch)


def metric_fn(labels, logits, cross_entropy, weights) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
    """Runs on the host, on the tensors of all cores together; padding has weight 0 and does not count.

    Args: labels int32 [B]; logits float32 [B, classes]; cross_entropy, weights float32 [B].
    """
    predicted = tf.argmax(logits, 1)
    return {
        "accuracy": v1.metrics.accuracy(labels, predicted, weights),
        "cross_entropy": v1.metrics.mean(cross_entropy, weights),
        "confusion": _confusion(labels, predicted, weights, logits.shape[1]),
    }


def _host_call(params: dict[str, Any], loss: tf.Tensor, rate: tf.Tensor) -> tuple:
    """Summaries, written by the host since a TPU cannot; a tensor needs a batch axis to get there."""

    def write(step, loss, rate):
        writer = tf.summary.create_file_writer(params["model_dir"], filename_suffix=".host")
        due = tf.equal(step[0] % SUMMARY_STEPS, 0)
        with writer.as_default(), tf.summary.record_if(due):
            tf.summary.scalar("train/loss", tf.reduce_mean(loss), step=step[0])
            tf.summary.scalar("train/learning_rate", rate[0], step=step[0])
            return v1.summary.all_v2_summary_ops()

    step = tf.reshape(v1.train.get_global_step(), [1])
    return write, [step, tf.reshape(loss, [1]), tf.reshape(rate, [1])]


def prediction_spec(logits: tf.Tensor, params: dict[str, Any]) -> Any:
    """The spec of PREDICT, from logits [B, classes]; "class" only where strings can be."""
    predictions = {
        "class_id": tf.argmax(logits, 1, tf.int32),
        "probabilities": tf.nn.softmax(logits),
    }
    if not params["use_tpu"]:  # no strings on a TPU: names are looked up where there is a CPU
        predictions["class"] = tf.gather(tf.constant(params["labels"]), predictions["class_id"])
    outputs = {"serving_default": v1.estimator.export.PredictOutput(predictions)}
    return v1.estimator.tpu.TPUEstimatorSpec(
        v1.estimator.ModeKeys.PREDICT, predictions=predictions, export_outputs=outputs
    )


def evaluation_spec(logits: tf.Tensor, labels: tf.Tensor, weights: tf.Tensor) -> Any:
    """The spec of EVAL, from logits [B, classes], int32 and float32 [B]; weight 0 counts nowhere."""
    cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.math.divide_no_nan(tf.reduce_sum(cross_entropy * weights), tf.reduce_sum(weights))
    return v1.estimator.tpu.TPUEstimatorSpec(
        v1.estimator.ModeKeys.EVAL,
        loss=loss,
        eval_metrics=(metric_fn, [labels, logits, cross_entropy, weights]),
    )


def model_fn(features: dict[str, tf.Tensor], labels: tf.Tensor, mode: str, params: dict[str, Any]):
    """The model for TPUEstimator.

    Args:
        features: as `input_pipeline.make_input_fn` gives them; serving gives "image" alone.
        labels: int32 [B]; None to predict.
        mode: one of tf.estimator.ModeKeys.
        params: "labels" (the class names), "image_size", "train_steps", "learning_rate", "model_dir";
            optional "use_bfloat16", "seed", and "repeatable" for steps without dropout and random views, to
            compare ports by; "use_tpu" comes from TPUEstimator.

    Returns:
        A TPUEstimatorSpec.
    """
    training = mode == v1.estimator.ModeKeys.TRAIN
    logits = _logits(features["image"], params, mode)

    if mode == v1.estimator.ModeKeys.PREDICT:
        return prediction_spec(logits, params)
    if not training:
        return evaluation_spec(logits, labels, features["weight"])

    targets = tf.one_hot(labels, len(params["labels"]))
    smooth = v1.losses.softmax_cross_entropy(
        targets, logits, label_smoothing=recipe.LABEL_SMOOTHING
    )
    kernels = [v for v in v1.trainable_variables() if v.name.endswith("kernel:0")]
    loss = smooth + recipe.WEIGHT_DECAY * tf.add_n([tf.nn.l2_loss(kernel) for kernel in kernels])

    step = v1.train.get_global_step()
    rate = learning_rate(params, step)
    optimizer = v1.train.MomentumOptimizer(rate, momentum=recipe.MOMENTUM, use_nesterov=True)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):  # batch statistics
        train_op = optimizer.minimize(loss, global_step=step)
    host_call = _host_call(params, loss, rate)
    return v1.estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, host_call=host_call
    )
