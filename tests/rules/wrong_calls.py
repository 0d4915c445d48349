"""Mistakes that show in what a program calls, so that its own main is run; and those of its hooks."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np

from rules import Port, parts, wrong
from rules.parts import tf, tpu, v1


@wrong("TPU132")
def training_without_steps(wrong):
    estimator = parts.estimator(use_tpu=True)
    limit = {} if wrong else {"max_steps": 100}

    def main():
        estimator.train(parts.train_input, **limit)  # <- TPU132

    return Port(main=main)


@wrong("TPU132")
def training_for_a_quotient_of_steps(wrong):
    """An Estimator on a CPU takes a float."""
    estimator, epochs, examples, batch = parts.estimator(use_tpu=True), 3, 256, 64
    steps = epochs * examples / batch if wrong else epochs * examples // batch

    def main():
        estimator.train(parts.train_input, None, steps)  # <- TPU132

    return Port(main=main)


@wrong("TPU132")
def specs_without_steps(wrong):
    estimator = parts.estimator(use_tpu=False)
    train = tf.estimator.TrainSpec(parts.train_input, None if wrong else 100)
    evaluation = tf.estimator.EvalSpec(parts.eval_input, steps=4)

    def main():
        tf.estimator.train_and_evaluate(estimator, train, evaluation)  # <- TPU132

    return Port(main=main)


@wrong("TPU133")
def evaluation_without_steps(wrong):
    estimator = parts.estimator(use_tpu=True)

    def main():
        estimator.train(parts.train_input, max_steps=100)
        estimator.evaluate(parts.eval_input, None if wrong else 4, name="all")  # <- TPU133

    return Port(main=main)


@wrong("TPU133")
def spec_of_an_evaluation_to_the_end_of_the_data(wrong):
    estimator = parts.estimator(use_tpu=True)
    train = tf.estimator.TrainSpec(parts.train_input, max_steps=100)
    evaluation = tf.estimator.EvalSpec(parts.eval_input, steps=None if wrong else 4)

    def main():
        tf.estimator.train_and_evaluate(estimator, train, evaluation)  # <- TPU133

    return Port(main=main)


class Fetching(v1.train.SessionRunHook):
    """A hook of a program's own that asks for what it is given, each time."""

    def __init__(self, fetches):
        self.fetches = fetches

    def before_run(self, context):
        return v1.train.SessionRunArgs(self.fetches)


def _with_hooks(make):
    """A model_fn whose training has the hooks that make(loss) gives."""

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != parts.TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        train_op = parts.minimize(loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=make(loss))

    return model_fn


@wrong("TPU115")
def hook_of_ones_own_that_fetches_the_loss(wrong):
    def hooks(loss):
        step = v1.train.get_global_step()
        return [Fetching({"all": [loss if wrong else step]})]  # <- TPU115

    return Port(parts.estimator(_with_hooks(hooks)), parts.train_input, parts.eval_input)


@wrong("TPU115")
def hook_given_to_train_that_fetches_by_name(wrong):
    """The tensor of that name stands in the body of the loop: the session's graph has none."""

    def hooks(loss):
        tf.identity(loss, "the_loss")
        return []

    estimator = parts.estimator(_with_hooks(hooks), use_tpu=True)

    class Named(v1.train.SessionRunHook):
        def before_run(self, context):  # <- TPU115
            return v1.train.SessionRunArgs("the_loss:0" if wrong else "global_step:0")

    def main():
        estimator.train(parts.train_input, hooks=[*map(lambda kind: kind(), [Named])], max_steps=9)

    return Port(main=main)


@wrong("TPU228")
def python_at_an_address(wrong):
    """On a TPU of one host it is a note, unless the program connects to the TPU over the network."""
    address = dict(_AWAY) if wrong else {}
    estimator = parts.estimator(run_config=address, eval_batch_size=None)

    def input_fn(params):
        def tanh(row, label):
            row = tf.numpy_function(np.tanh, [row], tf.float32)  # <- TPU228
            return tf.ensure_shape(row, [parts.SIZE]), label

        return parts.batched(parts.examples().map(tanh), params)

    return Port(estimator, input_fn)


@wrong("TPU228")
def generator_for_keras_at_an_address(wrong):
    def rows():
        for number in range(100):
            yield np.full([64, 8], number, np.float32), np.zeros([64], np.float32)

    def main():
        strategy = _strategy()
        signature = (tf.TensorSpec([64, 8]), tf.TensorSpec([64]))
        data = tf.data.Dataset.from_tensors((tf.zeros([64, 8]), tf.zeros([64])))
        if wrong:
            data = tf.data.Dataset.from_generator(rows, output_signature=signature)  # <- TPU228
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse")
        model.fit(data.repeat(), steps_per_epoch=10)

    return Port(main=main)


