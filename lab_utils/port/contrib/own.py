"""Names of tf.contrib that TensorFlow has no more, in a few lines each: data, image, learn, training ..."""

import ast
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from lab_utils.estimator import tf, v1


class ModeKeys:
    """tf.contrib.learn.ModeKeys: the same texts as tf.estimator.ModeKeys, where INFER is called PREDICT."""

    TRAIN, EVAL, INFER = "train", "eval", "infer"


def get_name_scope() -> str:
    """tf.contrib.framework.get_name_scope: today `tf.get_default_graph().get_name_scope()`."""
    return v1.get_default_graph().get_name_scope()


def batch_and_drop_remainder(batch_size: int) -> Callable:
    """For Dataset.apply: whole batches alone. Today `batch(batch_size, drop_remainder=True)`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: int, padded_shapes: Any, padding_values: Any = None
) -> Callable:
    """For Dataset.apply: whole padded batches alone. Today `padded_batch(..., drop_remainder=True)`."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def sloppy_interleave(
    map_func: Callable, cycle_length: int, block_length: int = 1, **options: Any
) -> Callable:
    """For Dataset.apply: interleaves in any order. Today `parallel_interleave(..., sloppy=True)`."""
    return v1.data.experimental.parallel_interleave(
        map_func, cycle_length, block_length, sloppy=True, **options
    )


def transpose_batch_time(tensor: Any) -> tf.Tensor:
    """[batch, time, ...] as [time, batch, ...]."""
    tensor = tf.convert_to_tensor(tensor)
    return tf.transpose(tensor, [1, 0, *range(2, tensor.shape.ndims)])


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable | None = None,
    name: str | None = None,
) -> tf.Tensor:
    """Cross entropy of `logits` [batch, time, classes] to `targets` [batch, time], as a mean over `weights`.

    Averaged over neither it is [batch, time], over the batch alone [time], over time alone [batch].
    """
    entropy = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with v1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        losses = entropy(labels=targets, logits=logits) * weights
        axes = [
            axis
            for axis, means in enumerate((average_across_batch, average_across_timesteps))
            if means
        ]
        if not axes:
            return losses
        return tf.reduce_sum(losses, axes) / (tf.reduce_sum(weights, axes) + 1e-12)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> tf.Tensor:
    """Projective transforms (rows of 8) of one image or a batch of them; outside of an image is 0."""
    images = tf.convert_to_tensor(images)
    single = images.shape.ndims == 3
    batch = images[None] if single else images
    transforms = tf.convert_to_tensor(transforms, tf.float32)
    transforms = transforms[None] if transforms.shape.ndims == 1 else transforms
    moved = tf.raw_ops.ImageProjectiveTransformV3(
        images=batch,
        transforms=transforms,
        output_shape=tf.shape(batch)[1:3] if output_shape is None else output_shape,
        fill_value=0.0,
        interpolation=interpolation.upper(),
        fill_mode="CONSTANT",
        name=name,
    )
    moved.set_shape(
        batch.shape if output_shape is None else [batch.shape[0], None, None, batch.shape[3]]
    )
    return moved[0] if single else moved


def rotate(
    images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Images turned by `angles` (radians, counter-clockwise) around their middle."""
    images = tf.convert_to_tensor(images)
    size = tf.cast(tf.shape(images)[-3:-1] - 1, tf.float32)
    height, width = size[0], size[1]
    angles = tf.reshape(tf.cast(angles, tf.float32), [-1])
    cos, sin, zero = tf.cos(angles), tf.sin(angles), tf.zeros_like(angles)
    x = (width - (cos * width - sin * height)) / 2
    y = (height - (sin * width + cos * height)) / 2
    rows = tf.stack([cos, -sin, x, sin, cos, y, zero, zero], axis=1)
    return transform(images, rows, interpolation, name=name)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Images moved by `translations` (dx, dy) in pixels."""
    moved = tf.reshape(tf.cast(translations, tf.float32), [-1, 2])
    one, zero = tf.ones_like(moved[:, 0]), tf.zeros_like(moved[:, 0])
    rows = tf.stack([one, zero, -moved[:, 0], zero, one, -moved[:, 1], zero, zero], axis=1)
    return transform(images, rows, interpolation, name=name)


class HParams:
    """tf.contrib.training.HParams: hyperparameters as attributes, each with the type of its first value."""

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **values: Any) -> None:
        self._names: dict[str, None] = {}
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds a hyperparameter.

        Raises:
            ValueError: `name` is there already, or is a method's.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        self._names[name] = None
        setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Gives a hyperparameter a value of the type that it has.

        Raises:
            KeyError: there is none of that name.
            ValueError: the value is of another type.
        """
        if name not in self._names:
            raise KeyError(name)
        setattr(self, name, _as_type_of(getattr(self, name), value, name))

    def del_hparam(self, name: str) -> None:
        """Removes a hyperparameter, if it is there."""
        if name in self._names:
            del self._names[name]
            delattr(self, name)

    def parse(self, values: str) -> "HParams":
        """Takes values from a text such as "learning_rate=0.1,layers=[3,4],name=big".

        Raises:
            ValueError: for another form, an unknown name, or a value of another type.
        """
        for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?[^,]*", values):
            name, mark, text = part.strip().partition("=")
            place = re.fullmatch(r"(\w+)\[(\d+)\]", name.strip())
            key = place[1] if place else name.strip()
            if not mark or key not in self._names:
                raise ValueError(f"Unknown or malformed hyperparameter: {part.strip()!r}")
            if place:
                items = list(getattr(self, key))
                items[int(place[2])] = _literal(text)
                self.set_hparam(key, items)
            else:
                self.set_hparam(key, _literal(text))
        return self

    def override_from_dict(self, values: Mapping[str, Any]) -> "HParams":
        """Takes values from a dict."""
        for name, value in values.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values: str) -> "HParams":
        """Takes values from JSON text."""
        return self.override_from_dict(json.loads(values))

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The values as JSON text."""
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def __getitem__(self, name: str) -> Any:
        """params["batch_size"], as input functions of a port have it."""
        return self.values()[name]

    def values(self) -> dict[str, Any]:
        """The hyperparameters as a dict."""
        return {name: getattr(self, name) for name in self._names}

    def get(self, key: str, default: Any = None) -> Any:
        """A value, or `default`."""
        return getattr(self, key) if key in self._names else default

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def __repr__(self) -> str:
        return f"HParams({sorted(self.values().items())})"


def _literal(text: str) -> Any:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_literal(item) for item in text[1:-1].split(",") if item.strip()]
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _as_type_of(old: Any, new: Any, name: str) -> Any:
    """`new` with the type of `old`; ints become floats, "1" and "0" booleans."""
    if old is None or new is None or callable(old):
        return new
    if isinstance(old, list):
        items = new if isinstance(new, list | tuple) else [new]
        return [_as_type_of(old[0], item, name) if old else item for item in items]
    if isinstance(old, bool) and new in (0, 1):
        return bool(new)
    if isinstance(old, float) and isinstance(new, int | float) and not isinstance(new, bool):
        return float(new)
    if isinstance(old, int) and isinstance(new, float) and math.isclose(new, int(new)):
        return int(new)
    if isinstance(old, str):
        return str(new)
    if isinstance(new, type(old)) and isinstance(new, bool) == isinstance(old, bool):
        return new
    raise ValueError(f"Could not cast hyperparameter {name!r} of type {type(old)} from {new!r}")
