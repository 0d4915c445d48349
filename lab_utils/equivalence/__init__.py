"""Is a port to Keras or JAX the same model as its Estimator? Four rungs, each resting on the last.

    from lab_utils.equivalence import JaxPort, ladder
    ladder(estimator, keras_model, batches)
    ladder(estimator, JaxPort(step, outputs, state), batches)

1. the same variables: names, shapes, in order
2. the same outputs, with the Estimator's weights in both
3. the same loss and the same update, from one training step on one batch
4. the same course of the loss over a short run

The first rung that does not hold is where the ports differ; those above it are not run.

`train_apart(estimator, input_fn, eval_input_fn)` trains the copies of a model that no all-reduce keeps equal.
"""

from lab_utils.equivalence.jax_sides import JaxPort
from lab_utils.equivalence.ladder import Ladder, Rung, ladder
from lab_utils.equivalence.replicas import Replicas, train_apart

__all__ = ["JaxPort", "Ladder", "Replicas", "Rung", "ladder", "train_apart"]
