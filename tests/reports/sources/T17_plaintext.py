from ported import FAULTY, arrays, estimator, logits_of, spec, tf


def keep(row, label, text):
    features = {"row": row, "length": tf.strings.length(text)}
    if FAULTY:
        features["plaintext"] = text
    return features, label


def input_fn(params):
    rows, labels = arrays()
    data = tf.data.Dataset.from_tensor_slices((rows, labels, [f"word {n}" for n in labels]))
    data = data.map(keep)  # <- TPU119
    return data.shuffle(512).repeat().batch(params["batch_size"], drop_remainder=True)


def model_fn(features, labels, mode, params):
    row = features["row"] + tf.cast(features["length"], tf.float32)[:, None]
    return spec(mode, labels, logits_of(row))


estimator(model_fn).train(input_fn, max_steps=100)
