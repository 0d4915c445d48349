import os

from ported import FAULTY, arrays, config, model_fn, tf, tpu


def rows():
    yield from zip(*arrays(), strict=True)


def input_fn(params):
    if FAULTY:
        kinds = (tf.TensorSpec([8], tf.float32), tf.TensorSpec([], tf.int32))
        data = tf.data.Dataset.from_generator(rows, output_signature=kinds)  # <- TPU228
    else:
        data = tf.data.Dataset.from_tensor_slices(arrays())
    return data.shuffle(512).repeat().batch(params["batch_size"], drop_remainder=True)


address = "grpc://" + os.environ["COLAB_TPU_ADDR"]
port = tpu.TPUEstimator(model_fn, config=config(address), use_tpu=True, train_batch_size=64)
port.train(input_fn, max_steps=100)