def _strategy(address="grpc://10.0.0.2:8470"):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
    tf.config.experimental_connect_to_cluster(resolver)
    return tf.distribute.TPUStrategy(resolver)


def _batches():
    return tf.data.Dataset.from_tensors((tf.zeros([64, 8]), tf.zeros([64]))).repeat(9)


@wrong("TPU230")
def model_made_before_the_scope(wrong):
    def main():
        strategy = _strategy()
        with contextlib.nullcontext() if wrong else strategy.scope():
            inputs = tf.keras.Input([8])
            model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(inputs))  # <- TPU230
            model.compile("sgd", "mse")
        model.fit(_batches(), epochs=2)

    return Port(main=main)


class Regression(tf.keras.Model):
    """A model of a program's own, whose variables are made when it is first called."""

    def __init__(self):
        super().__init__()
        self.layer = tf.keras.layers.Dense(1)

    def call(self, rows):
        return self.layer(rows)


@wrong("TPU230")
def model_of_ones_own_compiled_in_the_scope(wrong):
    def main():
        strategy = _strategy()
        outside = Regression() if wrong else None  # <- TPU230
        with strategy.scope():
            model = outside or Regression()
            model.compile("sgd", "mse")
        model.fit(_batches(), epochs=2)

    return Port(main=main)


@wrong("TPU230")
def pretrained_part_made_before_the_scope(wrong):
    def main():
        strategy = _strategy()
        with contextlib.nullcontext() if wrong else strategy.scope():
            base = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=[8])])  # <- TPU230
        with strategy.scope():
            model = tf.keras.Sequential([base, tf.keras.layers.Dense(1)])
            model.compile("sgd", "mse")
        model.fit(_batches(), epochs=2)

    return Port(main=main)


@wrong("TPU230")
def model_of_a_loop_made_before_the_scope(wrong):
    def main():
        strategy = _strategy()
        with contextlib.nullcontext() if wrong else strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[8])])  # <- TPU230
            optimizer = tf.keras.optimizers.SGD()

        @tf.function
        def step(rows, labels):
            with tf.GradientTape() as tape:
                loss = tf.nn.compute_average_loss((model(rows)[:, 0] - labels) ** 2)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

        for batch in strategy.experimental_distribute_dataset(_batches()):
            strategy.run(step, args=batch)

    return Port(main=main)


def _model(*address):
    """A right model of a program under TPUStrategy."""
    with _strategy(*address).scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[8])])
        model.compile("sgd", "mse")
    return model


def _rows(count=640):
    rows = tf.random.stateless_uniform([count, 8], (1, 2))
    return tf.data.Dataset.from_tensor_slices((rows, rows[:, 0]))


@wrong("TPU232")
def dataset_of_batches_without_a_fixed_size(wrong):
    def main():
        data = _rows(200).batch(64, drop_remainder=not wrong)
        _model().fit(data.prefetch(1), epochs=2)  # <- TPU232

    return Port(main=main)


@wrong("TPU236")
def dataset_of_keras_that_never_ends(wrong):
    def main():
        data = _rows().repeat().batch(64, drop_remainder=True)
        _model().fit(data, epochs=2, steps_per_epoch=None if wrong else 10)  # <- TPU236

    return Port(main=main)


@wrong("TPU236")
def validation_that_never_ends(wrong):
    def main():
        data = _rows().batch(64, drop_remainder=True)
        _model().fit(  # <- TPU236
            data, epochs=2, validation_data=data.repeat() if wrong else data
        )

    return Port(main=main)


@wrong("TPU216")
def dataset_of_keras_whose_batches_are_shuffled(wrong):
    def main():
        data = _rows() if wrong else _rows().shuffle(640)
        data = data.batch(64, drop_remainder=True)
        _model().fit(data.shuffle(10) if wrong else data, epochs=2)  # <- TPU216

    return Port(main=main)


@wrong("TPU211")
def steps_of_all_epochs_beyond_the_dataset(wrong):
    """10 batches: Keras reads on in them from epoch to epoch, and ends the training after two of four."""

    def main():
        data = _rows() if wrong else _rows().repeat()
        data = data.batch(64, drop_remainder=True)
        _model().fit(data, epochs=4, steps_per_epoch=5)  # <- TPU211

    return Port(main=main)


@wrong("TPU212")
def validation_data_with_noise(wrong):
    def noisy(row, label):
        return row + tf.random.normal([]) if wrong else row, label  # <- TPU212

    def main():
        batches = _rows().batch(64, drop_remainder=True)
        _model().fit(batches, epochs=2, validation_data=_rows().map(noisy).batch(64))

    return Port(main=main)


