"""Lists what no edit changes: what a TPU takes in another form, and that a person must write."""

import re

from lab_utils.port.program import Program

_OF_ESTIMATOR = {
    r"estimator\.inputs\.\w+": (
        "its batches are not of fixed size, and it takes no params: use tf.data", "03"),
    r"estimator\.(DNN|Linear|Baseline|BoostedTrees)\w+": (
        "this ready-made estimator has no form for a TPU: write its model_fn", "02"),
}  # fmt: skip
_WITHOUT_ESTIMATOR = {
    r"(Interactive)?Session|train\.(Monitored\w*Session|Supervisor)": (
        "a training loop of its own: put the model into a model_fn, and train it by a TPUEstimator", "01"),
    r"(.*\.)?keras\.(Model|Sequential|models\.\w+)": (
        "a Keras model trains under a TPUStrategy: its dry run is `--main`", "10"),
}  # fmt: skip
_ANYWHERE = {
    r"py_func|numpy_function|py_function": ("runs Python, which a TPU cannot: keep it in input_fn", "03"),
    r"summary\.(scalar|image|histogram|audio|text)": (
        "a summary in model_fn is dropped on a TPU: write it in a host_call", "15"),
    r"train\.(Logging|Profiler|Summary|StepCounter|NanTensor)\w*Hook": (
        "a hook sees a TPU once in iterations_per_loop steps", "15"),
    r"train\.(shuffle_|maybe_|maybe_shuffle_)?batch(_join)?|train\.\w+_producer": (
        "a queue feeds this: TPUEstimator takes a tf.data.Dataset", "06"),
    r"(contrib\.)?distribute\.\w*Strategy": (
        "TPUEstimator's RunConfig takes no strategy: its cores are num_shards", "02"),
    r"contrib\.(\w+\.)+(optimize_loss|create_train_op)": (
        "call minimize() of an optimizer in CrossShardOptimizer in its place", "02"),
}  # fmt: skip


def list_rest(program: Program) -> None:
    """Lists it, as todo of the program."""
    has_estimator = "stimator" in program.text
    table = _ANYWHERE | (_OF_ESTIMATOR if has_estimator else _WITHOUT_ESTIMATOR)
    for node in program.chains():
        path = program.tf_path(node) or program.qualified(node)
        for pattern, (message, lab) in table.items():
            if re.fullmatch(pattern, path):
                program.leave(node, f"{path}: {message}", lab)
