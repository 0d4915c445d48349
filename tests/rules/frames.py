"""Where the code of a rule's page belongs: a frame makes a port around a block of it.

What the block makes (`dataset`, `train_op`, `predictions` ...) takes the place of what a small right port
has there. Tensors that have no such place are added to the logits, so that the step needs them.
"""

import functools
import tempfile
import types
from collections.abc import Callable
from typing import Any

from rules import Port, parts
from rules.parts import CLASSES, EVAL, PREDICT, SIZE, TRAIN, tf, tpu, v1
from rules.snippets import Made, Snippet

Frame = Callable[[Snippet], Port]
Thunks = dict[str, Callable[[], Any]]


def _model_fn(features: Any, labels: Any, mode: str, params: dict) -> Any:
    """A model for features of any structure, labels or none."""
    leaves = [tf.cast(leaf, tf.float32) for leaf in tf.nest.flatten(features)]
    rows = [tf.reduce_mean(leaf, list(range(1, leaf.shape.rank))) for leaf in leaves]
    logits = tf.add_n(rows)[:, None] * v1.get_variable("weights", [CLASSES])
    return parts.spec(mode, tf.zeros_like(rows[0], tf.int32) if labels is None else labels, logits)


def _port(mode: str, model_fn: Any, input_fn: Any = None, batch: int = 64) -> Port:
    """A port whose particular is what it does in `mode`."""
    size = {TRAIN: "train_batch_size", EVAL: "eval_batch_size", PREDICT: "predict_batch_size"}[mode]
    if mode == TRAIN:  # and no evaluation, not even on trial
        settings = {"use_tpu": True, "eval_on_tpu": False, size: batch}
        return Port(parts.estimator(model_fn, **settings), input_fn or parts.train_input)
    estimator = parts.estimator(model_fn, **{"eval_batch_size": None, size: batch})
    if mode == EVAL:
        return Port(estimator, parts.train_input, input_fn or parts.eval_input)
    return Port(estimator, parts.train_input, None, input_fn or parts.predict_input)


# In input_fn.


class _Later:
    """Stands for a dataset in a function that is called in another graph than it is made in."""

    def __init__(self, make: Callable[[], tf.data.Dataset]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        return getattr(self._make(), name)


def endless() -> tf.data.Dataset:
    return parts.examples().shuffle(64).repeat()


def in_input(
    dataset: Callable = endless,
    mode: str = TRAIN,
    batch: int = 64,
    batched: bool = True,
    **given: Callable,
) -> Frame:
    """The block is the body of input_fn, or its end; it returns the dataset or makes `dataset`.

    Without `batched` that is a dataset of examples, which are repeated and batched after it.
    """

    def frame(snippet: Snippet) -> Port:
        def input_fn(params):
            thunks = {"params": lambda: params, "dataset": dataset}
            made = snippet.run(thunks | given)
            data = made.get("dataset") if made.value is None else made.value
            return data if batched else parts.batched(data, params)

        return _port(mode, _model_fn, input_fn, batch)

    return frame


def input_function(mode: str = TRAIN, batch: int = 64, **given: Callable) -> Frame:
    """The block defines input_fn, or make_input_fn(training)."""

    def frame(snippet: Snippet) -> Port:
        made = snippet.run({"dataset": lambda: _Later(endless)} | given)
        input_fn = made.get("input_fn") or made.get("make_input_fn")(mode == TRAIN)
        return _port(mode, _model_fn, input_fn, batch)

    return frame


def mapped(source: Callable[[], tf.data.Dataset], name: str) -> Frame:
    """The block defines the function `name` of an example; input_fn maps it over `source`."""

    def frame(snippet: Snippet) -> Port:
        def input_fn(params):
            dataset = source().map(snippet.run({}).get(name))
            return dataset.repeat().batch(params["batch_size"], drop_remainder=True)

        return _port(TRAIN, _model_fn, input_fn)

    return frame


# In model_fn.


def _names(features: Any, labels: Any, mode: str, params: dict) -> Thunks:
    """What a block in model_fn may use."""
    constants = {
        "features": features,
        "labels": labels,
        "mode": mode,
        "params": params,
        "model_dir": "never_written",
        "metric_fn": parts.metric_fn,
        "input_fn": parts.train_input,
        "assignment": {"weights": "weights"},
        "restore": lambda scaffold, session: None,
        "normalise": lambda rows: rows / 2.0,
        "estimator": types.SimpleNamespace(predict=lambda input_fn: [{"class_id": 1}]),
        "NAMES": ["daisy", "rose", "tulip"],
        "host_fn": _host_fn,
    }
    names: Thunks = {name: lambda value=value: value for name, value in constants.items()}
    tensors = {
        "logits": lambda: tf.matmul(features, v1.get_variable("weights", [SIZE, CLASSES])),
        "loss": lambda: parts.loss_of(labels, names["logits"]()),
        "classes": lambda: tf.argmax(names["logits"](), 1),
        "class_id": lambda: tf.argmax(names["logits"](), 1),
        "probabilities": lambda: tf.nn.softmax(names["logits"]())[:, 0],
        "images": lambda: tf.reshape(features, [-1, 4, 4, 1]),
        "hidden": lambda: tf.nn.relu(features),
        "signal": lambda: features,
        "values": lambda: features,
        "segments": lambda: tf.constant([0, 0, 1, 1, 2, 2, 3, 3]),
        "keep": lambda: features[0] > 0.5,
        "lengths": lambda: labels,
        "rate": lambda: tf.constant([0.1]),
        "global_step": v1.train.get_or_create_global_step,
        "optimizer": lambda: v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.01)),
        "train_op": lambda: parts.minimize(names["loss"]()),
        "hook": v1.train.SessionRunHook,
        "path": _checkpoint,
    }
    names |= {name: functools.cache(make) for name, make in tensors.items()}
    return names


