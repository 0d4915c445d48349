"""A student learns from a teacher: a subclassed Keras model with a train_step of its own, for TPUStrategy."""
import argparse

import numpy as np
import tensorflow as tf
from tensorflow import keras

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=16)
parser.add_argument("--temperature", type=float, default=4.0)
parser.add_argument("--alpha", type=float, default=0.3)
parser.add_argument("--global-batch", type=int, default=64)
ARGS, _ = parser.parse_known_args([])


def blocks(width, depth, name):
    inputs = keras.Input((16, 16, 3))
    x = inputs
    for i in range(depth):
        x = keras.layers.Conv2D(width, 3, strides=2, padding="same", use_bias=False)(x)
        x = keras.layers.LayerNormalization(axis=[1, 2, 3])(x)
        x = keras.layers.Activation("swish")(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(5, dtype="float32")(x), name=name)


class Distiller(keras.Model):
    def __init__(self, student, teacher, alpha=0.1, temperature=3.0, **kw):
        super().__init__(**kw)
        self.student, self.teacher = student, teacher
        self.teacher.trainable = False
        self.alpha, self.temperature = alpha, temperature
        self.kl_tracker = keras.metrics.Mean(name="distillation_loss")
        self.hard_tracker = keras.metrics.Mean(name="student_loss")
        self.accuracy = keras.metrics.SparseCategoricalAccuracy(name="accuracy")

    @property
    def metrics(self):
        return [self.kl_tracker, self.hard_tracker, self.accuracy]

    def call(self, x, training=False):
        return self.student(x, training=training)

    def train_step(self, data):
        x, y = data
        soft = tf.nn.softmax(self.teacher(x, training=False) / self.temperature)
        with tf.GradientTape() as tape:
            logits = self.student(x, training=True)
            hard = tf.nn.compute_average_loss(
                keras.losses.sparse_categorical_crossentropy(y, logits, from_logits=True), global_batch_size=ARGS.global_batch
            )
            kl = tf.nn.compute_average_loss(
                keras.losses.kl_divergence(soft, tf.nn.softmax(logits / self.temperature)), global_batch_size=ARGS.global_batch
            )
            loss = self.alpha * hard + (1 - self.alpha) * kl * self.temperature**2
        variables = self.student.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.kl_tracker.update_state(kl)
        self.hard_tracker.update_state(hard)
        self.accuracy.update_state(y, logits)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        x, y = data
        logits = self(x, training=False)
        self.accuracy.update_state(y, logits)
        return {"accuracy": self.accuracy.result()}


def dataset(batch, training=True):
    r = np.random.RandomState(0)
    images, labels = r.randint(0, 255, (512, 16, 16, 3)).astype("uint8"), r.randint(0, 5, 512)
    ds = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        ds = ds.cache().shuffle(512).repeat()
    ds = ds.map(lambda i, l: (tf.image.convert_image_dtype(i, tf.float32), tf.cast(l, tf.int32)), tf.data.AUTOTUNE)
    return ds.batch(batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


def get_strategy():
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, KeyError):
        return tf.distribute.get_strategy()


def main(data_dir):
    with get_strategy().scope():
        model = Distiller(blocks(ARGS.width, 2, "student"), blocks(2 * ARGS.width, 3, "teacher"), ARGS.alpha, ARGS.temperature)
        schedule = keras.optimizers.schedules.PolynomialDecay(1e-3, 1000, 1e-5)
        model.compile(optimizer=keras.optimizers.Adam(schedule, clipnorm=1.0), steps_per_execution=50)
    return model, dataset(ARGS.global_batch)


FAULTS = [
    ("TPU205", "            logits = self.student(x, training=True)\n", "            logits = self.student(x, training=True)\n            tf.print('logits', logits[0])\n"),
]
