"""What became of the names of tf.contrib: where each stands today, or what took its place.

A place today is a path below `tf.compat.v1` ("estimator.tpu.TPUEstimator"), or one that begins with a package
of PACKAGES ("tf_slim.layers.conv2d"). tf.contrib left TensorFlow with 2.0 (October 2019); its layers, slim,
metrics and losses live on as the package tf-slim. No TensorFlow is imported here.
"""

import re

PACKAGES = ("tensorflow", "tensorflow_estimator", "tf_slim", "lab_utils")

_STAND_INS = "lab_utils.port.contrib.stand_ins"
_TPU = "tensorflow.python.tpu"

# Names whose place does not follow from PREFIXES.
NAMES = {
    "compiler.jit.experimental_jit_scope": "xla.experimental.jit_scope",
    "eager.defun": "function",
    "eager.in_eager_mode": "executing_eagerly",
    "eager.py_func": "py_function",
    "learn.ModeKeys": "estimator.ModeKeys",
    "lookup.HashTable": "lookup.StaticHashTable",
    "opt.LazyAdamOptimizer": "train.AdamOptimizer",
    "stateless.stateless_random_normal": "random.stateless_normal",
    "stateless.stateless_random_uniform": "random.stateless_uniform",
    "summary.all_summary_ops": "summary.all_v2_summary_ops",
    "tpu.AsyncCheckpointSaverHook": "train.CheckpointSaverHook",
    "tpu.all_to_all": f"{_TPU}.ops.tpu_ops.all_to_all",
    "tpu.collective_permute": f"{_TPU}.ops.tpu_ops.collective_permute",
    "tpu.get_tpu_context": f"{_TPU}.tpu_function.get_tpu_context",
    "tpu.repeat": f"{_TPU}.training_loop.repeat",
    "tpu.while_loop": f"{_TPU}.training_loop.while_loop",
    "training.wait_for_new_checkpoint": "tensorflow.python.training.checkpoint_utils.wait_for_new_checkpoint",
    "util.constant_value": "get_static_value",
}
for _name in ("infeed_enqueue", "infeed_dequeue", "outfeed_enqueue", "outfeed_dequeue"):
    NAMES |= {f"tpu.{_name}{end}": f"{_TPU}.ops.tpu_ops.{_name}{end}" for end in ("", "_tuple")}

# Where the names of a module are looked for, in this order; "" is tf.compat.v1 itself.
PREFIXES = {
    "cloud": (_STAND_INS,),
    "checkpoint": ("train", "train.experimental"),
    "cluster_resolver": ("distribute.cluster_resolver",),
    "compiler": ("xla.experimental",),
    "compiler.jit": ("xla.experimental",),
    "compiler.xla": ("xla.experimental",),
    "data": ("data.experimental", "data", _STAND_INS),
    "distribute": ("distribute", "distribute.experimental", "tpu.experimental"),
    "eager": ("train", ""),
    "estimator": ("estimator", "estimator.experimental", _STAND_INS),
    "feature_column": ("feature_column",),
    "framework": ("train", "tf_slim", "tf_slim.ops", "tf_slim.ops.variables", ""),
    "image": (_STAND_INS,),
    "lookup": ("lookup", _STAND_INS),
    "metrics": ("tf_slim.metrics",),
    "opt": (_STAND_INS,),
    "rnn": ("nn.rnn_cell", "nn"),
    "saved_model": ("saved_model",),
    "signal": ("signal",),
    "stateless": ("random",),
    "summary": ("tensorflow.python.ops.summary_ops_v2",),
    "tpu": (
        "estimator.tpu",
        "tpu",
        "tpu.experimental",
        "tensorflow_estimator.python.estimator.tpu.tpu_estimator",
    ),
    "training": ("tf_slim.training", _STAND_INS, "train", "data.experimental"),
    "util": ("",),
}