def _host_fn(step: tf.Tensor, loss: tf.Tensor) -> list:
    with tf.summary.create_file_writer("never_written").as_default():
        tf.summary.scalar("loss", tf.reduce_mean(loss), step=tf.reshape(step, [-1])[0])
        return v1.summary.all_v2_summary_ops()


def _checkpoint() -> str:
    folder = tempfile.mkdtemp(prefix="rule_page_")
    with tf.Graph().as_default(), v1.Session() as session:
        v1.get_variable("weights", [SIZE, CLASSES])
        session.run(v1.global_variables_initializer())
        return v1.train.Saver().save(session, f"{folder}/model")


def in_model(own: str = TRAIN, **given: Callable[[Thunks], Any]) -> Frame:
    """The block is a part of model_fn in the mode `own`.

    `given` makes names beside those that _names has, from those.
    """

    def frame(snippet: Snippet) -> Port:
        def model_fn(features, labels, mode, params):
            names = _names(features, labels, mode, params)
            if mode != own:
                return parts.spec(mode, labels, names["logits"]())
            names |= {
                name: functools.cache(functools.partial(make, dict(names)))
                for name, make in given.items()
            }
            return _spec(mode, labels, names, snippet.run(names))

        return _port(own, model_fn)

    return frame


def _spec(mode: str, labels: Any, names: Thunks, made: Made) -> Any:
    """The spec of `mode`, with what the block made in it."""
    if made.value is not None and hasattr(made.value, "train_op"):
        return made.value
    logits = names["logits"]() if made.get("logits") is None else made.get("logits")
    for tensor in made.new_tensors(besides=("logits", "loss", "predictions", "train_op")):
        size = tf.abs(tensor) if tensor.dtype.is_complex else tensor
        logits += tf.reduce_mean(tf.cast(size, tf.float32))
    if mode == PREDICT:
        predictions = made.get("predictions", {"logits": logits})
        return tpu.TPUEstimatorSpec(mode, predictions=predictions)
    if mode == EVAL:
        metrics = made.get("eval_metrics", (parts.metric_fn, [labels, logits]))
        return tpu.TPUEstimatorSpec(mode, loss=parts.loss_of(labels, logits), eval_metrics=metrics)
    loss, train_op = made.get("loss"), made.get("train_op")
    if loss is None:
        loss = names["loss"]() if train_op is not None else parts.loss_of(labels, logits)
    if train_op is None:
        optimizer = v1.tpu.CrossShardOptimizer(made.get("optimizer", names["optimizer"]()))
        train_op = optimizer.minimize(loss, names["global_step"]())
    host_call = made.get("host_call")
    if host_call is None and made.get("host_fn") not in (None, _host_fn):
        tensors = [tf.reshape(names["global_step"](), [1]), tf.reshape(loss, [1])]
        host_call = (made.get("host_fn"), tensors)
    return tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op,
        host_call=host_call,
        training_hooks=made.get("hooks", []),
        scaffold_fn=made.get("scaffold_fn"),
    )


def model_function(snippet: Snippet) -> Port:
    """The block defines model_fn."""
    given = {"make_spec": lambda mode, logits, labels: parts.spec(mode, labels, logits)}
    given["network"] = parts.logits_of
    made = snippet.run({name: lambda value=value: value for name, value in given.items()})
    return _port(TRAIN, made.get("model_fn"))


# The estimator's arguments.


