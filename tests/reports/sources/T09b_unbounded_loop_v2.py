from ported import FAULTY, estimator, logits_of, spec, tf, train_input, v1


def ponder(state):
    weight = v1.get_variable("ponder", [8, 8])
    bound = {} if FAULTY else {"maximum_iterations": 6}
    _, state = tf.while_loop(  # <- TPU301
        lambda turn, state: tf.logical_and(turn < 6, tf.reduce_any(state < 0.99)),
        lambda turn, state: (turn + 1, tf.sigmoid(tf.matmul(state, weight))),
        (0, state),
        **bound,
    )
    return state


def model_fn(features, labels, mode, params):
    return spec(mode, labels, logits_of(ponder(features)))


estimator(model_fn).train(train_input, max_steps=100)
