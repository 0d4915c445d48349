"""The two ports behind one interface: their variables, their outputs, and one training step of each."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lab_utils.dry_run.inspect import all_nodes, ancestors, is_random
from lab_utils.estimator import tf, v1

Arrays = dict[str, np.ndarray]


class ModelGraph:
    """A graph that is fed a batch, with its session."""

    def __init__(self, config: Any, batch: Any, build: Callable[..., Any]) -> None:
        """`build` gets the batch as placeholders; what it returns is `spec`."""
        self.graph = tf.Graph()
        with self.graph.as_default():
            v1.set_random_seed(config.tf_random_seed or 0)
            v1.train.create_global_step()
            self._feeds = tf.nest.map_structure(
                lambda array: v1.placeholder(array.dtype, array.shape), batch
            )
            self.spec = build(self._feeds)
            self.trained = [variable.op.name for variable in v1.trainable_variables()]
            self._variables = {variable.op.name: variable for variable in v1.global_variables()}
            self.names = [name for name in self._variables if name != "global_step"]
            self._writes = {name: _write(each) for name, each in self._variables.items()}
            first = [v1.global_variables_initializer(), v1.local_variables_initializer()]
            first.append(v1.tables_initializer())
        self._session = v1.Session(graph=self.graph, config=config.session_config)
        self._session.run(first)

    def run(self, fetches: Any, batch: Any) -> Any:
        """Values of `fetches` for a batch like the first."""
        feeds = zip(tf.nest.flatten(self._feeds), tf.nest.flatten(batch), strict=True)
        return self._session.run(fetches, dict(feeds))

    def read(self) -> Arrays:
        """The present values of all variables, by name."""
        return self._session.run(self._variables)

    def write(self, values: Arrays) -> None:
        """Sets variables by name."""
        writes = {name: self._writes[name] for name in values}
        feeds = {placeholder: values[name] for name, (placeholder, _) in writes.items()}
        self._session.run([assign for _, assign in writes.values()], feeds)


def _write(variable: Any) -> tuple[Any, Any]:
    """A placeholder for a variable's value, and the op that sets it."""
    value = v1.placeholder(variable.dtype.base_dtype, variable.shape)
    return value, variable.assign(value, read_value=False)


class EstimatorSide:
    """An Estimator or TPUEstimator; its weights are those of its newest checkpoint, if it has one."""

    def __init__(self, estimator: Any, features: Any, labels: Any, prediction: str) -> None:
        """`features`, `labels`: a batch of arrays. `prediction`: the entry of predictions to compare.

        Raises:
            ValueError: PREDICT mode gives no such entry.
        """
        config = estimator.config

        def training(batch: Any) -> Any:
            return estimator.model_fn(*batch, "train", config)

        def predicting(features: Any) -> Any:
            return estimator.model_fn(features, None, "infer", config)

        self._train = ModelGraph(config, (features, labels), training)
        self._predict = ModelGraph(config, features, predicting)
        predictions = self._predict.spec.predictions
        if prediction not in predictions:
            raise ValueError(
                f"the Estimator predicts {', '.join(predictions)}, not {prediction!r}: say prediction=..."
            )
        self._output = predictions[prediction]
        self.trained = self._train.trained
        self.untrained = [name for name in self._predict.names if name not in self.trained]
        if checkpoint := estimator.latest_checkpoint():
            saved, names = v1.train.load_checkpoint(checkpoint), self.trained + self.untrained
            self._train.write({name: saved.get_tensor(name) for name in names})
        self._start = self._train.read()

    def random(self) -> list[str]:
        """Types of the ops that draw random numbers in a training step."""
        # A variable's initial value is not among them.
        return _random(op.type for op in ancestors([self._train.spec.loss.op]))

    def variables(self, names: Iterable[str]) -> Arrays:
        """Their present values."""
        values = self._train.read()
        return {name: values[name] for name in names}

    def reset(self) -> None:
        """Back to the first weights, with the optimizer's slots as they were."""
        self._train.write(self._start)

    def outputs(self, features: Any) -> np.ndarray:
        """What the model predicts with its present weights, in PREDICT mode."""
        self._predict.write(self.variables(self._predict.names))
        return self._predict.run(self._output, features)

    def step(self, features: Any, labels: Any) -> float:
        """Takes one training step; returns the loss before it."""
        fetches = [self._train.spec.loss, self._train.spec.train_op]
        return float(self._train.run(fetches, (features, labels))[0])


class KerasSide:
    """A compiled Keras model: of Keras 3 on TensorFlow, or of Keras 2."""

    name = "Keras"

    def __init__(self, model: Any, output: Callable) -> None:
        """`output` turns what the model returns into what the Estimator predicts.

        Raises:
            ValueError: the model is not compiled.
        """
        if getattr(model, "optimizer", None) is None:
            raise ValueError(f"the Keras model {model.name!r} is not compiled: call compile first")
        self._model, self._output = model, output
        model.optimizer.build(model.trainable_variables)
        self._weights = {_path(weight): weight for weight in model.weights}
        self.trained = [_path(weight) for weight in model.trainable_weights]
        self.untrained = [_path(weight) for weight in model.non_trainable_weights]
        slots = model.optimizer.variables
        slots = slots() if callable(slots) else slots  # a method in Keras 2
        self._slots = [(slot, slot.numpy()) for slot in slots]
        self._before = [(weight, weight.numpy()) for weight in model.weights]
        self._step = self._compiled()

    def _compiled(self) -> Callable:
        """A training step: (x, y) -> the loss before it."""
        train_step = self._model.train_step

        @tf.autograph.experimental.do_not_convert
        def step(x: Any, y: Any) -> Any:
            return train_step((x, y))["loss"]

        return tf.function(step)

    def random(self, x: Any, y: Any) -> list[str]:
        """Types of the ops that draw random numbers in a training step on such a batch."""
        graph = self._step.get_concrete_function(x, y).graph.as_graph_def()
        return _random(node.op for node in all_nodes(graph))

    def variables(self, paths: Iterable[str]) -> Arrays:
        """Their present values."""
        return {path: self._weights[path].numpy() for path in paths}

    def write(self, values: Arrays) -> None:
        """Sets weights by path; the optimizer's slots are put back as they were."""
        for path, value in values.items():
            self._weights[path].assign(value)
        for variable, value in self._slots:
            variable.assign(value)

    def close(self) -> None:
        """Leaves the model as it was handed over."""
        for variable, value in self._before + self._slots:
            variable.assign(value)
        self._model.reset_metrics()

    def outputs(self, x: Any) -> np.ndarray:
        """What the model gives in inference."""
        return np.asarray(self._output(self._model(x, training=False)))

    def step(self, x: Any, y: Any) -> float:
        """Takes one training step; returns the loss before it, regularisation included."""
        self._model.reset_metrics()  # else Keras gives a running mean
        return float(self._step(x, y))


def _path(variable: Any) -> str:
    """Of a Keras variable: Keras 2 has names alone."""
    return getattr(variable, "path", None) or variable.name.removesuffix(":0")


def _random(types: Iterable[str]) -> list[str]:
    return sorted(set(filter(is_random, types)))
