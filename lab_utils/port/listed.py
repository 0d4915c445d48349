"""Lists what no edit changes: what a TPU takes in another form, and that a person must write."""

import re

from lab_utils.port.program import Program

_OF_ESTIMATOR = {
    r"estimator\.inputs\.\w+": (
        "its batches have no fixed size, and it does not take params: use tf.data", "03"),
    r"estimator\.(DNN|Linear|Baseline|BoostedTrees)\w+": (
        "this ready-made estimator has no form for a TPU: write its model_fn", "02"),
}  # fmt: skip
_WITHOUT_ESTIMATOR = {
    r"(Interactive)?Session|train\.(Monitored\w*Session|Supervisor)": (
        "this is a training loop of its own: put the model into a model_fn, and train it with a "
        "TPUEstimator", "01"),
    r"(.*\.)?keras\.(Model|Sequential|models\.\w+)": (
        "a Keras model trains under a TPUStrategy: make a dry run of it with `--main`", "10"),
}  # fmt: skip
_ANYWHERE = {
    r"py_func|numpy_function|py_function": ((
        "this runs Python, which a TPU cannot do: keep it in input_fn"
    ), "03"),
    r"summary\.(scalar|image|histogram|audio|text)": (
        "on a TPU, a summary in model_fn is dropped: write it in a host_call", "15"),
    r"train\.(Logging|Profiler|Summary|StepCounter|NanTensor)\w*Hook": (
        "on a TPU, a hook runs only once in iterations_per_loop steps", "15"),
    r"train\.(shuffle_|maybe_|maybe_shuffle_)?batch(_join)?|train\.\w+_producer": (
        "a queue feeds this, but TPUEstimator needs a tf.data.Dataset", "06"),
    r"(contrib\.)?distribute\.\w*Strategy": (
        "the RunConfig of TPUEstimator takes no strategy: num_shards is the number of cores", "02"),
    r"python\.keras\..+": (
        "TensorFlow keeps only a part of this old Keras: import from tf_keras instead", ""),
    r"contrib\.(\w+\.)+(optimize_loss|create_train_op)": (
        "call minimize() of an optimizer that is wrapped in CrossShardOptimizer instead", "02"),
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
