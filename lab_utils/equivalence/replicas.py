"""A training step on several cores without an all-reduce: what becomes of the copies of the model.

On a CPU each copy is trained on its core's share of every batch, as a TPU would train it. The mean of the
cores' gradients is the gradient of the mean loss over the whole batch, so the model that an all-reduce
gives is the one that is trained on whole batches.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lab_utils.dry_run.inspect import settings
from lab_utils.equivalence.sides import Arrays, ModelGraph
from lab_utils.estimator import tf, v1
from lab_utils.notebook import look, plots


@dataclass(frozen=True)
class Replicas:
    """Copies of a model that were trained apart, and the one that was trained with an all-reduce.

    Attributes:
        weight: the variable of the weight that is shown, whose values end far from each other.
        values: of that weight after each step, float [steps + 1, cores].
        joint_values: of it in the model with the all-reduce, float [steps + 1].
        metrics: held-out metrics after the last step by name, each float [cores].
        joint_metrics: those of the model with the all-reduce.
    """

    weight: str
    values: np.ndarray
    joint_values: np.ndarray
    metrics: dict[str, np.ndarray]
    joint_metrics: dict[str, float]

    def __str__(self) -> str:
        """A line for each metric: of the copies, of the one in the checkpoint, of the joint model."""
        return "\n".join(
            f"{name}: {found.min():.3g} to {found.max():.3g} on the cores,\n  {found[0]:.3g} in the "
            f"checkpoint (core 0), {self.joint_metrics[name]:.3g} with an all-reduce"
            for name, found in self.metrics.items()
        )

    def draw(self, metric: str = "accuracy") -> None:
        """Shows the weight over the steps, and a metric from 0 to 1 of each copy."""
        shares, joint = self.metrics[metric], self.joint_metrics[metric]
        steps, cores = len(self.values) - 1, len(shares)
        figure = plots.Figure(figsize=(9, 3.2))
        left, right = figure.subplots(1, 2, width_ratios=[3, 2])
        for core in range(cores):
            label = "without an all-reduce: a model on each core" if core == 0 else None
            left.plot(
                self.values[:, core], color=look.ALARM, lw=2.2 if core == 0 else 1, label=label
            )
        left.plot(
            self.joint_values,
            color=look.FILLED,
            lw=2.2,
            ls="--",
            label="with an all-reduce: one model",
        )
        at_the_end = {"xytext": (4, -3), "textcoords": "offset points", "fontsize": 8}
        left.annotate("core 0", (steps, self.values[-1, 0]), **at_the_end)
        left.set(xlabel="step", ylabel=f"one weight of {self.weight}", xlim=(0, steps * 1.1))
        left.set_xticks(range(0, steps + 1, max(1, steps // 4)))
        left.legend(fontsize=8)
        right.barh(range(cores), shares, color=[look.ALARM] + ["#eeb4af"] * (cores - 1))
        right.axvline(joint, color=look.FILLED, lw=2.2, ls="--")
        for core, share in enumerate(shares):
            text = f"{share:.0%}, the checkpoint" if core == 0 else f"{share:.0%}"
            colour = "white" if core == 0 else look.INK
            right.text(0.02, core, text, va="center", fontsize=8, color=colour, weight="bold")
        above = {"color": look.FILLED, "fontsize": 8, "ha": "center", "va": "bottom"}
        right.text(joint, -0.8, f"{joint:.0%}", **above)
        right.set_yticks(range(cores), [f"core {core}" for core in range(cores)], fontsize=8)
        right.invert_yaxis()
        right.set(xlabel=f"held-out {metric} (measured here)", xlim=(0, 1))
        start, *_, end = self.values
        look.show(
            figure,
            f"On the left is one weight over {steps} steps. The copies on {cores} cores start at "
            f"{start[0]:.3f}, and end between {end.min():.3f} and {end.max():.3f}; with an all-reduce it "
            f"ends at {self.joint_values[-1]:.3f} on all cores. On the right is the held-out {metric}: "
            f"{', '.join(f'{share:.0%}' for share in shares)} on cores 0 to {cores - 1}; {joint:.0%} with an "
            "all-reduce.",
        )


def train_apart(
    estimator: Any,
    input_fn: Callable,
    eval_input_fn: Callable,
    cores: int = 8,
    steps: int = 20,
) -> Replicas:
    """Trains a model on several cores without an all-reduce, beside the same model with one.

    One session plays all cores in turn, so random ops such as dropout draw other numbers for each core.

    Args:
        estimator: a TPUEstimator. Its model_fn is called with use_tpu=False, so that its optimizer is not
            wrapped. It is left as it is, and its checkpoints are not read.
        input_fn: for training; gets the global batch size.
        eval_input_fn: for evaluation; one batch of it is taken.
        cores: of the TPU.
        steps: of training.
    """
    made = settings(estimator)
    batches = _batches(input_fn, made.params | {"batch_size": made.train_batch_size}, steps)
    held_out = _batches(eval_input_fn, made.params | {"batch_size": made.eval_batch_size}, 1)[0]

    def graph(mode: str, batch: Any) -> ModelGraph:
        params = made.params | {"use_tpu": False, "batch_size": len(tf.nest.flatten(batch)[0])}
        return ModelGraph(made.config, batch, lambda fed: made.model_fn(*fed, mode, params))

    shares = [_shares(batch, cores) for batch in batches]
    of_core, joint = graph("train", shares[0][0]), graph("train", batches[0])
    values = [[of_core.read()] * (cores + 1)]
    for batch, parts in zip(batches, shares, strict=True):
        turns = [(of_core, part) for part in parts] + [(joint, batch)]
        values.append([_step(*turn, start) for turn, start in zip(turns, values[-1], strict=True)])
    metrics = _metrics(graph("eval", held_out), held_out, values[-1])
    name, place = _furthest_apart([each[:cores] for each in values], of_core.trained)
    shown = np.array([[each[name][place] for each in step] for step in values])
    names = metrics[0].keys()
    return Replicas(
        name,
        shown[:, :cores],
        shown[:, cores],
        {each: np.array([core[each] for core in metrics[:cores]]) for each in names},
        metrics[cores],
    )


def _batches(input_fn: Callable, params: dict[str, Any], number: int) -> list[Any]:
    """The first batches of an input function, as arrays."""
    with tf.Graph().as_default(), v1.Session() as session:
        batch = v1.data.make_one_shot_iterator(input_fn(params)).get_next()
        return [session.run(batch) for _ in range(number)]


def _shares(batch: Any, cores: int) -> list[Any]:
    """Each core's share of a batch."""

    def share(core: int) -> Any:
        return tf.nest.map_structure(lambda array: np.split(array, cores)[core], batch)

    return [share(core) for core in range(cores)]


