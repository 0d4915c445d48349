from ported import FAULTY, estimator, logits_of, loss_of, minimize, tf, tpu, train_input


def drawn():
    return tf.random.truncated_normal([8], stddev=0.1)


def model_fn(features, labels, mode, params):
    scores = tf.Variable(drawn() if FAULTY else drawn, name="scores")  # <- TPU199
    loss = loss_of(labels, logits_of(features * tf.nn.softmax(scores)))
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss))


estimator(model_fn).train(train_input, max_steps=100)