# Whole modules that are modules of today: `import tensorflow.contrib.slim as slim` imports that.
MODULES = {
    "autograph": "autograph",
    "framework.nest": "nest",
    "keras": "keras",
    "layers": "tf_slim.layers",
    "lite": "lite",
    "losses": "tf_slim.losses",
    "slim": "tf_slim",
    "tpu.python.ops.tpu_ops": f"{_TPU}.ops.tpu_ops",
    "tpu.tpu_function": f"{_TPU}.tpu_function",
    "tpu.training_loop": f"{_TPU}.training_loop",
}
for _name in (
    "device_assignment", "feature_column", "tensor_tracer", "topology", "tpu", "tpu_feed", "tpu_sharding",
):  # fmt: skip
    MODULES[f"tpu.{_name}"] = f"{_TPU}.{_name}"
for _name in ("error_handling", "tpu_context", "util"):
    MODULES[f"tpu.{_name}"] = f"tensorflow_estimator.python.estimator.tpu.{_name}"

# What has no counterpart, and what took its place; the longest path counts.
GONE = {
    "boosted_trees": "the package tensorflow-decision-forests took its place; no TPU runs it",
    "crf": "the package tensorflow-addons 0.23 has it as tfa.text.crf_log_likelihood",
    "cudnn_rnn": "it needs a GPU: tf.keras.layers.LSTM or GRU, or tf.compat.v1.nn.rnn_cell, takes its place",
    "distributions": "the package tensorflow-probability took its place",
    "gan": "the package tensorflow-gan took its place",
    "learn": "tf.estimator took its place: Estimator, train_and_evaluate, TrainSpec and EvalSpec",
    "learn.Experiment": "tf.estimator.train_and_evaluate(estimator, TrainSpec, EvalSpec) took its place",
    "learn.learn_runner": "tf.estimator.train_and_evaluate(estimator, TrainSpec, EvalSpec) took its place",
    "learn.datasets": "tf.keras.datasets and the package tensorflow-datasets took its place",
    "lookup": "tf.lookup.StaticHashTable and StaticVocabularyTable took its place; they belong in input_fn",
    "opt": "the package tensorflow-addons 0.23 has most of its optimizers, for Keras",
    "predictor": "tf.saved_model.load took its place",
    "probability": "the package tensorflow-probability took its place",
    "quantize": "the package tensorflow-model-optimization took its place",
    "rnn.LSTMBlockCell": "it has no kernel for a TPU: tf.compat.v1.nn.rnn_cell.LSTMCell takes its place",
    "rnn.LSTMBlockFusedCell": "it has no kernel for a TPU: tf.compat.v1.nn.rnn_cell.LSTMCell takes its place",
    "seq2seq": "the package tensorflow-addons 0.23 has it as tfa.seq2seq",
    "tensorrt": "it is for GPUs; on a TPU, leave it out",
    "tpu.TPUDistributionStrategy": "tf.distribute.TPUStrategy took its place; lab 10 shows it",
    "tpu.keras_to_tpu_model": "tf.distribute.TPUStrategy took its place: make the model within its scope; "
    "lab 10 shows it",
}  # fmt: skip


def canonical(path: str) -> str:
    """The path without files of a module: "tpu.python.tpu.tpu_config.TPUConfig" is "tpu.TPUConfig"."""
    module, _, name = path.rpartition(".")
    if path in GONE or path in NAMES or module in PREFIXES:
        return path
    head = path.partition(".")[0]
    return f"{head}.{name}" if module else name


def of_module(path: str) -> str:
    """A module's path without private folders: "slim.python.slim.nets" is "slim.nets"."""
    return re.sub(r"^(\w+)\.python\.\1(?=\.|$)", r"\1", path)


def advice(path: str) -> str:
    """What took the place of a name below tf.contrib that stands nowhere today."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        for name in (".".join(parts[:end]), canonical(".".join(parts[:end]))):
            if message := GONE.get(name):
                return message
    return "nothing in TensorFlow takes its place: copy what you need of it from TensorFlow 1.15"


def candidates(path: str) -> list[str]:
    """The places today at which a name below tf.contrib may stand; the first that exists is the one."""
    parts = of_module(path).split(".")
    for end in range(len(parts), 0, -1):
        if module := MODULES.get(".".join(parts[:end])):
            return [".".join([module, *parts[end:]])]
    name = canonical(path)
    if name in NAMES:
        return [NAMES[name]]
    module, _, last = name.rpartition(".")
    return (
        []
        if name in GONE
        else [f"{prefix}.{last}".lstrip(".") for prefix in PREFIXES.get(module, ())]
    )