def _step(model: ModelGraph, batch: Any, start: Arrays) -> Arrays:
    """The variables after a training step from `start`."""
    model.write(start)
    model.run(model.spec.train_op, batch)
    return model.read()


def _metrics(model: ModelGraph, batch: Any, copies: list[Arrays]) -> list[dict[str, float]]:
    """The metrics of a model on one batch, with the values of each copy."""
    function, tensors = model.spec.eval_metrics
    with model.graph.as_default():
        made = function(**tensors) if isinstance(tensors, dict) else function(*tensors)
        from_zero = v1.local_variables_initializer()
    updates = [update for _, update in made.values()]
    results = {name: value for name, (value, _) in made.items()}
    metrics = []
    for values in copies:
        model.write({name: value for name, value in values.items() if name in model.names})
        model.run(from_zero, batch)
        model.run(updates, batch)
        found = model.run(results, batch)
        metrics.append({name: float(value) for name, value in found.items()})
    return metrics


def _furthest_apart(values: list[list[Arrays]], names: list[str]) -> tuple[str, tuple[int, ...]]:
    """The trained weight of which no two copies end near each other: its variable, its place.

    Each step has to change each copy. (Weights into a unit that gives 0 for all examples of a core
    stand still.)

    Args:
        values: after each step those of each copy.
        names: of the trained variables.
    """
    gaps = {}
    for name in names:
        copies = np.array([[copy[name] for copy in step] for step in values])
        apart = np.diff(np.sort(copies[-1], axis=0), axis=0).min(axis=0)
        gaps[name] = apart * (np.diff(copies, axis=0) != 0).all(axis=(0, 1))
    name = max(gaps, key=lambda each: gaps[each].max())
    return name, np.unravel_index(int(gaps[name].argmax()), gaps[name].shape)
