"""What learners get wrong in lab 07, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_7A = r"""
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    if bfloat16:
        net = tf.cast(net, tf.bfloat16)
    with v1.tpu.bfloat16_scope():
        net = tf.cast(stages(net, training), tf.float32)
        return v1.layers.dense(tf.reduce_mean(net, [1, 2]), classes)
"""

_7D = r"""
def export(estimator, size, folder, accuracies):
    def receiver():
        encoded = v1.placeholder(tf.string, [None])
        images = tf.map_fn(lambda one: decode_image(one, size), encoded, fn_output_signature=tf.uint8)
        return v1.estimator.export.ServingInputReceiver({"image": images}, {"image_bytes": encoded})
    there = [step for step in accuracies if tf.io.gfile.exists(f"{estimator.model_dir}/model.ckpt-{step}.index")]
    best = sorted(there, key=lambda step: (accuracies[step], step))[-1]
    return estimator.export_saved_model(folder, receiver, checkpoint_path=f"{estimator.model_dir}/model.ckpt-{best}")
"""

_STEP = "with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):\n        train_op = optimizer.minimize(loss, global_step=step)"


def step_of(body: str) -> str:
    """A cell with model_fn whose training step is `body`, with `Clipped` at hand."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return f"""
class Clipped(v1.train.MomentumOptimizer):
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        gradients = tf.clip_by_global_norm([gradient for gradient, _ in pairs], CLIP)[0]
        pairs = [(gradient, variable) for gradient, (_, variable) in zip(gradients, pairs)]
        return super().apply_gradients(pairs, global_step, name)


def model_fn(features, labels, mode, params):
    images = tf.cast(features["image"], tf.float32) / 127.5 - 1.0
    step = v1.train.get_global_step()
    logits = inference(images, len(params["labels"]), True, params["use_bfloat16"])
    loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
    rate = params["learning_rate"]
{lines}
    return tpu.TPUEstimatorSpec(mode=mode, train_op=train_op, loss=loss)
"""


_CLIPPED_SUM = """
class ClippedSum(v1.tpu.CrossShardOptimizer):
    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        gradients, variables = zip(*grads_and_vars)
        gradients = [v1.tpu.cross_replica_sum(gradient) for gradient in gradients]
        gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
        return self._opt.apply_gradients(zip(gradients, variables), global_step, name)
"""


def halves(compute: str, apply: str) -> str:
    """A cell with model_fn that calls both halves of minimize, each of the optimizer of that name."""
    return step_of(f"""
inner = Clipped(rate, 0.9, use_nesterov=True)
wrapped = v1.tpu.CrossShardOptimizer(inner) if params["use_tpu"] else inner
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    gradients = {compute}.compute_gradients(loss, v1.trainable_variables())
    train_op = {apply}.apply_gradients(gradients, global_step=step)
""")


def before_the_sum(clip: str) -> str:
    """A cell with model_fn that clips between the halves of the wrapper; `clip` of `gradients`."""
    return step_of(f"""
optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
if params["use_tpu"]:
    optimizer = v1.tpu.CrossShardOptimizer(optimizer)
gradients, variables = zip(*optimizer.compute_gradients(loss))
gradients = {clip}
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
""")


def loop(body: str) -> str:
    """A cell with train_and_evaluate of that body."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return f"def train_and_evaluate(estimator, data, max_steps, every, hooks=()):\n{lines}\n"


