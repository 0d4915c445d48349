from ported import FAULTY, estimator, logits_of, loss_of, tpu, train_input, v1


def model_fn(features, labels, mode, params):
    loss = loss_of(labels, logits_of(features))
    module = tpu if FAULTY else v1.tpu
    optimizer = module.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))  # <- TPU199
    train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


estimator(model_fn).train(train_input, max_steps=100)
