from ported import FAULTY, estimator, logits_of, loss_of, tf, tpu, train_input, v1


class PlainAdam(v1.train.Optimizer):
    """Adam without the correction of its first steps."""

    def __init__(self, rate):
        super().__init__(False, "PlainAdam")
        self.rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        updates = [global_step.assign_add(1)] if global_step is not None else []
        for gradient, variable in grads_and_vars:
            key = variable.op.name
            mean = v1.get_variable(key + "/m", variable.shape, trainable=False)
            square = v1.get_variable(
                key + "/v", variable.shape, trainable=False, initializer=tf.ones_initializer()
            )
            new_mean = 0.9 * mean + 0.1 * gradient
            new_square = 0.99 * square + 0.01 * tf.square(gradient)
            step = self.rate * new_mean / (tf.sqrt(new_square) + 1e-6)
            updates += [mean.assign(new_mean), square.assign(new_square), variable.assign_sub(step)]
        return tf.group(*updates, name=name)


def model_fn(features, labels, mode, params):
    loss = loss_of(labels, logits_of(features))
    optimizer = PlainAdam(0.01)
    if not FAULTY:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, v1.train.get_global_step())  # <- TPU201
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


estimator(model_fn).train(train_input, max_steps=100)