ANSWERS = {
    "7a": [
        Mutant("with v1.tpu.bfloat16_scope():", "if True:", "the types of the variables"),
        Mutant(
            "    if bfloat16:\n        net = tf.cast(net, tf.bfloat16)\n",
            "",
            "expected ['bfloat16'], yours gives ['float32']",
        ),
        Mutant("    if bfloat16:\n        net =", "    if True:\n        net =", "bfloat16=False"),
        Mutant("tf.cast(net, tf.float32), [1, 2]", "net, [1, 2]", "the loss needs float32"),
        Mutant(
            "return v1.layers.dense(net, classes)",
            "return tf.nn.softmax(v1.layers.dense(net, classes))",
            "softmax",
        ),
        # Cast at the end, as most models of that time do
        Wrong(
            r"""
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    if bfloat16:
        net = tf.cast(net, tf.bfloat16)
    with v1.tpu.bfloat16_scope():
        net = tf.reduce_mean(stages(net, training), [1, 2])
        logits = v1.layers.dense(net, classes)
    return tf.cast(logits, tf.float32)
""",
            "after the stages, BiasAdd gives bfloat16",
        ),
        # An assertion on what the stages give is not after them
        Right(
            _7A.replace(
                "net = tf.cast(stages(net, training), tf.float32)",
                """net = stages(net, training)
    with tf.control_dependencies([v1.debugging.assert_all_finite(net, "the stages overflow")]):
        net = tf.cast(net, tf.float32)""",
            )
        ),
        # The mean in bfloat16, the dense layer not
        Wrong(
            r"""
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    with v1.tpu.bfloat16_scope():
        net = stages(tf.cast(net, tf.bfloat16 if bfloat16 else tf.float32), training)
        net = tf.reduce_mean(net, [1, 2])
    return v1.layers.dense(tf.cast(net, tf.float32), classes)
""",
            "after the stages, Mean gives bfloat16",
        ),
        Mutant(
            "tf.reduce_mean(tf.cast(net, tf.float32), [1, 2])",
            "v1.layers.flatten(tf.cast(net, tf.float32))",
            "You flattened: the dense layer has weights for each of 4 positions",
        ),
        Mutant("tf.reduce_mean(", "tf.reduce_max(", "should come from the mean over all positions"),
        Mutant("tf.reduce_mean(", "tf.reduce_sum(", "should come from the mean over all positions"),
        Mutant(
            "tf.reduce_mean(tf.cast(net, tf.float32), [1, 2])",
            "tf.cast(net, tf.float32)[:, 0, 0]",
            "each of the 2 x 2 positions has the same share in it, but not in yours",
        ),
        Mutant(
            "stages(net, training)",
            "stages(stages(tf.tile(net, [1, 4, 4, 1]), training), training)",
            "those of the four stages",
        ),
        Right(_7A),
        # The scope only where it is needed, a dense layer in float32
        Right(r"""
import contextlib
def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    with v1.tpu.bfloat16_scope() if bfloat16 else contextlib.nullcontext():
        net = stages(tf.cast(net, tf.bfloat16 if bfloat16 else tf.float32), training=training)
    return v1.layers.dense(tf.reduce_mean(tf.cast(net, tf.float32), axis=(1, 2)), classes)
"""),
        # Pooled by a layer
        Right(r"""
def inference(images, classes, training, bfloat16):
    net = tf.cast(tf.nn.space_to_depth(images, 4), tf.bfloat16 if bfloat16 else tf.float32)
    with v1.tpu.bfloat16_scope():
        net = tf.cast(stages(net, training), tf.float32)
        net = v1.layers.flatten(v1.layers.average_pooling2d(net, net.shape[1], net.shape[1]))
        return v1.layers.dense(net, classes)
"""),
        # The mean in float32, twice
        Right(r"""
def head(net, classes):
    rows = tf.reduce_mean(tf.cast(net, tf.float32), 1)
    return v1.layers.dense(tf.reduce_mean(rows, 1), units=classes, name="logits")


def inference(images, classes, training, bfloat16):
    net = tf.nn.space_to_depth(images, 4)
    if not bfloat16:
        return head(stages(net, training), classes)
    with v1.tpu.bfloat16_scope():
        return head(stages(tf.cast(net, tf.bfloat16), training), classes)
"""),
        Wrong(
            _7A.replace(", [1, 2]), classes)", ", [1, 2]), classes, activation=tf.nn.relu)"),
            "logits may be any number",
        ),
        Wrong(_7A.replace("tf.nn.space_to_depth(images, 4)", "images"), "those of the four stages"),
        Wrong(
            _7A.replace(
                "dense(tf.reduce_mean(net, [1, 2]), classes)",
                "dense(v1.layers.dense(tf.reduce_mean(net, [1, 2]), 128, tf.nn.relu), classes)",
            ),
            "then one dense layer",
        ),
    ],
    "7b": [
        Mutant(
            _STEP,
            "train_op = optimizer.minimize(loss, global_step=step)\n"
            "    tf.group(*v1.get_collection(v1.GraphKeys.UPDATE_OPS))",
            "UPDATE_OPS",
        ),
        Mutant(
            "v1.get_collection(v1.GraphKeys.UPDATE_OPS)",
            "v1.get_collection(v1.GraphKeys.UPDATE_OPS)[:1]",
            "How often one step runs each of the UPDATE_OPS: expected [1, 1], yours gives [1, 0]",
        ),
        Mutant("minimize(loss,", "minimize(-loss,", "minimize the loss"),
        Mutant(
            "tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)",
            "v1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)",
            "TPUEstimatorSpec",
        ),
        Mutant(", train_op=train_op)", ")", "Missing train_op"),
        Mutant(
            "v1.tpu.CrossShardOptimizer", "tpu.CrossShardOptimizer", "v1.tpu.CrossShardOptimizer"
        ),
        Mutant(
            _STEP,
            "optimizer = v1.train.AdamOptimizer(rate)\n    " + _STEP,
            "Use v1.train.MomentumOptimizer",
        ),
        Mutant(
            "optimizer = v1.tpu.CrossShardOptimizer(optimizer)",
            "optimizer = v1.tpu.CrossShardOptimizer(v1.tpu.CrossShardOptimizer(optimizer))",
            "wraps another one",
        ),
        # Both halves of minimize: of the wrapper, or of the optimizer inside
        Right(halves("wrapped", "wrapped")),
        # By another name
        Right(
            "Sums = v1.tpu.CrossShardOptimizer\n"
            + halves("wrapped", "wrapped").replace(
                "v1.tpu.CrossShardOptimizer(inner)", "Sums(inner)"
            )
        ),
        Wrong(halves("inner", "wrapped"), "moves the weights 8 times as far as on one core"),
        Wrong(halves("wrapped", "inner"), "moves the weights 0.12 times as far as on one core"),
        Mutant(
            _STEP,
            "pairs = zip(tf.gradients(loss, v1.trainable_variables()), v1.trainable_variables())\n"
            "    with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):\n"
            "        train_op = optimizer.apply_gradients(pairs, global_step=step)",
            "moves the weights 8 times as far as on one core",
        ),
        # Where the gradient is clipped
        Wrong(
            before_the_sum("tf.clip_by_global_norm(gradients, CLIP)[0]"),
            "yours clips what each core contributes, an eighth, before the sum",
        ),
        Wrong(
            before_the_sum(
                'tf.clip_by_global_norm(gradients, CLIP / 8 if params["use_tpu"] else CLIP)[0]'
            ),
            "The sum has to be clipped, not the parts.",
        ),
        Wrong(
            before_the_sum("[tf.clip_by_norm(gradient, CLIP) for gradient in gradients]"),
            "the norm is that of all variables together",
        ),
        Wrong(before_the_sum("gradients"), "as if nothing were clipped"),
        Mutant("(gradients, CLIP)", "(gradients, 50.0)", "with CLIP, by its name"),
        Mutant("optimizer = Clipped(", "optimizer = v1.train.MomentumOptimizer(", "as if nothing"),
        # The sum by hand
        Right(
            _CLIPPED_SUM
            + step_of("""
optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
if params["use_tpu"]:
    optimizer = ClippedSum(optimizer)
else:
    optimizer = Clipped(rate, 0.9, use_nesterov=True)
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.minimize(loss, global_step=step)
""")
        ),
        # The wrapper's sum of losses that are not divided by the cores, and are by hand
        Mutant(
            "CrossShardOptimizer(optimizer)",
            'CrossShardOptimizer(optimizer, reduction="weighted_sum")',
            "moves the weights 8 times as far as on one core",
        ),
        Right(
            step_of("""
optimizer = Clipped(rate, 0.9, use_nesterov=True)
if params["use_tpu"]:
    optimizer = v1.tpu.CrossShardOptimizer(optimizer, reduction=v1.losses.Reduction.SUM)
    loss = loss / 8
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.minimize(loss, global_step=step)
""")
        ),
        Right(
            step_of("""
optimizer = inner = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
if params["use_tpu"]:
    optimizer = v1.tpu.CrossShardOptimizer(inner)
gradients, variables = zip(*optimizer.compute_gradients(loss))
if params["use_tpu"]:
    gradients = [v1.tpu.cross_replica_sum(gradient) for gradient in gradients]
gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    train_op = inner.apply_gradients(zip(gradients, variables), global_step=step)
""")
        ),
        Right(
            step_of("""
optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
gradients, variables = zip(*optimizer.compute_gradients(loss))
if params["use_tpu"]:
    gradients = [v1.tpu.cross_replica_sum(gradient / 8) for gradient in gradients]
gradients, _ = tf.clip_by_global_norm(gradients, CLIP)
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.apply_gradients(zip(gradients, variables), global_step=step)
""")
        ),
        # A method of the object
        Right(
            step_of("""
optimizer = v1.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
apply = optimizer.apply_gradients

def clipped(pairs, *arguments, **options):
    gradients, variables = zip(*pairs)
    return apply(zip(tf.clip_by_global_norm(gradients, CLIP)[0], variables), *arguments, **options)

optimizer.apply_gradients = clipped
if params["use_tpu"]:
    optimizer = v1.tpu.CrossShardOptimizer(optimizer)
with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
    train_op = optimizer.minimize(loss, global_step=step)
""")
        ),
        # The gradients by hand, one op of all updates
        Mutant(
            _STEP,
            "train_op = optimizer.minimize(loss)\n"
            "    train_op = tf.group(train_op, *v1.get_collection(v1.GraphKeys.UPDATE_OPS))",
            "global step",
        ),
    ],
    "7c": [
        # A for loop over the stops
        Right(
            loop("""
first = resume_point(estimator.model_dir)
stops = [stop for stop in range(every, max_steps, every) if stop > first] + [max_steps]
results = {}
if first >= max_steps:
    return results
for stop in stops:
    estimator.train(input_fn=data.train_from(first), hooks=list(hooks), max_steps=stop)
    results[stop] = float(estimator.evaluate(input_fn=data.evaluate, steps=data.eval_steps)["accuracy"])
    first = stop
return results
""")
        ),
        # A name for the evaluation, under which its summaries stand
        Right(
            loop("""
step, results = resume_point(estimator.model_dir), {}
while step < max_steps:
    start, step = step, min((step // every + 1) * every, max_steps)
    estimator.train(data.train_from(start), hooks=hooks, max_steps=step, saving_listeners=None)
    metrics = estimator.evaluate(data.evaluate, steps=data.eval_steps, name="held_out")
    results[step] = metrics["accuracy"]
return results
""")
        ),
        # steps instead of max_steps, the step from the metrics
        Right(
            loop("""
history = {}
here = resume_point(estimator.model_dir)
while here < max_steps:
    there = min(max_steps, (here // every + 1) * every)
    estimator.train(data.train_from(here), hooks, there - here)
    metrics = estimator.evaluate(data.evaluate, data.eval_steps)
    here = metrics["global_step"]
    history[here] = metrics["accuracy"]
return history
""")
        ),
        # The loop asks the folder again each time
        Right(
            loop("""
history = {}
while (step := resume_point(estimator.model_dir)) < max_steps:
    until = min(step - step % every + every, max_steps)
    estimator.train(data.train_from(step), hooks=hooks, max_steps=until)
    history |= {until: estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]}
return history
""")
        ),
        # A recursion
        Right(
            loop("""
step = resume_point(estimator.model_dir)
if step >= max_steps:
    return {}
until = min(every * (1 + step // every), max_steps)
estimator.train(lambda params: data.train_from(step)(params), hooks=hooks, max_steps=until)
accuracy = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
return {until: accuracy} | train_and_evaluate(estimator, data, max_steps, every, hooks)
""")
        ),
        Wrong(
            loop("""
step, results = resume_point(estimator.model_dir), {}
if 0 < step < max_steps:
    results[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
while step < max_steps:
    start, step = step, min(step // every * every + every, max_steps)
    estimator.train(data.train_from(start), hooks=hooks, max_steps=step)
    results[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
return results
"""),
            "Yours begins by evaluating the checkpoint at which it resumes",
        ),
        Wrong(
            loop("""
path, results = estimator.latest_checkpoint(), {}
step = int(path.split("-")[-1]) if path else 0
while step < max_steps:
    start, step = step, min(step // every * every + every, max_steps)
    estimator.train(data.train_from(start), hooks=hooks, max_steps=step)
    results[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
return results
"""),
            "resume_point finds the newest checkpoint that can be read",
        ),
        # No min: past the end; also where the job is done
        Wrong(
            loop("""
step, results = resume_point(estimator.model_dir), {}
while step < max_steps:
    estimator.train(data.train_from(step), hooks=hooks, max_steps=step + every)
    step += every
    results[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
return results
"""),
            "expected",
        ),
        # One long call: no evaluation on the way
        Wrong(
            loop("""
step = resume_point(estimator.model_dir)
estimator.train(data.train_from(step), hooks=hooks, max_steps=max_steps)
metrics = estimator.evaluate(data.evaluate, steps=data.eval_steps)
return {max_steps: metrics["accuracy"]}
"""),
            "The calls",
        ),
        # Evaluates what it has evaluated before
        Wrong(
            loop("""
step, results = resume_point(estimator.model_dir), {}
while True:
    if step:
        results[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
    if step >= max_steps:
        return results
    start, step = step, min(step // every * every + every, max_steps)
    estimator.train(data.train_from(start), hooks=hooks, max_steps=step)
"""),
            "evaluate 150",
        ),
        Mutant("steps=data.eval_steps", "steps=None", "the padding never ends"),
        Mutant(
            "estimator.evaluate(data.evaluate,",
            "estimator.evaluate(data.train_from(0),",
            "training data",
        ),
        Mutant(
            "estimator.train(data.train_from(start),",
            "estimator.train(data.train_from,",
            "makes one for training",
        ),
        Mutant(
            'accuracies[step] = metrics["accuracy"]',
            "accuracies[step] = metrics",
            "What train_and_evaluate returns",
        ),
        Mutant(
            'accuracies[step] = metrics["accuracy"]',
            'accuracies[start] = metrics["accuracy"]',
            "What train_and_evaluate returns",
        ),
        Mutant(
            "return accuracies", "return accuracies[step]", "should return a dict {step: accuracy}"
        ),
        # The condition never changes
        Wrong(
            loop("""
step = resume_point(estimator.model_dir)
while step < max_steps:
    until = min(step // every * every + every, max_steps)
    estimator.train(data.train_from(step), hooks=hooks, max_steps=until)
    estimator.evaluate(data.evaluate, steps=data.eval_steps)
"""),
            "The loop does not end",
        ),
        # A kill that does not end the job
        Wrong(
            loop("""
step, results = resume_point(estimator.model_dir), {}
while step < max_steps:
    start, step = step, min(step // every * every + every, max_steps)
    try:
        estimator.train(data.train_from(start), hooks=hooks, max_steps=step)
    except Exception:
        return results
    results[step] = estimator.evaluate(data.evaluate, steps=data.eval_steps)["accuracy"]
return results
"""),
            "let the error pass",
        ),
        Wrong(
            loop("""
for step in range(resume_point(estimator.model_dir), max_steps, every):
    estimator.train(data.train_from(step), hooks=hooks, steps=every)
    estimator.evaluate(data.evaluate, steps=data.eval_steps)
return {}
"""),
            "What train_and_evaluate returns",
        ),
    ],
    "7d": [
        Mutant("tf.string, [None]", "tf.string, []", "any number"),
        Mutant("tf.string, [None]", "tf.string, [1]", "any number"),
        Mutant('{"image": pixels}, {', "pixels, {", "model_fn looks for"),
        Mutant('{"image": pixels}, {', '{"images": pixels}, {', "yours hold ['images']"),
        Mutant(
            '{"image_bytes": encoded}', '{"image_bytes": pixels}', "a placeholder for any number"
        ),
        Mutant(
            "        return v1.estimator.export",
            "        v1.estimator.export",
            "is a return missing?",
        ),
        Mutant(
            "return estimator.export_saved_model(folder, receiver, checkpoint_path=paths[best])",
            "return folder",
            "Nothing is exported",
        ),
        Mutant(
            "estimator.export_saved_model(folder, ",
            'estimator.export_saved_model("elsewhere", ',
            "the folder of the SavedModel",
        ),
        Right(_7D),
        # An argument of the constructor, not of the method
        Mutant(
            "export_saved_model(folder, receiver, ",
            "export_saved_model(folder, receiver, export_to_tpu=False, ",
            "export_saved_model has no argument export_to_tpu. TPUEstimator's constructor has it",
        ),
        Mutant(
            "export_saved_model(folder, receiver, ",
            "export_saved_model(folder, receiver, to_tpu=False, ",
            "export_saved_model has no argument to_tpu.",
        ),
        Right("""
            def export(estimator, size, folder, accuracies):
                def receiver():
                    encoded = v1.placeholder(tf.string, [None])
                    pixels = tf.map_fn(lambda one: decode_image(one, size), encoded, fn_output_signature=tf.uint8)
                    return v1.estimator.export.ServingInputReceiver({"image": pixels}, {"image_bytes": encoded})

                kept = tf.train.get_checkpoint_state(estimator.model_dir).all_model_checkpoint_paths
                steps = {int(path.rpartition("-")[2]): path for path in kept}
                _, best = max((accuracy, step) for step, accuracy in accuracies.items() if step in steps)
                return estimator.export_saved_model(folder, receiver, checkpoint_path=steps[best])
        """),
        # A signature, a helper, weights too, the path as text
        Right(r"""
def export(estimator, size, folder, accuracies):
    def serving_input_receiver_fn():
        image_bytes = v1.placeholder(dtype=tf.string, shape=[None], name="image_bytes")
        def one(data):
            return decode_image(encoded=data, size=size)
        pixels = tf.map_fn(fn=one, elems=image_bytes, fn_output_signature=tf.TensorSpec([size, size, 3], tf.uint8))
        return v1.estimator.export.ServingInputReceiver(
            features={"image": pixels, "weight": tf.ones([tf.shape(pixels)[0]])}, receiver_tensors={"image_bytes": image_bytes})
    best = None
    for step in sorted(accuracies):
        path = f"{estimator.model_dir}/model.ckpt-{step}"
        if v1.train.checkpoint_exists(path) and (best is None or accuracies[step] >= accuracies[best]):
            best = step
    path = estimator.export_saved_model(
        export_dir_base=folder,
        serving_input_receiver_fn=serving_input_receiver_fn,
        checkpoint_path=f"{estimator.model_dir}/model.ckpt-{best}",
    )
    return path.decode()
"""),
        # functools.partial, a reshape
        Right(r"""
import functools
def _receive(size):
    strings = v1.placeholder(tf.string, shape=(None,))
    image = tf.map_fn(functools.partial(decode_image, size=size), strings, dtype=tf.uint8)
    image = tf.reshape(image, [-1, size, size, 3])
    return v1.estimator.export.ServingInputReceiver(dict(image=image), dict(image_bytes=strings))
def export(estimator, size, folder, accuracies):
    kept = {int(path.split("model.ckpt-")[1].removesuffix(".index")): path.removesuffix(".index")
            for path in tf.io.gfile.glob(f"{estimator.config.model_dir}/model.ckpt-*.index")}
    best = max(sorted(kept.keys() & accuracies, reverse=True), key=accuracies.get)
    return estimator.export_saved_model(folder, functools.partial(_receive, size), as_text=False, checkpoint_path=kept[best])
"""),
        # No map_fn
        Wrong(
            _7D.replace(
                "tf.map_fn(lambda one: decode_image(one, size), encoded, fn_output_signature=tf.uint8)",
                "decode_image(encoded, size)",
            ),
            "use tf.map_fn",
        ),
        # Another preparation
        Wrong(
            _7D.replace(
                "decode_image(one, size)",
                "tf.cast(tf.image.resize(tf.io.decode_image(one, channels=3, expand_animations=False), [size, size]), tf.uint8)",
            ),
            "The picture differs from the one in evaluation",
        ),
        # Scaled here
        Wrong(
            _7D.replace(
                '{"image": images},', '{"image": tf.cast(images, tf.float32) / 127.5 - 1.0},'
            ),
            "The pictures are float32, and decode_image returns uint8. Were they scaled here?",
        ),
        # Another side
        Wrong(
            _7D.replace("decode_image(one, size)", "decode_image(one, 64)"),
            "gets the side [64, 64]",
        ),
        # Augmented
        Wrong(
            _7D.replace(
                '{"image": images},', '{"image": tf.image.random_brightness(images, 0.4)},'
            ),
            "The picture differs from the one in evaluation",
        ),
        # The newest one, by default
        Mutant(
            ", checkpoint_path=paths[best]",
            "",
            "yours exports that of step 300, and should export that of step 200. The newest checkpoint is not the best one",
        ),
        # The best of all, whether it is there or not
        Mutant(
            'for step in accuracies if tf.io.gfile.exists(f"{paths[step]}.index")]',
            "for step in accuracies]",
            "The folder holds no checkpoint",
        ),
        # Of equals the first
        Mutant(
            "max(kept, key=lambda step: (accuracies[step], step))",
            "max(kept, key=accuracies.get)",
            "yours exports that of step 100, and should export that of step 200. Of equal accuracies",
        ),
        Mutant(
            "(accuracies[step], step))",
            "(accuracies[step], str(step)))",
            "as a text, 900 comes after 1000",
        ),
        # The latest that is there, the accuracies not looked at
        Mutant(
            "max(kept, key=lambda step: (accuracies[step], step))",
            "max(kept)",
            "The newest checkpoint is not the best one",
        ),
        # A number in the place of a path
        Mutant(
            "checkpoint_path=paths[best]",
            "checkpoint_path=best",
            "checkpoint_path is the path of a checkpoint",
        ),
        Mutant(
            "checkpoint_path=paths[best]",
            'checkpoint_path=f"model.ckpt-{best}"',
            "The folder holds no checkpoint model.ckpt-200",
        ),
    ],
    "7e": [
        Right("chain = 'c, b, d, a'"),
        Right("chain, resume = ['C', 'B', 'D', 'A'], 200.0"),
        Wrong("chain = 'CEDA'", "E comes from the same NaN, but it causes nothing"),
        Wrong("chain = 'CEBDA'", "a text of four different letters"),
        Wrong("chain = 'BCDA'", "B follows from C. The weights are NaN from step 312 on"),
        Wrong("chain = 'CDBA'", "D follows from B"),
        Wrong("chain = 'CBAD'", "A follows from D. The restart begins with weights that are NaN"),
        Wrong("chain = 'CBDX'", "from A to E"),
        Wrong("resume = 400", "it can be read, but they are NaN"),
        Wrong("resume = 300", "There is no checkpoint of step 300: one is written every 200 steps"),
        Wrong("resume = 600", "the job stopped at 400"),
        Wrong("resume = 0", "holds the first weights. A later one is good, too"),
    ],
}
