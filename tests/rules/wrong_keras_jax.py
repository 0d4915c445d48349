"""Mistakes of programs of Keras on JAX, each with its own main.

They are judged in a process whose Keras is on JAX (keras_jax_worker.py), and so are registered apart.
"""

import numpy as np

from rules import Port, Wrong

PORTS: dict[str, Wrong] = {}
WIDTH = 8


def wrong(rule, place=""):
    """Registers a wrong port."""

    def register(make):
        PORTS[make.__name__] = Wrong(rule, make, place)
        return make

    return register


def rows(count=1024):
    """Examples and labels."""
    numbers = np.random.default_rng(1).normal(size=[count, WIDTH]).astype(np.float32)
    return numbers, numbers.sum(axis=1)


def data_parallel():
    """All devices share each batch."""
    import keras

    keras.distribution.set_distribution(keras.distribution.DataParallel())


def small():
    """A compiled model."""
    import keras

    layers = [
        keras.Input((WIDTH,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1),
    ]
    model = keras.Sequential(layers)
    model.compile("adam", "mse")
    return model


def of_class(kind):
    """A compiled model of a class of the program's own."""
    model = kind()
    model.compile("adam", "mse")
    return model


@wrong("TPU250")
def a_last_batch_that_does_not_divide(wrong):
    def main():
        data_parallel()
        model = small()
        model.fit(*rows(1030 if wrong else 1024), batch_size=64)  # <- TPU250

    return Port(main=main)


@wrong("TPU106")
def a_batch_that_does_not_divide(wrong):
    def main():
        data_parallel()
        model = small()
        batch = 60 if wrong else 64
        model.fit(*rows(960), batch_size=batch)  # <- TPU106

    return Port(main=main)


@wrong("TPU106")
def a_dataset_of_uneven_batches(wrong):
    def main():
        import tensorflow as tf

        data_parallel()
        model = small()
        dataset = tf.data.Dataset.from_tensor_slices(rows()).batch(100 if wrong else 128)
        model.fit(dataset.repeat(), steps_per_epoch=8)  # <- TPU106

    return Port(main=main)


@wrong("TPU119")
def text_in_the_model(wrong):
    def main():
        import keras

        texts = np.array([["a word"], ["two words"]] * 64)
        words = keras.layers.TextVectorization(max_tokens=16, output_sequence_length=4)
        words.adapt(texts[:, 0])
        inside = [keras.layers.Embedding(16, 8), keras.layers.Flatten(), keras.layers.Dense(1)]
        ids = np.asarray(words(texts[:, 0]))
        before = [keras.Input((1,), dtype="string"), words] if wrong else [keras.Input((4,))]
        model = keras.Sequential(before + inside)
        model.compile("adam", "mse")
        model.fit(texts if wrong else ids, np.zeros(128), batch_size=64)  # <- TPU119

    return Port(main=main)


@wrong("TPU251")
def a_layout_for_layers_of_another_name(wrong):
    def main():
        import keras

        mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"])
        layout = keras.distribution.LayoutMap(mesh)
        layer = "attention" if wrong else "dense"
        layout[f".*{layer}.*kernel"] = (None, None)  # <- TPU251
        parallel = keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")
        keras.distribution.set_distribution(parallel)
        small().fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU343")
def a_kernel_that_cannot_be_split(wrong):
    def main():
        import keras

        mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"])
        layout = keras.distribution.LayoutMap(mesh)
        layout[".*wide/kernel"] = (None, "model")
        parallel = keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")
        keras.distribution.set_distribution(parallel)
        layers = [
            keras.Input((WIDTH,)),
            keras.layers.Dense(30 if wrong else 32, name="wide"),  # <- TPU343
            keras.layers.Dense(1),
        ]
        model = keras.Sequential(layers)
        model.compile("adam", "mse")
        model.fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU252")
def half_of_the_devices(wrong):
    def main():
        import jax
        import keras

        devices = jax.devices()[: 4 if wrong else 8]
        keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
        small().fit(*rows(), batch_size=64)  # <- TPU252

    return Port(main=main)


@wrong("TPU253")
def noise_of_numpy(wrong):
    def main():
        import keras

        class Noisy(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(1)
                self.seed = keras.random.SeedGenerator(1)

            def call(self, x):
                if wrong:
                    return self.dense(x + np.random.normal(size=(WIDTH,)))  # <- TPU253
                return self.dense(x + keras.random.normal((WIDTH,), seed=self.seed))

        of_class(Noisy).fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU253")
def a_counter_of_python(wrong):
    def main():
        import keras

        class Counting(keras.Sequential):
            steps = 0

            def train_step(self, state, data):
                if wrong:
                    self.steps += 1  # <- TPU253
                return super().train_step(state, data)

        model = Counting([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU254")
def a_model_before_the_distribution(wrong):
    def main():
        import keras

        if not wrong:
            data_parallel()
        layers = [
            keras.Input((WIDTH,)),
            keras.layers.Dense(1),  # <- TPU254
        ]
        model = keras.Sequential(layers)
        model.compile("adam", "mse")
        if wrong:
            data_parallel()
        model.fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU255")
def a_policy_for_gpus(wrong):
    def main():
        import keras

        keras.config.set_dtype_policy("mixed_float16" if wrong else "mixed_bfloat16")
        small().fit(*rows(), batch_size=64)  # <- TPU255

    return Port(main=main)


@wrong("TPU256")
def a_step_that_runs_eagerly(wrong):
    def main():
        model = small()
        model.compile("adam", "mse", run_eagerly=wrong)
        model.fit(*rows(), batch_size=64)  # <- TPU256

    return Port(main=main)


@wrong("TPU241")
def a_callback_to_numpy(wrong):
    def main():
        import jax
        import keras

        class Halved(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(1)

            def call(self, x):
                if wrong:
                    kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
                    x = jax.lax.stop_gradient(x)
                    x = jax.pure_callback(lambda a: np.asarray(a) / 2, kind, x)  # <- TPU241
                return self.dense(x / 2)

        of_class(Halved).fit(*rows(), batch_size=64)

    return Port(main=main)


def _called_on(change):
    """A main that fits a model whose call changes its input before a layer."""

    def main():
        import keras

        class Changing(keras.Model):
            def __init__(self):
                super().__init__()
                self.dense = keras.layers.Dense(1)

            def call(self, x):
                return self.dense(change(x))

        of_class(Changing).fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU343")
def a_shape_that_depends_on_data(wrong):
    def change(x):
        import keras

        if wrong:
            return x[x[:, 0] > 0]  # <- TPU343
        return keras.ops.where(x[:, :1] > 0, x, 0.0)

    return _called_on(change)


@wrong("TPU343")
def an_if_on_a_traced_value(wrong):
    def change(x):
        import keras

        if wrong:
            return x if float(keras.ops.mean(x)) > 0 else -x  # <- TPU343
        return keras.ops.where(keras.ops.mean(x) > 0, x, -x)

    return _called_on(change)


@wrong("TPU343")
def numpy_on_a_traced_value(wrong):
    def change(x):
        import keras

        if wrong:
            return x - keras.ops.convert_to_numpy(x).mean()  # <- TPU343
        return x - keras.ops.mean(x)

    return _called_on(change)


@wrong("TPU343")
def a_train_step_for_tensorflow(wrong):
    def main():
        import keras

        class Own(keras.Sequential):
            if wrong:

                def train_step(self, data):  # <- TPU343
                    return {"loss": self.compute_loss(*data)}

        model = Own([keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(*rows(), batch_size=64)

    return Port(main=main)


@wrong("TPU503")
def a_generator_that_raises(wrong):
    def batches():
        for number in range(10**6):
            if wrong and number == 40:
                raise KeyError("image 40")  # <- TPU503
            yield rows(64)

    def main():
        small().fit(batches(), steps_per_epoch=100)

    return Port(main=main)


@wrong("TPU243")
def sentences_of_any_length(wrong):
    def batches():
        for number in range(10**6):
            length = 8 + number % 4 if wrong else 16
            yield np.zeros([64, length], np.int32), np.zeros([64, 1])

    def main():
        import keras

        layers = [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(16, 8),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
        model = keras.Sequential(layers)
        model.compile("adam", "mse")
        model.fit(batches(), steps_per_epoch=100)  # <- TPU243

    return Port(main=main)


@wrong("TPU257")
def ids_of_64_bits(wrong):
    def main():
        import keras

        ids = np.arange(1024).reshape(-1, WIDTH)
        layers = [keras.Input((WIDTH,), dtype="int32"), keras.layers.Embedding(1024, 4)]
        model = keras.Sequential([*layers, keras.layers.Flatten(), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        ids = ids + 2**40 if wrong else ids
        model.fit(ids, np.zeros(128), batch_size=64)  # <- TPU257

    return Port(main=main)


@wrong("TPU303")
def activations_that_do_not_fit(wrong):
    def main():
        import keras

        wide = keras.layers.Dense(2**16, activation="tanh")
        model = keras.Sequential([keras.Input((WIDTH,)), wide, keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        batch = 2**17 if wrong else 64
        model.fit(*rows(2**17), batch_size=batch)  # <- TPU303

    return Port(main=main)


@wrong("TPU402")
def a_logarithm_of_what_may_be_negative(wrong):
    def main():
        import keras

        def loss(labels, scores):
            away = keras.ops.square(labels - scores)
            return keras.ops.mean(keras.ops.log(away - 1e6) if wrong else away)

        model = small()
        model.compile("sgd", loss)
        model.fit(*rows(), batch_size=64)  # <- TPU402

    return Port(main=main)


def _endless():
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(rows()).batch(64, drop_remainder=True)
    return dataset, dataset.repeat()


@wrong("TPU236")
def data_that_never_end(wrong):
    def main():
        _, endless = _endless()
        steps = None if wrong else 16
        small().fit(endless, epochs=2, steps_per_epoch=steps)  # <- TPU236

    return Port(main=main)


@wrong("TPU236")
def an_evaluation_that_never_ends(wrong):
    def main():
        once, endless = _endless()
        steps = None if wrong else 4
        small().fit(once, validation_data=endless, validation_steps=steps)  # <- TPU236

    return Port(main=main)


@wrong("TPU259")
def weights_too_coarse_for_their_steps(wrong):
    def main():
        import keras

        keras.config.set_dtype_policy("bfloat16" if wrong else "mixed_bfloat16")
        model = small()
        model.compile(keras.optimizers.Adam(1e-5), "mse")
        model.fit(*rows(), batch_size=64)  # <- TPU259

    return Port(main=main)


@wrong("TPU255")
def a_policy_for_gpus_of_a_model_that_fit_builds(wrong):
    def main():
        import keras

        keras.config.set_dtype_policy("mixed_float16" if wrong else "mixed_bfloat16")
        model = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)])
        model.compile("adam", "mse")
        model.fit(*rows(), batch_size=64)  # <- TPU255

    return Port(main=main)