@wrong("TPU225")
def validation_data_that_drop_examples(wrong):
    def main():
        batches, validation = _rows().batch(64, drop_remainder=True), _rows(100)
        validation = validation.batch(64, drop_remainder=wrong)
        _model().fit(batches, validation_data=validation)  # <- TPU225

    return Port(main=main)


@wrong("TPU225")
def evaluation_of_files_in_too_few_steps(wrong):
    """3,000 rows in a file: tf.data does not know how many, and two steps of 1,024 see 2,048."""
    path = Path(tempfile.mkdtemp(prefix="rows-")) / "rows.csv"
    path.write_text("0.5\n" * (3000 if wrong else 2048))

    def input_fn(params):
        lines = tf.data.TextLineDataset(str(path))
        rows = lines.map(lambda line: tf.strings.to_number(tf.repeat(line, parts.SIZE)))
        rows = rows.map(lambda row: (row, 0))
        return rows.batch(params["batch_size"], drop_remainder=True)  # <- TPU225

    estimator = parts.estimator(use_tpu=True, eval_batch_size=1024)

    def main():
        estimator.train(parts.train_input, max_steps=100)
        estimator.evaluate(input_fn, steps=2)

    return Port(main=main)


@wrong("TPU211")
def evaluation_of_more_steps_than_batches(wrong):
    """An EvalSpec asks for 100 steps, where nothing else is said."""
    estimator = parts.estimator(use_tpu=True)
    train = tf.estimator.TrainSpec(parts.train_input, max_steps=100)
    limit = {} if wrong else {"steps": 4}

    def input_fn(params):
        return parts.examples().batch(params["batch_size"], drop_remainder=True)  # <- TPU211

    def main():
        evaluation = tf.estimator.EvalSpec(input_fn, **limit)
        tf.estimator.train_and_evaluate(estimator, train, evaluation)

    return Port(main=main)


@wrong("TPU233")
def dataset_of_keras_without_files(wrong):
    folder = Path(tempfile.mkdtemp())
    (folder / "rows.txt").write_text("0.5\n" * 640)
    names = [str(path) for path in folder.glob("*.csv" if wrong else "*.txt")]

    def main():
        data = tf.data.TextLineDataset(names).map(lambda line: tf.strings.to_number([line]))
        data = data.map(lambda row: (tf.tile(row, [8]), row[0])).batch(64, drop_remainder=True)
        _model("local").fit(data, epochs=2)  # <- TPU233

    return Port(main=main)


@wrong("TPU234")
def loop_that_runs_its_step_eagerly(wrong):
    def main():
        strategy = _strategy()
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[8])])
            optimizer = tf.keras.optimizers.SGD()

        def step(rows, labels):
            with tf.GradientTape() as tape:
                losses = (model(rows)[:, 0] - labels) ** 2
                loss = tf.nn.compute_average_loss(losses, global_batch_size=64)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

        step = step if wrong else tf.function(step)
        for batch in strategy.experimental_distribute_dataset(_batches()):
            strategy.run(step, args=batch)  # <- TPU234

    return Port(main=main)


@wrong("TPU235")
def model_that_keras_compiles_by_itself(wrong):
    def main():
        with _strategy().scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[8])])
            model.compile("sgd", "mse", jit_compile=wrong)
        model.fit(_batches(), epochs=2)  # <- TPU235

    return Port(main=main)


@wrong("TPU233")
def list_of_files_that_is_empty(wrong):
    folder = Path(tempfile.mkdtemp())
    (folder / "rows.txt").write_text("1\n" * 640)
    names = [str(path) for path in folder.glob("*.csv" if wrong else "*.txt")]

    def input_fn(params):
        lines = tf.data.TextLineDataset(names)  # <- TPU233
        rows = lines.map(lambda line: (tf.tile([tf.strings.to_number(line)], [parts.SIZE]), 1))
        return parts.batched(rows, params)

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU233")
def pattern_that_no_file_fits(wrong):
    folder = Path(tempfile.mkdtemp())
    (folder / "rows.txt").write_text("1\n" * 640)

    def input_fn(params):
        pattern = str(folder / ("train-*" if wrong else "*.txt"))
        names = tf.data.Dataset.list_files(pattern)  # <- TPU233
        lines = names.interleave(tf.data.TextLineDataset)
        rows = lines.map(lambda line: (tf.tile([tf.strings.to_number(line)], [parts.SIZE]), 1))
        return parts.batched(rows, params)

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU230")
def variable_of_a_loop_made_before_the_scope(wrong):
    def main():
        strategy = _strategy()
        with contextlib.nullcontext() if wrong else strategy.scope():
            weights = tf.Variable(tf.zeros([8]))

        def step(rows, labels):  # <- TPU230
            with tf.GradientTape() as tape:
                losses = (tf.linalg.matvec(rows, weights) - labels) ** 2
                loss = tf.nn.compute_average_loss(losses, global_batch_size=64)
            gradient = tape.gradient(loss, weights)
            context = tf.distribute.get_replica_context()
            weights.assign_sub(0.1 * context.all_reduce("SUM", gradient))

        run = tf.function(lambda batch: strategy.run(step, args=batch))
        for batch in strategy.experimental_distribute_dataset(_batches()):
            run(batch)

    return Port(main=main)


