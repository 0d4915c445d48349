"""Optimizers of tf.contrib.opt that TensorFlow has no more, written after their papers."""

from collections.abc import Iterable
from typing import Any

from lab_utils.estimator import tf, v1


def extend_with_decoupled_weight_decay(base: type) -> type:
    """An optimizer that takes `weight_decay` first, and subtracts that share of each variable in each step.

    Loshchilov and Hutter, 2017 (arXiv:1711.05101), as tf.contrib had it: the share is not multiplied by the
    learning rate.
    """

    class Decoupled(base):
        def __init__(self, weight_decay: Any, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._weight_decay = weight_decay

        def apply_gradients(
            self, grads_and_vars: Iterable, global_step: Any = None, name: str | None = None
        ) -> tf.Operation:
            pairs = list(grads_and_vars)
            rate = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
            decays = [
                variable.assign_sub(tf.cast(rate, variable.dtype.base_dtype) * variable)
                for gradient, variable in pairs
                if gradient is not None
            ]
            with tf.control_dependencies(decays):
                return super().apply_gradients(pairs, global_step, name)

    Decoupled.__name__ = f"{base.__name__.removesuffix('Optimizer')}W"
    return Decoupled


AdamWOptimizer = extend_with_decoupled_weight_decay(v1.train.AdamOptimizer)
MomentumWOptimizer = extend_with_decoupled_weight_decay(v1.train.MomentumOptimizer)


class LARSOptimizer(v1.train.MomentumOptimizer):
    """Layer-wise adaptive rates: You, Gitman and Ginsburg, 2017 (arXiv:1708.03888).

    A variable's gradient is scaled by eeta * |w| / (|g| + weight_decay * |w|), but for those whose name
    holds a text of `skip_list`.
    """

    def __init__(
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
