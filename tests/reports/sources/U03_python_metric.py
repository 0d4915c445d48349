import numpy as np
from ported import (
    FAULTY,
    config,
    eval_input,
    logits_of,
    loss_of,
    minimize,
    tf,
    tpu,
    train_input,
    v1,
)  # fmt: skip


def share_of_hits(labels, classes):
    return np.float32(np.mean(labels == classes))


def metric_fn(labels, logits):
    classes = tf.argmax(logits, 1, output_type=tf.int32)
    if FAULTY:
        share = tf.numpy_function(share_of_hits, [labels, classes], tf.float32)  # <- TPU228
        return {"accuracy": v1.metrics.mean(tf.ensure_shape(share, []))}
    return {"accuracy": v1.metrics.accuracy(labels, classes)}


def model_fn(features, labels, mode, params):
    logits = logits_of(features)
    loss = loss_of(labels, logits)
    if mode == "eval":
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss))


port = tpu.TPUEstimator(
    model_fn,
    config=config("grpc://10.0.0.2:8470"),
    use_tpu=True,
    train_batch_size=64,
    eval_batch_size=64,
)
port.train(train_input, max_steps=100)
print(port.evaluate(eval_input, steps=8))
