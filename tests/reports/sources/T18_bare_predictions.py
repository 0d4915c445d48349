from ported import FAULTY, PREDICT, estimator, logits_of, predict_input, spec, tf, tpu, train_input


def model_fn(features, labels, mode, params):
    logits = logits_of(features)
    if mode == PREDICT:
        classes = tf.argmax(logits, 1)
        predictions = classes if FAULTY else {"class": classes}
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)  # <- TPU122
    return spec(mode, labels, logits)


port = estimator(model_fn)
port.train(train_input, max_steps=100)
list(port.predict(predict_input))
