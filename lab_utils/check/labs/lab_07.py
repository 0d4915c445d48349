"""The checks of lab 07, the flowers model whole: the network, its training step, the loop, the export, a log."""

import contextlib
import io
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np

from lab_utils.check.labs import jobs
from lab_utils.check.labs.logits import expect_bare, expect_logits
from lab_utils.check.labs.pictures import picture
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, other_names, returns, scope_of
from lab_utils.convert.logs import quiet
from lab_utils.dry_run.inspect import tpu_shard_context
from lab_utils.estimator import tf, tpu, v1

_CLASSES = 3


def _logits(inference: Callable, training: bool, bfloat16: bool) -> tf.Tensor:
    """The logits of a new graph, of four images between -1 and 1."""
    with tf.Graph().as_default():
        images = tf.random.stateless_uniform([4, 64, 64, 3], [1, 2], -1, 1)
        logits = inference(images, _CLASSES, training, bfloat16)
        returns(logits, tf.Tensor, "inference", "a tensor of logits")
        return logits


@todo(
    "7a",
    hints=(
        "bfloat16_scope casts no input. Where do you need a cast, then, and on which argument does it depend?",
        "Which two axes of [B, height, width, 256] does the mean go over?",
        "In which type does the last stage return its result, and in which type should you take the mean?",
    ),
    why="bfloat16 activations take half the bytes; variables, the mean and the logits need the precision of float32.",
    slips=(
        Slip(
            "stages(net, training)",
            "stages(net, True)",
            "Batch normalisation gets "
            "`training`: it updates its averages in training, and uses them otherwise.",
        ),
        Slip(
            "[1, 2]", "[1]", "The mean goes over both axes of positions, height and width: [1, 2]."
        ),
    ),
)
def convolutions(inference: Callable) -> Cases:
    """bfloat16 in the convolutions, float32 in variables and logits, no weight for a position."""
    updates = {}
    for bfloat16, training in ((True, False), (False, True)):
        where = f"With bfloat16={bfloat16}:"
        logits = _logits(inference, training, bfloat16)
        operations = logits.graph.get_operations()
        variables = logits.graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
        updates[training] = len(logits.graph.get_collection(v1.GraphKeys.UPDATE_OPS))
        label = f"{where} the logits (the loss needs float32)"
        yield label, f"{logits.dtype.name} {logits.shape}"
        kinds = {op.outputs[0].dtype.name for op in operations if op.type == "Conv2D"}
        yield f"{where} the types in which the convolutions compute", sorted(kinds)
        label = f"{where} the types of the variables (layers within v1.tpu.bfloat16_scope() keep them in float32)"
        yield label, sorted({variable.dtype.base_dtype.name for variable in variables})
    kernels = [variable.shape.as_list() for variable in variables if len(variable.shape) > 1]
    flat = [shape[0] // 256 for shape in kernels if len(shape) == 2 and shape[0] > 256]
    expect(
        not flat,
        f"You flattened: the dense layer has weights for each of {max(flat, default=0)} positions. Take the mean over "
        "height and width first, [1, 2], so that it has 256 inputs.",
    )
    label = "The kernels: those of the four stages, then one dense layer on the 256 means"
    yield label, kernels
    expect_bare(logits)
    for training, count in updates.items():
        yield f"Updates of moving averages with training={training}", count
    with logits.graph.as_default(), v1.Session() as session:
        session.run(v1.global_variables_initializer())
        expect_logits(session.run(logits))
    _expect_mean(inference)
    _expect_head_in_float32(inference)
    return "The stages compute in bfloat16, and weights, mean and logits are float32."


def _after_stages(inference: Callable, bfloat16: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """The logits, and what `stages` returned for them."""
    made, stages = [], scope_of(inference)["stages"]

    def noted(*arguments: Any, **options: Any) -> tf.Tensor:
        made.append(stages(*arguments, **options))
        return made[-1]

    with other_names(inference, stages=noted):
        logits = _logits(inference, False, bfloat16)
    expect(len(made) == 1, "inference should call `stages` once.")
    return logits, made[0]


def _expect_head_in_float32(inference: Callable) -> None:
    """Raises `Wrong` where something after the stages is in bfloat16, other than what they return."""
    logits, made = _after_stages(inference, True)
    waiting, seen = [logits.op], {made.op}
    while waiting:  # by data only: the head does not include an assertion on what the stages give
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        waiting += [tensor.op for tensor in op.inputs]
        rounded = op.type not in _PASSED_ON and tf.bfloat16 in [out.dtype for out in op.outputs]
        expect(
            not rounded,
            f"With bfloat16=True: after the stages, {op.type} gives bfloat16. Numbers there have 8 significant bits, so "
            "logits of 10.00 and 10.03 are equal. Only the stages should compute in bfloat16: what is the type of the "
            "mean's input?",
        )


_PASSED_ON = ("Identity", "Reshape")  # ops that compute nothing


def _expect_mean(inference: Callable) -> None:
    """Raises `Wrong` unless each position of what the stages give counts as much as the others, together 1."""
    logits, made = _after_stages(inference, False)
    with logits.graph.as_default(), v1.Session() as session:
        (gradients,) = tf.gradients(logits[:, 0], [made])
        expect(gradients is not None, "The logits do not depend on what `stages` returns.")
        session.run(v1.global_variables_initializer())
        gradients = session.run(gradients)
        (kernel,) = (v for v in v1.trainable_variables() if v.shape.rank == 2)
        kernel = session.run(kernel)[:, 0]
    share = kernel / (gradients.shape[1] * gradients.shape[2])
    expect(
        np.allclose(gradients, share, rtol=1e-3, atol=1e-6),
        "The logits should come from the mean over all positions, which tf.reduce_mean(net, [1, 2]) takes: each of the "
        f"{gradients.shape[1]} x {gradients.shape[2]} positions has the same share in it, but not in yours.",
    )


def _linear(images: tf.Tensor, classes: int, training: bool, bfloat16: bool) -> tf.Tensor:
    """Stands for inference: linear layers of every second value, from zero; two counters among the UPDATE_OPS."""
    for name in _COUNTERS:
        counter = v1.get_variable(name, initializer=0, trainable=False)
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, counter.assign_add(1))
    flat = tf.reshape(images, [images.shape[0], -1])
    zeros = {"kernel_initializer": v1.zeros_initializer()}
    halves = flat[:, 0::2], flat[:, 1::2]
    return tf.add_n([v1.layers.dense(half, classes, **zeros) for half in halves])


_CORES = 8
_NEARLY = 1.05  # two updates are the same one, up to rounding
_COUNTERS = ("updates_of_mean", "updates_of_variance")
_NEVER = 1e9  # a norm that no gradient here reaches


# What a sum over the cores is, as a multiple of what one of them contributes: where all have the same pictures, and
# where the gradients of the others are 0.
_ALIKE, _ALONE = _CORES, 1


def _spec(model_fn: Callable, times: int | None = None, clip: float = _NEVER) -> tuple[Any, bool]:
    """The spec of a training step on twelve easy pictures, and whether it sums over the cores of a TPU.

    `times` is what a sum over the cores is; without it the step is one for a CPU.
    """
    truths = np.arange(12, dtype=np.int32) % _CLASSES
    pixels = np.zeros([12, 8, 8, 3], np.uint8)
    pixels[np.arange(12), truths] = 255
    features = {"image": tf.constant(pixels), "weight": tf.ones([12])}
    sums = []
    wrapper, genuine = v1.tpu.CrossShardOptimizer, v1.tpu.cross_replica_sum
    wrap = wrapper.__init__

    def wrapping(self: Any, opt: Any, *arguments: Any, **options: Any) -> None:
        expect(
            not isinstance(opt, wrapper),
            "A CrossShardOptimizer wraps another one, and once is enough: the sum over the cores is one sum.",
        )
        sums.append(opt)
        wrap(self, opt, *arguments, **options)

    def summed(tensor: tf.Tensor, *_: Any, **__: Any) -> tf.Tensor:
        sums.append(tensor)
        return tensor * (times or _ALIKE)

    names = {"inference": _linear, "random_views": lambda images, size, seed: images, "CLIP": clip}
    # also under a name of the learner's own
    names |= {own: summed for own, value in scope_of(model_fn).items() if value is genuine}
    params = {"labels": ["a", "b", "c"], "image_size": 8, "train_steps": 100, "learning_rate": 0.1}
    params |= {"use_bfloat16": False, "use_tpu": times is not None, "seed": 0}
    place = "The class is v1.tpu.CrossShardOptimizer: `tpu` is v1.estimator.tpu here, which has no optimizer."
    with (
        tpu_shard_context(_CORES),
        mock.patch.object(wrapper, "__init__", wrapping),
        mock.patch.object(v1.tpu, "cross_replica_sum", summed),
        other_names(genuine, cross_replica_sum=summed),  # which the wrapper calls
        other_names(model_fn, **names),
        as_wrong("CrossShardOptimizer", place, (AttributeError,)),
    ):
        spec = model_fn(features, tf.constant(truths), "train", params)
    returns(spec, tpu.TPUEstimatorSpec, "model_fn", "a tpu.TPUEstimatorSpec")
    expect(spec.train_op is not None and spec.loss is not None, "The spec has no loss or train_op.")
    return spec, bool(sums)


def _moved(model_fn: Callable, times: int | None = None, clip: float = _NEVER) -> float:
    """How far the first step moves all weights together."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.train.create_global_step()
        spec, _ = _spec(model_fn, times, clip)
        session.run(v1.global_variables_initializer())
        before = session.run(v1.trainable_variables())
        session.run(spec.train_op)
        after = session.run(v1.trainable_variables())
    return float(np.sqrt(sum(((b - a) ** 2).sum() for b, a in zip(before, after, strict=True))))


def _expect_clipped(model_fn: Callable) -> None:
    """Raises `Wrong` unless the gradient of the whole batch has a norm of CLIP at most, on any number of cores."""
    whole = _moved(model_fn)
    # The rate is 0.1, and with momentum 0.9 a first step of Nesterov's takes the gradient 1.9 times.
    norm = whole / 0.19
    clip = norm / 16
    where = f"Where the gradient of the whole batch has the norm {norm:.3g} and CLIP = {clip:.3g}, a step"
    times = 16 * _moved(model_fn, None, clip) / whole
    expect(
        abs(times - 16) > 0.1,
        f"{where} moves the weights as if nothing were clipped: tf.clip_by_global_norm with CLIP, by its name.",
    )
    expect(
        1 / _NEARLY < times < _NEARLY,
        f"{where} moves the weights {times:.3g} times as far as CLIP allows: the norm is that of all variables "
        "together, which clip_by_global_norm takes.",
    )
    times = 16 * _moved(model_fn, _ALIKE, clip) / whole
    expect(
        1 / _NEARLY < times < _NEARLY,
        f"{where} on eight cores with the same pictures moves the weights {times:.3g} times as far as on one core: "
        "yours clips what each core contributes, an eighth, before the sum. Clip after it: which object gets the "
        "summed gradients?",
    )
    times = 16 * _moved(model_fn, _ALONE, clip) / whole
    expect(
        1 / _NEARLY < times < _NEARLY,
        f"{where} is clipped too much if the pictures differ: seven cores have no gradient here, one has {norm:.3g}, so "
        f"that of the whole batch is {norm / 8:.3g}, but the weights move {times:.3g} times as far as CLIP allows. The "
        "sum has to be clipped, not the parts.",
    )


@todo(
    "7b",
    hints=(
        "On a TPU the optimizer is wrapped, as in lab 02.",
        "Which context makes the ops created in it wait for other ops? v1.get_collection returns those others.",
        "CrossShardOptimizer's apply_gradients sums over the cores, then calls the apply_gradients of the optimizer that "
        "it wraps. Which of the two optimizers sees the gradient of the whole batch?",
        "A class that inherits from v1.train.MomentumOptimizer can clip in its own apply_gradients, then call that of "
        "super() with pairs of gradients and variables.",
    ),
    why="The moving averages change only if the step waits for their updates. The optimizer within the wrapper gets the "
    "sum over the cores, so that is where the whole batch's gradient can be clipped. BERT's program clips each core's "
    "part before the sum.",
    slips=(
        Slip(
            "v1.get_collection(v1.GraphKeys.UPDATE_OPS)",
            "[]",
            "Nothing runs the UPDATE_OPS: make the train_op depend on them.",
        ),
        Slip(", global_step=step", "", "The global step stays at 0: pass it to minimize."),
        Slip(
            'if params["use_tpu"]:',
            "if True:",
            "On a CPU there is one copy of the model, and no kernel for the "
            "all-reduce: wrap the optimizer only with params['use_tpu'].",
        ),
        Slip(
            'if params["use_tpu"]:',
            "if False:",
            "With params['use_tpu'] nothing all-reduces the gradients: the cores "
            "would drift apart.",
        ),
    ),
)
def training(model_fn: Callable) -> Cases:
    """One step: averages updated, gradients all-reduced where there are several cores, one step counted."""
    with tf.Graph().as_default():
        v1.train.create_global_step()
        yield (
            'Whether gradients are all-reduced with params["use_tpu"]',
            _spec(model_fn, _ALIKE)[1],
        )
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        spec, sums = _spec(model_fn)
        yield 'Whether gradients are all-reduced without params["use_tpu"]', sums
        slots = {v.op.name.rpartition("/")[2] for v in v1.global_variables()}
        expect(
            "Momentum" in slots,
            "Use v1.train.MomentumOptimizer: the learning rate, 0.05 at first, is one for Momentum. For Adam, "
            "which divides each gradient by its size, it is fifty times the usual one.",
        )
        updates = [v for v in v1.global_variables() if v.op.name in _COUNTERS]
        session.run(v1.global_variables_initializer())
        start = session.run(spec.loss)
        session.run(spec.train_op)
        yield "The global step after one run of train_op", session.run(step)
        yield "How often one step runs each of the UPDATE_OPS", session.run(updates)
        for _ in range(40):
            session.run(spec.train_op)
        end = session.run(spec.loss)
    expect(
        end < 0.9 * start,
        f"Forty steps on one batch bring the loss from {start:.3f} to {end:.3f}: minimize the loss.",
    )
    times = _moved(model_fn, _ALIKE) / _moved(model_fn)
    expect(
        1 / _NEARLY < times < _NEARLY,
        f"On eight cores with the same pictures, a step moves the weights {times:.2g} times as far as on one core. The "
        "wrapper divides the loss by the number of cores in its compute_gradients, and sums the gradients in its "
        "apply_gradients: use both of them, or its minimize.",
    )
    _expect_clipped(model_fn)
    return "Each step updates the averages, all-reduces the gradients over the cores of a TPU, and clips their sum."


_SCENES = (  # what a job finds: whole checkpoints, damaged ones, and its number of steps; checkpoints every 100
    ("A new job of 300 steps, every=100", (), (), 300),
    ("A new job of 250 steps, every=100", (), (), 250),
    ("A new job of 40 steps, every=100", (), (), 40),
    ("Checkpoints of steps 0, 100 and 150 are there; max_steps=300, every=100", (0, 100, 150), (), 300),
    ("The checkpoint of step 200 is damaged, that of step 100 is whole; max_steps=300", (0, 100, 200), (200,), 300),
    ("The job is done: the checkpoint of step 300 is there; max_steps=300", (200, 300), (), 300),
    ("The checkpoint of step 300 is there, and max_steps=200", (200, 300), (), 200),
)  # fmt: skip


_AT_ONCE = """
        accuracies[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
    while step < max_steps:"""
_TWICE = (
    "Yours begins by evaluating the checkpoint at which it resumes. The job before did that, unless it was killed "
    "between train and evaluate: then this one accuracy is left out."
)


@todo(
    "7c",
    hints=(
        "Which condition ends the loop, and which two numbers does it compare? Where does the first of them come from?",
        "From step 150, with every=100, the next checkpoint is that of step 200; from step 200 it is that of step 300. "
        "Which integer division gives the number of checkpoints already written?",
        "Each call of train needs two numbers: the step at which it starts (for the data), and the step at "
        "which it stops (max_steps).",
    ),
    why="Training stops at the same steps however often the job is killed, so its data are the same, too.",
    slips=(
        *(
            Slip("while step < max_steps:", f"if {when}:{_AT_ONCE}", _TWICE)
            for when in ("step", "0 < step < max_steps")
        ),
        Slip(
            "resume_point(estimator.model_dir), {}",
            "0, {}",
            "The loop does not ask where the job stands: start at "
            "resume_point(estimator.model_dir).",
        ),
        Slip(
            "step // every * every + every",
            "step + every",
            "After a kill this job stops at other steps than one that "
            "runs through: the next stop is the next multiple of `every`.",
        ),
        Slip(
            "min(step // every * every + every, max_steps)",
            "step // every * every + every",
            "The last stretch goes past max_steps.",
        ),
        Slip(
            "data.train_from(start)",
            "data.train_from(0)",
            "Each call of train starts the input again. With train_from(0) "
            "it sees the first pictures each time, and never the rest of a large set.",
        ),
        Slip(
            "data.train_from(start)",
            "data.train_from(step)",
            "The data begin at the step where this call of train starts, not where it stops.",
        ),
        Slip(
            "hooks=hooks, max_steps=step",
            "max_steps=step",
            "The hooks have to reach each call of train.",
        ),
        Slip(
            "max_steps=step",
            "steps=step",
            "steps counts from the checkpoint on; max_steps is the step at which training stops.",
        ),
    ),
)
def job(train_and_evaluate: Callable) -> Cases:
    """Resumes, stops at each checkpoint and never past the end, evaluates once each; then a real job is killed."""
    for label, whole, damaged, end in _SCENES:
        job = jobs.Job(whole, damaged, every=100)
        with contextlib.redirect_stdout(io.StringIO()):  # resume_point tells of damaged checkpoints
            result = train_and_evaluate(job, job.data, end, 100, job.hooks)
        yield f"{label}. The calls", job.calls
        returns(
            result, isinstance(result, Mapping), "train_and_evaluate", "a dict {step: accuracy}"
        )
        yield f"{label}. What train_and_evaluate returns", dict(result)
    with jobs.real_job(every=2) as (estimator, data):
        with contextlib.suppress(jobs.Killed):
            train_and_evaluate(estimator, data, 6, 2, [jobs.Kill(3)])
            raise Wrong("A kill in the middle of training should end the job: let the error pass.")
        steps = sorted(train_and_evaluate(estimator, data, 6, 2))
        yield (
            "A real job of 6 steps, every=2, is killed at step 3. After a restart it evaluates",
            steps,
        )
        yield "Its weight at the end", float(estimator.get_variable_value("weight"))
    return "Killed at any step, the job goes on from its last whole checkpoint, and does nothing twice."


SIDE = 32


class _Exporter(jobs.Job):
    """A job with the checkpoints of some steps, which is exported: it builds the receiver, and writes nothing."""

    def __init__(self, steps: Sequence[int]) -> None:
        super().__init__(steps, (), every=100)
        self.graph = tf.Graph()
        self.receiver = None
        self.step = steps[-1]  # of the checkpoint that is exported

    def export_saved_model(
        self,
        export_dir_base: str,
        serving_input_receiver_fn: Callable,
        assets_extra: dict | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = "infer",
        **unknown: Any,
    ) -> bytes:
        """As that of TPUEstimator, which inherits it from Estimator, with the same arguments."""
        place = (
            " TPUEstimator's constructor has it, and task.make_estimator sets it to False there."
        )
        for name in unknown:
            of_estimator = place if name in ("export_to_tpu", "export_to_cpu") else ""
            raise Wrong(f"export_saved_model has no argument {name}.{of_estimator}")
        expect(
            callable(serving_input_receiver_fn),
            f"The second argument of export_saved_model is a function; yours is {a(serving_input_receiver_fn)}.",
        )
        with self.graph.as_default():
            self.receiver = serving_input_receiver_fn()
        if checkpoint_path is not None:
            self.step = self._step_of(checkpoint_path)
        return f"{export_dir_base}/1".encode()

    def _step_of(self, path: Any) -> int:
        """The step of a checkpoint by its path."""
        message = (
            f"checkpoint_path is the path of a checkpoint, as run/model.ckpt-50; yours is {path!r}."
        )
        parts = str(path).rpartition("model.ckpt-")
        expect(isinstance(path, str | os.PathLike) and parts[2].isdigit(), message)
        expect(
            tf.io.gfile.exists(f"{path}.index"),
            f"The folder holds no checkpoint {path}. A job keeps its last five: take the best of those that are there.",
        )
        return int(parts[2])


_CHOICES = (  # steps in the folder, accuracies, the step to be exported, and why
    ((0, 100, 200, 300), {100: 0.5, 200: 0.9, 300: 0.7}, 200,
     "The newest checkpoint is not the best one, and export_saved_model takes it without checkpoint_path."),
    ((100, 200, 300), {100: 0.9, 200: 0.9, 300: 0.7}, 200,
     "Of equal accuracies the latest one counts."),
    ((200, 300, 400), {100: 0.95, 200: 0.8, 300: 0.9}, 300,
     "The one of step 100 was deleted, and that of step 400 was not evaluated."),
    ((900, 1000), {900: 0.5, 1000: 0.5}, 1000,
     "Of equal accuracies the latest one counts, and steps are numbers: as a text, 900 comes after 1000."),
)  # fmt: skip


def _expect_best(export: Callable) -> None:
    """Raises `Wrong` unless the best checkpoint that is there is exported."""
    for steps, accuracies, best, reason in _CHOICES:
        exporter = _Exporter(steps)
        export(exporter, SIDE, "exports", dict(accuracies))
        expect(
            exporter.step == best,
            f"The folder holds the checkpoints of steps {', '.join(map(str, steps))}, and the accuracies are "
            f"{accuracies}: yours exports that of step {exporter.step}, and should export that of step {best}. {reason}",
        )


@todo(
    "7d",
    hints=(
        "export_saved_model calls the function that you give it, in a graph of its own, without arguments. What does "
        "it return?",
        "The placeholder accepts any number of strings: which shape is that?",
        "tf.map_fn assumes that output and input have one type. fn_output_signature states a different one.",
        "Which argument of export_saved_model names a checkpoint, and what is it by default? The files have the same names as those in the message of the killed job.",
        "By which two numbers do you compare two steps? A checkpoint has a file whose name ends in .index, "
        "and tf.io.gfile.exists says whether this file exists. Between which steps can you choose?",
    ),
    why="The served model prepares pictures with the same function as evaluation. The newest checkpoint is the default, and "
    "need not be the best.",
    slips=(
        Slip(
            ", fn_output_signature=tf.uint8",
            "",
            "map_fn assumes that its output has the type of its input, string: set "
            "fn_output_signature=tf.uint8.",
        ),
        Slip(
            '{"image_bytes": encoded}',
            '{"bytes": encoded}',
            'Callers send the pictures as "image_bytes".',
        ),
        Slip(
            "export_saved_model(folder, receiver, ",
            "export_saved_model(folder, receiver(), ",
            "export_saved_model calls the receiver itself, in its own graph: pass the function.",
        ),
    ),
)
def serving(export: Callable) -> Cases:
    """Bytes in, what evaluation feeds the model out; of the checkpoints the best one that is there."""
    exporter = _Exporter((100, 200))
    one = "decode_image accepts one string, but a caller sends any number, [None]: use tf.map_fn."
    with quiet(logging.CRITICAL), as_wrong("not scalars|rank", one):  # map_fn logs that
        result = export(exporter, SIDE, "exports", {100: 0.7, 200: 0.8})
    receiver = exporter.receiver
    expect(
        receiver is not None,
        "Nothing is exported: call estimator.export_saved_model(folder, ...).",
    )
    expect(
        hasattr(receiver, "receiver_tensors"),
        f"Your function should return a v1.estimator.export.ServingInputReceiver; it returns {a(receiver)}.",
    )
    yield "What export returns (the folder of the SavedModel)", tf.compat.as_str_any(result)
    tensors = receiver.receiver_tensors
    kinds = {
        name: f"{tensor.op.type} {tensor.dtype.name} {tensor.shape}"
        for name, tensor in tensors.items()
    }
    yield "What a caller sends: a placeholder for any number of strings", kinds
    features = receiver.features
    expect(
        isinstance(features, Mapping),
        f'model_fn looks for features["image"]; yours are {a(features)}.',
    )
    image = features.get("image")
    expect(image is not None, f'model_fn looks for features["image"]; yours hold {list(features)}.')
    message = f"The pictures are {image.dtype.name}, and decode_image returns uint8."
    if image.dtype.is_floating:
        message += " Were they scaled here? model_fn itself scales the uint8 pixels."
    expect(image.dtype == tf.uint8, message)
    expect(
        image.shape.rank is None or SIDE in image.shape[1:] or None in image.shape[1:],
        f"decode_image gets the side {image.shape[1:3].as_list()}, not `size`.",
    )
    pictures = [picture(40, 40, "JPEG"), picture(40, 48, "PNG")]
    with v1.Session(graph=exporter.graph) as session:
        images = session.run(image, {tensors["image_bytes"]: pictures})
    decode = scope_of(export)["decode_image"]
    message = "The picture differs from the one in evaluation: call decode_image, and only that."
    for pixels, file in zip(images, pictures, strict=True):
        expect(np.array_equal(pixels, decode(file, SIDE)), message)
    _expect_best(export)
    return "Bytes go through the same function as in evaluation, and the best checkpoint that is there is exported."


_AFTER = {  # of two neighbours of the chain, why the second one follows from the first
    "CB": "The weights are NaN from step 312 on, and the checkpoint of step 400 holds them.",
    "BD": "A restart reads the newest checkpoint, that of step 400.",
    "DA": "The restart begins with weights that are NaN, so its first loss is NaN, too.",
}
_GOOD = 200  # the last checkpoint before step 312
_WRITTEN = {  # the steps of all checkpoints, and what speaks against the others
    0: "holds the first weights. A later one is good, too: which were written before step 312?",
    _GOOD: "",
    400: "holds the weights of after step 312: it can be read, but they are NaN.",
}


@todo(
    "7e",
    hints=(
        "Ask of each message: had this not happened, would the restart have failed?",
        "When does the host look at the loss: in each step, or between two loops? What does it write first?",
        "Step 312 is within the loop from 300 to 400. Which checkpoints were written before it?",
    ),
    why="The host acts only between loops: at step 400 it first writes the checkpoint, then looks at the "
    "loss. So the newest checkpoint is complete, but worthless.",
)
def history_of_a_failure(chain: str, resume: int) -> str:
    """Four of five messages in the order of cause and effect, and the checkpoint that is still good."""
    letters = [each for each in str(chain).upper() if each.isalpha()]
    expect(
        len(letters) == len(set(letters)) == 4 and set(letters) <= set("ABCDE"),
        f"chain is a text of four different letters from A to E; yours is {chain!r}.",
    )
    expect(
        "E" not in letters,
        "E comes from the same NaN, but it causes nothing: without it, the restart would read the same checkpoint.",
    )
    for pair, reason in _AFTER.items():
        first, second = pair
        apart = letters.index(second) - letters.index(first)
        expect(apart > 0, f"{second} follows from {first}. {reason}")
    expect(
        resume in _WRITTEN,
        f"There is no checkpoint of step {resume}: one is written every {_GOOD} steps, and the job stopped at 400.",
    )
    expect(resume == _GOOD, f"The checkpoint of step {resume} {_WRITTEN[resume]}")
    return (
        "The NaN went into a checkpoint before anybody looked. Correct the label, delete model.ckpt-400, and resume "
        f"from step {_GOOD}: one of the two is not enough."
    )
