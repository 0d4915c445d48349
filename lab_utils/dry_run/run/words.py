"""What to do about what a run shows, in the words of each API."""

from collections.abc import Iterable

from lab_utils.dry_run.program import Api

OF_LOSS = (
    "Use the mean of the loss over the examples of the batch, not the sum, and check terms that relate the "
    "examples of a batch, such as batch normalisation or in-batch negatives."
)
OF_VARIANCE = (
    "Average the squares over the cores in place of the variances: variance = E[x^2] - mean^2, where both "
    "E[x^2] and the mean are those of all cores. An average of the variances leaves out how far the cores' "
    "means are apart."
)
OF_GRADIENTS = {
    Api.ESTIMATOR: (
        "Check the gradients. CrossShardOptimizer sums them over the cores, and divides by the number of "
        "cores only in its own minimize or compute_gradients: divide those of tf.gradients yourself."
    ),
    Api.STRATEGY: (
        "Divide each core's loss by the global batch, as tf.nn.compute_average_loss does: under TPUStrategy "
        "the optimizer sums the gradients over the cores."
    ),
    Api.JAX: (
        "Take the gradients of each core's own mean loss, and join them once, by "
        "grads = jax.lax.pmean(grads, axis_name). Under jax.pmap the gradients of a loss that psum or pmean "
        "has joined are already all-reduced. Under jax.shard_map with check_vma, so are those of "
        "parameters that all cores hold: differentiate jax.lax.pmean(loss, axis_name) there, and join "
        "nothing after it."
    ),
}
SAVED = {
    Api.ESTIMATOR: "TPUEstimator saves those of core 0.",
    Api.STRATEGY: "tf.distribute joins such variables when it reads or saves them, by their aggregation.",
}
TRAINS = {
    Api.ESTIMATOR: (
        "Pass as train_op the op that minimize or apply_gradients returns, and use a learning rate above 0."
    ),
    Api.STRATEGY: (
        "Apply the gradients in the step (optimizer.apply_gradients), take them of the variables that the "
        "loss depends on, and use a learning rate above 0."
    ),
    Api.JAX: (
        "Return the updated state from the step, take the gradients with respect to it, and use a learning "
        "rate above 0."
    ),
}
# Where a trained variable has as few digits, a small update is lost.
IN_FLOAT32 = (
    "Keep trained variables in float32, and cast them where they are multiplied: {name} is bfloat16, in "
    "which an update of less than about 1/500 of a number is lost."
)
AGREE = {
    Api.ESTIMATOR: (
        "Wrap the optimizer in tf.compat.v1.tpu.CrossShardOptimizer, so all cores apply the same all-reduced "
        "gradients."
    ),
    Api.STRATEGY: (
        "Leave the update to apply_gradients of a Keras optimizer, which sums the gradients over the cores "
        "under TPUStrategy; or sum them yourself with tf.distribute.get_replica_context().all_reduce."
    ),
}


def of_no_change(api: Api, trained: Iterable[tuple[str, str]]) -> str:
    """What to do where no trained variable changes, of which these are names and types."""
    lost = (name for name, dtype in trained if dtype == "bfloat16")
    name = next(lost, "")
    return IN_FLOAT32.format(name=name) if name else TRAINS[api]
