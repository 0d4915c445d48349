from ported import FAULTY, estimator, logits_of, loss_of, minimize, tf, tpu, train_input, v1


def model_fn(features, labels, mode, params):
    logits = logits_of(features)
    right = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    tf.reduce_mean(tf.cast(right, tf.float32), name="right/share")
    loss = loss_of(labels, logits)
    hooks = []
    if FAULTY:
        hooks.append(v1.train.LoggingTensorHook(["right/share"], every_n_iter=50))  # <- TPU115
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss), training_hooks=hooks)


estimator(model_fn).train(train_input, max_steps=100)
