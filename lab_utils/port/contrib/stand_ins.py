"""What TensorFlow lost of tf.contrib (cloud, data, estimator, image, opt, training), a few lines each."""

import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from lab_utils.estimator import tf, v1


def configure_gcs(session: Any, credentials: Any = None, **settings: Any) -> None:
    """Told a TPU's host how to read the user's buckets, as notebooks of Colab did. Nothing is read here."""


def batch_and_drop_remainder(batch_size: int) -> Callable:
    """For Dataset.apply: whole batches only. Today `batch(batch_size, drop_remainder=True)`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1
) -> v1.lookup.StaticHashTable | v1.lookup.StaticVocabularyTable:
    """The table that gives each string of `mapping` its number in it; others `default_value`, or a bucket."""
    numbers = tf.range(tf.size(mapping, tf.int64))
    pairs = tf.lookup.KeyValueTensorInitializer(mapping, numbers)
    if num_oov_buckets:
        return v1.lookup.StaticVocabularyTable(pairs, num_oov_buckets)
    return v1.lookup.StaticHashTable(pairs, default_value)


def clip_gradients_by_norm(optimizer: v1.train.Optimizer, clip_norm: float) -> v1.train.Optimizer:
    """The optimizer itself, which from now on clips the gradients by their global norm."""
    apply_gradients = optimizer.apply_gradients

    def clip_and_apply(grads_and_vars: Iterable, *arguments: Any, **options: Any) -> tf.Operation:
        gradients, variables = zip(*grads_and_vars, strict=True)
        clipped, _ = tf.clip_by_global_norm(gradients, clip_norm)
        return apply_gradients(list(zip(clipped, variables, strict=True)), *arguments, **options)

    optimizer.apply_gradients = clip_and_apply
    return optimizer


def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Projective transforms (rows of 8) of one image or a batch of them; outside of an image is 0."""
    images = tf.convert_to_tensor(images)
    batch = images[None] if images.shape.ndims == 3 else images
    moved = tf.raw_ops.ImageProjectiveTransformV3(
        images=batch,
        transforms=tf.reshape(tf.cast(transforms, tf.float32), [-1, 8]),
        output_shape=tf.shape(batch)[1:3],
        fill_value=0.0,
        interpolation=interpolation.upper(),
        fill_mode="CONSTANT",
        name=name,
    )
    moved.set_shape(batch.shape)
    return moved[0] if images.shape.ndims == 3 else moved


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
    return transform(images, rows, interpolation, name)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None
) -> tf.Tensor:
    """Images moved by `translations` (dx, dy) in pixels."""
    moved = tf.reshape(tf.cast(translations, tf.float32), [-1, 2])
    one, zero = tf.ones_like(moved[:, 0]), tf.zeros_like(moved[:, 0])
    rows = tf.stack([one, zero, -moved[:, 0], zero, one, -moved[:, 1], zero, zero], axis=1)
    return transform(images, rows, interpolation, name)


class LARSOptimizer(v1.train.MomentumOptimizer):
    """Layer-wise adaptive rates: You, Gitman and Ginsburg, 2017 (arXiv:1708.03888).

    A variable's gradient is scaled by eeta * |w| / (|g| + weight_decay * |w|), but for those whose name
    holds a text of `skip_list`.
    """

    def __init__(  # noqa: PLR0913  as TensorFlow 1 had it
        self,
        learning_rate: Any,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Iterable[str] | None = None,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
        self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
        self._skipped = tuple(skip_list or ())

    def apply_gradients(
        self, grads_and_vars: Iterable, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        """Scales each gradient, then takes a step of momentum."""
        pairs = [
            (self._scaled(gradient, variable), variable) for gradient, variable in grads_and_vars
        ]
        return super().apply_gradients(pairs, global_step, name)

    def _scaled(self, gradient: Any, variable: Any) -> Any:
        if gradient is None or any(text in variable.name for text in self._skipped):
            return gradient
        weights = tf.norm(tf.convert_to_tensor(variable))
        length = tf.norm(gradient)
        both = tf.logical_and(weights > 0, length > 0)
        rate = self._eeta * weights / (length + self._weight_decay * weights + self._epsilon)
        return tf.where(both, rate, 1.0) * (gradient + self._weight_decay * variable)


class AdamWOptimizer(v1.train.AdamOptimizer):
    """Adam with decoupled weight decay: Loshchilov and Hutter, 2017 (arXiv:1711.05101).

    A step first takes weight_decay * w from each variable w; the learning rate does not scale that.
    """

    def __init__(
        self, weight_decay: Any, *arguments: Any, name: str = "AdamW", **options: Any
    ) -> None:
        super().__init__(*arguments, name=name, **options)
        self._weight_decay = weight_decay

    def apply_gradients(
        self, grads_and_vars: Iterable, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        """Shortens the variables, then takes a step of Adam."""
        pairs = list(grads_and_vars)
        decay = tf.cast(self._weight_decay, tf.float32)
        shortened = [v.assign_sub(decay * v) for gradient, v in pairs if gradient is not None]
        with tf.control_dependencies(shortened):
            return super().apply_gradients(pairs, global_step, name)


class HParams(types.SimpleNamespace):
    """tf.contrib.training.HParams: hyperparameters as attributes, each with the type of its first value."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Adds one; ValueError if its name has a value other than None already, or is a method's."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        setattr(self, name, list(value) if isinstance(value, tuple) else value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Sets a hyperparameter, as the type that it has; ValueError if there is none, or it has another."""
        if name not in self:
            raise ValueError(f"Unknown hyperparameter: {name}")
        setattr(self, name, _as_type_of(self[name], value))

    def parse(self, values: str) -> "HParams":
        """Takes values from a text such as "learning_rate=0.1,layers=[3,4],name=big"; else ValueError."""
        for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", values):
            name, text = part.split("=")
            self.set_hparam(name.strip(), text.strip())
        return self

    def override_from_dict(self, values: Mapping[str, Any]) -> "HParams":
        """Takes values from a dict."""
        for name, value in values.items():
            self.set_hparam(name, value)
        return self

    def values(self) -> dict[str, Any]:
        """The hyperparameters as a dict."""
        return dict(vars(self))

    def __getitem__(self, name: str) -> Any:
        """params["batch_size"], as input functions of a port have it."""
        return vars(self)[name]

    def __contains__(self, key: str) -> bool:
        return key in vars(self)


def _as_type_of(old: Any, new: Any) -> Any:
    """`new`, perhaps a text, with the type of `old`."""
    if old is None or new is None:
        return new
    if isinstance(old, list):
        items = new.strip("[]").split(",") if isinstance(new, str) else new
        return [_as_type_of(old[0], item) if old else item for item in items]
    if isinstance(old, bool):
        return str(new).lower() in ("true", "1")
    return type(old)(new)