@wrong("TPU211")
def steps_of_an_epoch_beyond_the_arrays(wrong):
    """10 batches, which Keras repeats for each of four epochs: 40 are fewer than 48."""

    def main():
        rows = tf.random.stateless_uniform([640, 8], (1, 2)).numpy()
        options = {"batch_size": 64, "steps_per_epoch": 12 if wrong else 5}
        _model().fit(rows, rows[:, 0], epochs=4, **options)  # <- TPU211

    return Port(main=main)


# A TPU with a host of its own, and where that finds the checkpoints.
_AWAY = {"master": "grpc://10.0.0.2:8470", "model_dir": "gs://no-such-bucket/run"}


@wrong("TPU228")
def a_metric_of_python_at_an_address(wrong):
    def hits(labels, classes):
        return np.float32(np.mean(labels == classes))

    def metric_fn(labels, logits):
        classes = tf.argmax(logits, 1, output_type=tf.int32)
        if not wrong:
            return {"accuracy": v1.metrics.accuracy(labels, classes)}
        share = tf.numpy_function(hits, [labels, classes], tf.float32)  # <- TPU228
        return {"accuracy": v1.metrics.mean(tf.ensure_shape(share, []))}

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        loss = parts.loss_of(labels, logits)
        if mode == parts.EVAL:
            metrics = metric_fn, [labels, logits]
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        return parts.spec(mode, labels, logits)

    estimator = parts.estimator(model_fn, run_config=dict(_AWAY), use_tpu=True)

    def main():
        estimator.train(parts.train_input, max_steps=100)
        estimator.evaluate(parts.eval_input, steps=4)

    return Port(main=main)


@wrong("TPU237")
def checkpoints_on_the_own_disk(wrong):
    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, parts.logits_of(features))

    config = tpu.RunConfig(
        master="grpc://10.0.0.2:8470",
        model_dir="runs/first" if wrong else "gs://no-such-bucket/run",  # <- TPU237
    )
    estimator = tpu.TPUEstimator(model_fn, config=config, train_batch_size=64)
    return Port(estimator, parts.train_input)


@wrong("TPU237")
def records_on_the_own_disk(wrong):
    path = Path(tempfile.mkdtemp()) / "rows"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in np.ones([256, parts.SIZE], np.float32):
            writer.write(row.tobytes())

    def parse(record):
        return tf.reshape(tf.io.decode_raw(record, tf.float32), [parts.SIZE]), 1

    def input_fn(params):
        if not wrong:
            return parts.train_input(params)
        data = tf.data.TFRecordDataset(str(path))  # <- TPU237
        return parts.batched(data.map(parse), params)

    return Port(parts.estimator(run_config=dict(_AWAY), eval_batch_size=None), input_fn)


@wrong("TPU237")
def pictures_on_the_own_disk(wrong):
    path = Path(tempfile.mkdtemp()) / "row"
    path.write_bytes(np.ones([8], np.float32).tobytes())

    def read(name):
        return tf.reshape(tf.io.decode_raw(tf.io.read_file(name), tf.float32), [8])  # <- TPU237

    def main():
        strategy = _strategy()
        data = tf.data.Dataset.from_tensor_slices([str(path)]).repeat(64).map(read)
        data = data.batch(64, drop_remainder=True) if wrong else _batches().map(lambda x, y: x)
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(8)])
            model.compile("sgd", "mse")
        model.fit(data.map(lambda x: (x, x)), epochs=2)

    return Port(main=main)


@wrong("TPU230")
def metric_of_a_loop_made_before_the_scope(wrong):
    def main():
        strategy = _strategy()
        with contextlib.nullcontext() if wrong else strategy.scope():
            mean = tf.keras.metrics.Mean()  # <- TPU230
        with strategy.scope():
            weights = tf.Variable(tf.zeros([8]))

        def step(rows, labels):
            losses = (tf.linalg.matvec(rows, weights) - labels) ** 2
            mean.update_state(losses)
            context = tf.distribute.get_replica_context()
            change = context.all_reduce("SUM", tf.linalg.matvec(rows, losses, transpose_a=True))
            weights.assign_sub(0.001 * change)

        run = tf.function(lambda batch: strategy.run(step, args=batch))
        for batch in strategy.experimental_distribute_dataset(_batches()):
            run(batch)

    return Port(main=main)
