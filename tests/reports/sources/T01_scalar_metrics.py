from ported import (
    EVAL,
    FAULTY,
    estimator,
    eval_input,
    logits_of,
    loss_of,
    spec,
    tf,
    tpu,
    train_input,
    v1,
)


def mean_cost(labels, costs):
    return {"cost": v1.metrics.mean(costs)}


def model_fn(features, labels, mode, params):
    logits = logits_of(features)
    if mode != EVAL:
        return spec(mode, labels, logits)
    costs = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    loss = loss_of(labels, logits)
    if FAULTY:
        costs = tf.reduce_mean(costs)  # <- cause
    metrics = (mean_cost, [labels, costs])
    return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)  # <- TPU111


port = estimator(model_fn)
port.train(train_input, max_steps=100)
port.evaluate(eval_input, steps=8)
