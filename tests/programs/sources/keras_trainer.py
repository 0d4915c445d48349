"""A Keras model for TPUStrategy: fit takes a dataset whose last batch is smaller, as tutorials had it."""

import numpy as np
import tensorflow as tf

SIDE, CLASSES = 16, 5


def create_model():
    regularizer = tf.keras.regularizers.l2(1e-4)
    return tf.keras.Sequential(
        [
            tf.keras.layers.Conv2D(8, 3, activation="relu", kernel_regularizer=regularizer, input_shape=(SIDE, SIDE, 1)),
            tf.keras.layers.Conv2D(8, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(CLASSES),
        ]
    )


def get_dataset(batch_size, is_training=True):
    random = np.random.RandomState(0)
    images = random.rand(500, SIDE, SIDE, 1)
    labels = random.randint(0, CLASSES, [500])

    def scale(image, label):
        return tf.cast(image, tf.float32) * 2.0 - 1.0, label

    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).map(scale)
    if is_training:
        dataset = dataset.shuffle(500)
    return dataset.batch(batch_size)


def main(data_dir):
    model = create_model()
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["sparse_categorical_accuracy"],
    )
    return model, get_dataset(64)


FAULTS = []
