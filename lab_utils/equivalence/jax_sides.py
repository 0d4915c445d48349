"""A port on JAX behind the interface of `sides`: a step in JAX, or a Keras model on that backend.

JAX is imported only where such a port is compared.
"""

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.equivalence.sides import Arrays, KerasSide

# Of a jaxpr's text: the primitives that draw random numbers. A key alone draws nothing.
_RANDOM = re.compile(r"\b(random_bits|threefry2x32|rng_bit_generator|rng_uniform)\b")


@dataclass(frozen=True)
class JaxPort:
    """A port in JAX, as `ladder` compares it.

    Attributes:
        step: (state, features, labels) -> (the next state, the loss); jitted or plain.
        outputs: (state, features) -> what the model predicts in inference.
        state: a dict of pytrees, with the weights among them. A weight's name is its path within its entry,
            with "/" between keys.
        trained, untrained: the entries with the weights that gradients train, and with those that they do
            not, such as the averages of batch normalisation ("" where there are none).
    """

    step: Callable
    outputs: Callable
    state: dict[str, Any]
    trained: str = "weights"
    untrained: str = "averages"


class JaxSide:
    """A JaxPort; its state is copied, also where the step donates it."""

    name = "JAX"

    def __init__(self, port: JaxPort, output: Callable) -> None:
        """`output` turns what the model returns into what the Estimator predicts.

        Raises:
            ValueError: the state has no such entry.
        """
        import jax

        for entry in filter(None, (port.trained, port.untrained)):
            if entry not in port.state:
                raise ValueError(f"the state has {', '.join(port.state)}, but no entry {entry!r}")
        self._port, self._output = port, output
        self._jax = jax
        self._place = jax.tree.map(lambda leaf: getattr(leaf, "sharding", None), port.state)
        self._start = jax.tree.map(np.array, port.state)
        self.trained = list(self._named(port.trained))
        self.untrained = list(self._named(port.untrained))
        self._state = self._placed(self._start)

    def _named(self, entry: str) -> Arrays:
        """Weights of an entry of the first state, by name."""
        leaves = self._jax.tree_util.tree_leaves_with_path(self._start.get(entry, {}))
        return {_path(self._jax, path): leaf for path, leaf in leaves}

    def _placed(self, state: Any) -> Any:
        """A state of arrays on the devices that the port's own state lies on."""
        leaves, structure = self._jax.tree.flatten(state)
        places = structure.flatten_up_to(self._place)
        placed = [
            self._jax.device_put(np.array(leaf), place)
            for leaf, place in zip(leaves, places, strict=True)
        ]
        return self._jax.tree.unflatten(structure, placed)

    def random(self, features: Any, labels: Any) -> list[str]:
        """Primitives that draw random numbers in a training step on such a batch."""
        return _drawn(self._jax.make_jaxpr(self._port.step)(self._state, features, labels))

    def variables(self, paths: Iterable[str]) -> Arrays:
        """Their present values."""
        now = {}
        for entry in {self._port.trained, self._port.untrained}:
            leaves = self._jax.tree_util.tree_leaves_with_path(self._state.get(entry, {}))
            now |= {_path(self._jax, path): np.asarray(leaf) for path, leaf in leaves}
        return {path: now[path] for path in paths}

    def write(self, values: Arrays) -> None:
        """Sets weights by name; everything else of the state is put back as it was."""

        def new(entry: str) -> Any:
            return self._jax.tree_util.tree_map_with_path(
                lambda path, leaf: values.get(_path(self._jax, path), leaf), self._start[entry]
            )

        entries = filter(None, (self._port.trained, self._port.untrained))
        self._state = self._placed(self._start | {entry: new(entry) for entry in entries})

    def close(self) -> None:
        """Nothing was changed that the port holds."""

    def outputs(self, features: Any) -> np.ndarray:
        """What the model gives in inference."""
        return np.asarray(self._output(self._port.outputs(self._state, features)))

    def step(self, features: Any, labels: Any) -> float:
        """Takes one training step; returns the loss before it."""
        self._state, loss = self._port.step(self._state, features, labels)
        return float(loss)


class KerasOnJaxSide(KerasSide):
    """A compiled model of Keras 3 on the JAX backend."""

    name = "Keras on JAX"

    def _compiled(self) -> Callable:
        return lambda x, y: self._model.train_on_batch(x, y, return_dict=True)["loss"]

    def random(self, x: Any, y: Any) -> list[str]:
        """Primitives that draw random numbers in the model in training."""
        import jax

        def forward(trained: Any, others: Any, x: Any) -> Any:
            return self._model.stateless_call(trained, others, x, training=True)[0]

        model = self._model
        values = (
            [variable.value for variable in group]
            for group in (model.trainable_variables, model.non_trainable_variables)
        )
        return _drawn(jax.make_jaxpr(forward)(*values, x))


def is_on_jax(model: Any) -> bool:
    """Whether a model is of Keras 3 on the JAX backend; imports nothing."""
    keras = sys.modules.get("keras")
    return keras is not None and isinstance(model, keras.Model) and keras.config.backend() == "jax"


def _drawn(jaxpr: Any) -> list[str]:
    return sorted(set(_RANDOM.findall(str(jaxpr))))


def _path(jax: Any, path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")
