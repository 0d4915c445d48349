"""What became of the names of tf.contrib: where each stands today, or what took its place.

A place today is a path below `tf.compat.v1` ("estimator.tpu.TPUEstimator"), or one that begins with a package
of PACKAGES ("tf_slim.layers.conv2d"). tf.contrib left TensorFlow with 2.0 (October 2019); its layers, slim,
metrics and losses live on as the package tf-slim. No TensorFlow is imported here.
"""

import re

PACKAGES = ("tensorflow", "tensorflow_estimator", "tf_slim", "lab_utils")

_OWN = "lab_utils.port.contrib.own"
_OPT = "lab_utils.port.contrib.optimizers"
_TPU = "tensorflow.python.tpu"

# Names whose place does not follow from PREFIXES.
NAMES = {
    "compiler.jit.experimental_jit_scope": "xla.experimental.jit_scope",
    "data.batch_and_drop_remainder": f"{_OWN}.batch_and_drop_remainder",
    "data.padded_batch_and_drop_remainder": f"{_OWN}.padded_batch_and_drop_remainder",
    "data.sloppy_interleave": f"{_OWN}.sloppy_interleave",
    "eager.Checkpoint": "train.Checkpoint",
    "eager.Variable": "Variable",
    "eager.defun": "function",
    "eager.enable_eager_execution": "enable_eager_execution",
    "eager.executing_eagerly": "executing_eagerly",
    "eager.function": "function",
    "eager.in_eager_mode": "executing_eagerly",
    "eager.py_func": "py_function",
    "framework.argsort": "argsort",
    "framework.get_global_step": "train.get_global_step",
    "framework.get_or_create_global_step": "train.get_or_create_global_step",
    "framework.get_name_scope": f"{_OWN}.get_name_scope",
    "framework.init_from_checkpoint": "train.init_from_checkpoint",
    "framework.is_tensor": "is_tensor",
    "framework.list_variables": "train.list_variables",
    "framework.load_checkpoint": "train.load_checkpoint",
    "framework.load_variable": "train.load_variable",
    "framework.sort": "sort",
    "image.rotate": f"{_OWN}.rotate",
    "image.transform": f"{_OWN}.transform",
    "image.translate": f"{_OWN}.translate",
    "layers.bucketized_column": "feature_column.bucketized_column",
    "layers.crossed_column": "feature_column.crossed_column",
    "layers.embedding_column": "feature_column.embedding_column",
    "layers.recompute_grad": "recompute_grad",
    "layers.variance_scaling_initializer": "tf_slim.variance_scaling_initializer",
    "learn.ModeKeys": f"{_OWN}.ModeKeys",
    "lookup.HashTable": "lookup.StaticHashTable",
    "lookup.KeyValueTensorInitializer": "lookup.KeyValueTensorInitializer",
    "lookup.TextFileInitializer": "lookup.TextFileInitializer",
    "opt.AdamWOptimizer": f"{_OPT}.AdamWOptimizer",
    "opt.LARSOptimizer": f"{_OPT}.LARSOptimizer",
    "opt.LazyAdamOptimizer": "train.AdamOptimizer",
    "opt.MomentumWOptimizer": f"{_OPT}.MomentumWOptimizer",
    "opt.extend_with_decoupled_weight_decay": f"{_OPT}.extend_with_decoupled_weight_decay",
    "rnn.static_rnn": "nn.static_rnn",
    "rnn.static_bidirectional_rnn": "nn.static_bidirectional_rnn",
    "rnn.transpose_batch_time": f"{_OWN}.transpose_batch_time",
    "seq2seq.sequence_loss": f"{_OWN}.sequence_loss",
    "stateless.stateless_multinomial": "random.stateless_multinomial",
    "stateless.stateless_random_normal": "random.stateless_normal",
    "stateless.stateless_random_uniform": "random.stateless_uniform",
    "stateless.stateless_truncated_normal": "random.stateless_truncated_normal",
    "summary.all_summary_ops": "summary.all_v2_summary_ops",
    "summary.initialize": "summary.initialize",
    "tpu.all_to_all": f"{_TPU}.ops.tpu_ops.all_to_all",
    "tpu.collective_permute": f"{_TPU}.ops.tpu_ops.collective_permute",
    "tpu.get_tpu_context": f"{_TPU}.tpu_function.get_tpu_context",
    "tpu.repeat": f"{_TPU}.training_loop.repeat",
    "tpu.while_loop": f"{_TPU}.training_loop.while_loop",
    "training.HParams": f"{_OWN}.HParams",
    "training.checkpoints_iterator": "train.checkpoints_iterator",
    "training.bucket_by_sequence_length": "data.experimental.bucket_by_sequence_length",
    "training.wait_for_new_checkpoint": "tensorflow.python.training.checkpoint_utils.wait_for_new_checkpoint",
    "util.constant_value": "get_static_value",
    "util.make_tensor_proto": "make_tensor_proto",
}
for _name in (
    "always_record_summaries", "audio", "create_file_writer", "create_summary_file_writer", "flush",
    "generic", "histogram", "image", "never_record_summaries", "record_summaries_every_n_global_steps",
    "scalar",
):  # fmt: skip
    NAMES[f"summary.{_name}"] = f"lab_utils.port.contrib.summary.{_name}"

# Where the names of a module are looked for, in this order.
PREFIXES = {
    "autograph": ("autograph",),
    "checkpoint": ("train", "train.experimental"),
    "cluster_resolver": ("distribute.cluster_resolver",),
    "compiler": ("xla.experimental",),
    "compiler.jit": ("xla.experimental",),
    "compiler.xla": ("xla.experimental",),
    "data": ("data.experimental", "data"),
    "distribute": ("distribute", "distribute.experimental"),
    "estimator": ("estimator", "estimator.experimental"),
    "feature_column": ("feature_column",),
    "framework": ("tf_slim", "tf_slim.ops", "tf_slim.ops.variables"),
    "keras": ("keras",),
    "layers": ("tf_slim.layers", "tf_slim"),
    "lite": ("lite",),
    "losses": ("tf_slim.losses",),
    "metrics": ("tf_slim.metrics",),
    "rnn": ("nn.rnn_cell",),
    "saved_model": ("saved_model",),
    "signal": ("signal",),
    "slim": ("tf_slim",),
    "stateless": ("random",),
    "tpu": (
        "estimator.tpu",
        "tpu",
        "tpu.experimental",
        "tensorflow_estimator.python.estimator.tpu.tpu_estimator",
    ),
    "training": ("tf_slim.training",),
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
    "bigtable": "the package tensorflow-io reads Bigtable",
    "boosted_trees": "the package tensorflow-decision-forests took its place; no TPU runs it",
    "crf": "the package tensorflow-addons 0.23 has it as tfa.text.crf_log_likelihood",
    "cudnn_rnn": "it needs a GPU: tf.keras.layers.LSTM or GRU, or tf.compat.v1.nn.rnn_cell, takes its place",
    "distributions": "the package tensorflow-probability took its place",
    "eager.Iterator": "iterate over the dataset itself",
    "ffmpeg": "the package tensorflow-io reads audio and video",
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
    "tfprof": "tf.compat.v1.profiler took its place",
    "tpu.TPUDistributionStrategy": "tf.distribute.TPUStrategy took its place; lab 09 shows it",
    "tpu.keras_to_tpu_model": "tf.distribute.TPUStrategy took its place: make the model within its scope; "
    "lab 09 shows it",
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
            if told := GONE.get(name):
                return told
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
    return [] if name in GONE else [f"{prefix}.{last}" for prefix in PREFIXES.get(module, ())]