def arguments(model_fn: Any = _model_fn, **port: Any) -> Frame:
    """The block makes an estimator, a RunConfig or a TPUConfig."""

    def frame(snippet: Snippet) -> Port:
        config = tpu.RunConfig(model_dir="never_written")
        given = {"model_fn": model_fn, "config": config, "resolver": None}
        made = snippet.run({name: lambda value=value: value for name, value in given.items()})
        value = made.get("estimator") if made.value is None else made.value
        if isinstance(value, tpu.TPUConfig):
            value = tpu.RunConfig(model_dir="never_written", tpu_config=value)
        if isinstance(value, tpu.RunConfig):
            value = tpu.TPUEstimator(model_fn, config=value, train_batch_size=64)
        return Port(value, **{"input_fn": parts.train_input} | port)

    return frame


# For the TPU compiler: wide layers and large batches.

WIDTH = 256


def network(features: tf.Tensor, width: int = WIDTH) -> tf.Tensor:
    hidden = v1.layers.dense(features, width, tf.nn.relu)
    return v1.layers.dense(v1.layers.dense(hidden, width, tf.nn.relu), 128)


def zeros(shape: tuple) -> Callable:
    """An input_fn for examples of `shape`."""

    def input_fn(params):
        example = tf.zeros(shape), tf.zeros([], tf.int32)
        data = tf.data.Dataset.from_tensors(example).repeat()
        return data.batch(params["batch_size"], drop_remainder=True)

    return input_fn


def compiled(
    per_core: int = 128,
    shape: tuple = (WIDTH,),
    name: str = "features",
    dtype: tf.DType = tf.float32,
) -> Frame:
    """The block makes logits or another tensor from `name`; a dense layer comes after it."""

    def frame(snippet: Snippet) -> Port:
        def model_fn(features, labels, mode, params):
            made = snippet.run({name: lambda: tf.cast(features, dtype), "network": lambda: network})
            if (logits := made.get("logits")) is None:
                [net] = made.new_tensors()
                logits = tf.reduce_mean(net, [1, 2]) if net.shape.rank == 4 else net
            with v1.tpu.bfloat16_scope():
                logits = v1.layers.dense(tf.cast(logits, tf.bfloat16), 128)
            return parts.spec(mode, labels, tf.cast(logits, tf.float32))

        return _port(TRAIN, model_fn, zeros(shape), 8 * per_core)

    return frame


# What a program calls: its own main is run.


def called(snippet: Snippet) -> Port:
    """The block calls methods of an Estimator on a TPU."""
    estimator = parts.estimator(use_tpu=True)
    given = {"estimator": lambda: estimator, "input_fn": lambda: parts.train_input}

    def main() -> None:
        estimator.train(parts.train_input, max_steps=10)
        snippet.run(given)

    return Port(main=main)


def _resolver() -> Any:
    return tf.distribute.cluster_resolver.TPUClusterResolver("local")


def _strategy() -> tf.distribute.Strategy:
    return tf.distribute.TPUStrategy(_resolver())


def fitted(snippet: Snippet) -> Port:
    """The block makes a Keras model and trains it."""
    given = {
        "resolver": _resolver,
        "rows": lambda: tf.zeros([1024, SIZE]),
        "labels": lambda: tf.zeros([1024, 8]),
    }
    return Port(main=lambda: snippet.run(given))


def dataset_of_keras(snippet: Snippet) -> Port:
    """The block makes the batches that a Keras model is trained with."""

    def main():
        batches = snippet.run({"dataset": lambda: parts.examples(200)}).get("dataset")
        with _strategy().scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=[SIZE])])
            model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        model.fit(batches)

    return Port(main=main)


def loop(snippet: Snippet) -> Port:
    """The block defines train, which a loop of one's own calls for each batch."""

    def main():
        strategy = _strategy()
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=[SIZE])])
            optimizer = tf.keras.optimizers.SGD(0.1)

        def step(features, labels):
            with tf.GradientTape() as tape:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(features))
                loss = tf.nn.compute_average_loss(losses, global_batch_size=64)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        train = snippet.run({"strategy": lambda: strategy, "step": lambda: step}).get("train")
        batches = parts.examples(128).batch(64, drop_remainder=True)
        for features, labels in strategy.experimental_distribute_dataset(batches):
            train(features, labels)

    return Port(main=main)


def compiled_by_keras(snippet: Snippet) -> Port:
    """The block compiles a Keras model in the scope of its strategy."""

    def main():
        strategy = _strategy()
        with strategy.scope():
            model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=[SIZE])])
        snippet.run({"strategy": lambda: strategy, "model": lambda: model})
        rows = tf.zeros([128, SIZE])
        model.fit(rows, rows[:, :1], batch_size=64)

    return Port(main=main)
