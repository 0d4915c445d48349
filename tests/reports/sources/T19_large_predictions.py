from ported import FAULTY, PREDICT, estimator, logits_of, predict_input, spec, tf, tpu, train_input


def model_fn(features, labels, mode, params):
    logits = logits_of(features)
    if mode == PREDICT:
        masks = tf.tile(logits, [1, 131072])
        return tpu.TPUEstimatorSpec(mode, predictions={"mask": masks})  # <- TPU199
    return spec(mode, labels, logits)


port = estimator(model_fn, predict_batch_size=1024 if FAULTY else 8)
port.train(train_input, max_steps=100)
list(port.predict(predict_input))
