"""Lowering: a step of anybody's model as HLO for one of N cores, by three frontends."""

import keras
import numpy as np
import pytest
from dry_run_models import (
    CLASSES,
    IMAGES,
    MODELS,
    ROWS,
    all_reduces,
    classify,
    dense,
    make,
    reader,
    tpu,
    train_spec,
    v1,
)

from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.frontends.function import FunctionWorkload
from lab_utils.dry_run.frontends.keras import KerasWorkload
from lab_utils.dry_run.graphs import all_nodes
from lab_utils.dry_run.lower import graph_def as graph_parts
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.estimator import tf

# isort: split
from tensorflow.compiler.xla.service import hlo_pb2

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize("name", MODELS)
def test_every_trait_lowers(name):
    model_fn, data = MODELS[name]
    program = lower_estimator(make(model_fn), reader(data), cores=8)
    trainable = [each.name for each in program.inputs if each.trainable]
    assert program.per_core_batch == 8
    assert all_reduces(program) >= len(trainable) > 0
    updated = {each.name for each in program.outputs if each.role == "variable"}
    assert {*trainable, "global_step"} <= updated
    assert program.origin.values.keys() == {e.name for e in program.inputs if e.role == "variable"}
    batch = next(program.origin.read())
    shapes = [(8, *program.inputs[number].shape) for number in program.feeds]
    assert [array.shape for array in batch] == shapes
    assert bool(program.random) == (name == "dropout")
    assert bool(program.batch_statistics) == (name == "batch_norm")
    to_host = [each.name for each in program.outputs if each.role == "host"]
    assert to_host == (["host_call/0"] if name == "no_labels" else [])


def test_all_reduces_name_all_cores_and_one_core_has_the_whole_batch():
    program = lower_estimator(make(dense), reader((ROWS, CLASSES)), cores=4)
    module = hlo_pb2.HloModuleProto.FromString(program.hlo)
    ops = [op for computation in module.computations for op in computation.instructions]
    # TensorFlow 2.20 moved the groups into a message of their own.
    holders = [getattr(op, "collective_device_list", op) for op in ops] + ops
    groups = {tuple(g.replica_ids) for each in holders for g in getattr(each, "replica_groups", ())}
    assert groups == {(0, 1, 2, 3)}
    one = lower_estimator(make(dense), reader((ROWS, CLASSES)), cores=1)
    assert one.inputs[0].shape == (64, 6)


def test_eval_and_predict_lower_without_updates():
    for mode, role in (("eval", "eval_metrics/1"), ("predict", "predictions/0")):
        program = lower_estimator(make(dense), reader((ROWS, CLASSES)), cores=8, mode=mode)
        assert role in [each.name for each in program.outputs]
        assert all(each.role != "variable" for each in program.outputs)


def fill(x):
    return x[:, :1] + tf.ones([tf.cast(tf.reduce_sum(x), tf.int32), 8])[:8]


@pytest.mark.parametrize(
    "rule, op_type, change, data",
    [
        ("TPU302", "ResizeBicubic", lambda x: v1.image.resize_bicubic(x, [4, 4]), IMAGES),
        ("TPU301", "Fill", fill, ROWS),
    ],
)
def test_what_xla_refuses_is_a_finding_at_the_learners_line(rule, op_type, change, data):
    def model_fn(features, labels, mode, params):
        x = v1.layers.flatten(change(features))
        x.set_shape([8, x.shape[1] or 8])
        return train_spec(mode, classify(v1.layers.dense(x, 3), labels), params)

    with pytest.raises(CannotLower) as caught:
        lower_estimator(make(model_fn), reader((data, CLASSES)), cores=8)
    assert caught.value.op_type == op_type
    found = caught.value.finding()
    assert found.rule == rule
    assert "test_dry_run_lower.py" in found.where and op_type in found.message


def resize_gradient(images, size, **how):
    return tf.raw_ops.ResizeNearestNeighborGrad(grads=images, size=size, **how)


def test_an_op_that_a_tpu_has_and_this_machine_has_not_is_no_finding():
    def model_fn(features, labels, mode, params):
        x = tf.reshape(resize_gradient(tf.reshape(features, [8, 3, 2, 1]), [2, 2]), [8, 4])
        return train_spec(mode, classify(v1.layers.dense(x, 3), labels), params)

    with pytest.raises(CannotLower) as caught:
        lower_estimator(make(model_fn), reader((ROWS, CLASSES)), cores=8)
    assert caught.value.only_here and caught.value.finding() is None


@pytest.mark.parametrize("within", [lambda f: f, tf.function], ids=["", "in a function"])
@pytest.mark.parametrize("centers", [False, True])
def test_the_gradient_of_resizing_to_whole_multiples_is_a_sum(within, centers):
    images = np.random.default_rng(0).integers(-9, 9, [2, 8, 9, 3]).astype(np.float32)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        resize = within(lambda x: resize_gradient(x, [4, 3], half_pixel_centers=centers))
        gradient = resize(tf.constant(images))
        expected = session.run(gradient)
    graph_def = graph_parts.prune(graph, [gradient.op])
    graph_parts.sum_resizes(graph_def, graph)
    graph_parts.rename_functions(graph_def)
    assert "ResizeNearestNeighborGrad" not in {node.op for node in all_nodes(graph_def)}
    with tf.Graph().as_default(), v1.Session() as session:
        (result,) = tf.graph_util.import_graph_def(graph_def, return_elements=[gradient.name])
        np.testing.assert_array_equal(session.run(result), expected)


def test_shapes_that_are_not_fixed_are_the_inputs_fault():
    ragged = lambda params: reader((ROWS, CLASSES))(params).unbatch().batch(8)  # noqa: E731
    with pytest.raises(InputUnfit, match="no fixed shape"):
        lower_estimator(make(dense), ragged, cores=8)


@pytest.mark.parametrize("kind", ["PER_HOST_V1", "PER_HOST_V2", "PER_SHARD_V1"])
def test_batches_are_sharded_as_tpu_estimator_shards_them(kind):
    asked = []

    def input_fn(params):
        asked.append(params["batch_size"])
        data = tf.data.Dataset.range(640).map(lambda i: (tf.fill([6], tf.cast(i, tf.float32)), 0))
        data = data.batch(params["batch_size"], drop_remainder=True)
        return data if kind != "PER_SHARD_V1" else v1.data.make_one_shot_iterator(data).get_next()

    sharding = getattr(v1.estimator.tpu.InputPipelineConfig, kind)
    config = tpu.RunConfig(tpu_config=tpu.TPUConfig(per_host_input_for_training=sharding))
    program = lower_estimator(make(dense, config=config), input_fn, cores=8)
    first, second = (batch for batch, _ in zip(program.origin.read(), range(2), strict=False))
    assert set(asked) == ({64} if kind == "PER_HOST_V1" else {8})
    if kind == "PER_SHARD_V1":  # input_fn is called for each core, which reads all the data
        assert (first[0][:, 0, 0] == 0).all() and (second[0][:, 0, 0] == 8).all()
    else:
        assert first[0][:, :, 0].ravel().tolist() == list(range(64))
        assert second[0][:, :, 0].ravel().tolist() == list(range(64, 128))


@pytest.mark.parametrize("package", [tf.keras, keras], ids=["keras 2", "keras 3"])
def test_keras_models_sum_each_gradient_once(package):
    model = package.Sequential([package.layers.Dense(8), package.layers.Dense(3)])
    loss = package.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(package.optimizers.Adam(0.01), loss)
    model.build((None, 6))
    before = [np.array(value) for value in model.get_weights()]
    data = tf.data.Dataset.from_tensor_slices((ROWS, CLASSES)).batch(96)
    program = KerasWorkload(model, data).lower(8)  # without the short last batch
    assert all_reduces(program) == 4
    assert sum(each.trainable for each in program.inputs) == 4
    assert program.outputs[0].role == "loss" and program.per_core_batch == 12
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


class OwnStep(tf.keras.Model):
    def train_step(self, data):
        rows, labels = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(rows, training=True) - labels[:, None]))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        return {"loss": loss}


def test_a_recurrent_layer_under_an_own_step_is_lowered():
    """Its functions are known to TensorFlow by their names, and lose attributes here: they get new names."""
    rows = tf.keras.Input([5, 4])
    model = OwnStep(rows, tf.keras.layers.Dense(1)(tf.keras.layers.LSTM(8)(rows)))
    model.compile("sgd")
    data = reader((tf.zeros([64, 5, 4]), tf.zeros([64])))({"batch_size": 32})
    assert KerasWorkload(model, data).lower(8).per_core_batch == 4


@pytest.mark.parametrize("data", [(ROWS,), tf.data.Dataset.from_tensors((ROWS,))], ids=type)
def test_a_tuple_of_one_array_is_the_steps_argument(data):
    assert FunctionWorkload(lambda rows: tf.reduce_sum(rows @ np.ones([6, 2], "f")), data).lower(8)


def test_a_bare_step_keeps_its_constants_and_asks_for_its_own_sums():
    weights = tf.Variable(tf.zeros([6, 3]), name="weights")
    half = tf.constant(0.5)

    def step(features, labels):
        with tf.GradientTape() as tape:
            loss = half * classify(features @ weights, labels)
        gradient = tape.gradient(loss, weights)
        context = tf.distribute.get_replica_context()
        weights.assign_sub(context.all_reduce(tf.distribute.ReduceOp.MEAN, gradient))
        return loss

    program = FunctionWorkload(step, (ROWS[:64], CLASSES[:64])).lower(8)
    assert all_reduces(program) == 1
    roles = {each.role: each for each in program.inputs}
    assert roles["variable"].name == "weights" and roles["variable"].trainable
    assert program.origin.values[roles["constant"].name] == 0.5
    with pytest.raises(InputUnfit, match="cannot be split"):
        FunctionWorkload(step, (ROWS[:60], CLASSES[:60])).lower(8)


def test_labels_and_weights_may_go_to_the_host_alone():
    """What evaluation only counts with, and a raw feature in host_call, feed no op of the step."""

    def model_fn(features, labels, mode, params):
        logits = v1.layers.dense(features["rows"], 3)
        loss = tf.reduce_mean(logits**2)
        if mode == "eval":
            metrics = (
                lambda y, w, z: {"a": v1.metrics.accuracy(y, tf.argmax(z, 1), w)},
                [labels, features["weight"], logits],
            )
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        spec = train_spec(mode, loss, params)
        return spec._replace(host_call=(lambda weight: tf.no_op(), [features["weight"]]))

    weights = np.ones(len(ROWS), np.float32)
    data = reader(({"rows": ROWS, "weight": weights}, CLASSES))
    for mode in ("train", "eval"):
        program = lower_estimator(make(model_fn), data, cores=8, mode=mode)
        sent = [each.name for each in program.outputs if each.role == "host"]
        assert len(sent) == (3 if mode == "eval" else 1)


def test_a_step_that_raises_is_told_as_a_graph_that_cannot_be_built():
    def step(features, labels):
        if tf.reduce_sum(features) > 0:  # AutoGraph converts it, and wraps what is raised later
            features += 1.0
        return tf.reduce_mean(features @ tf.zeros([features.shape[1] + 1, 1]))

    with pytest.raises(CannotLower) as caught:
        FunctionWorkload(step, (ROWS[:64], CLASSES[:64])).lower(8)
    found = caught.value.finding()
    assert found.rule == "TPU199" and "Dimensions must be equal" in found.why
    assert found.place.code.startswith("return tf.reduce_mean(features @")


def test_an_argument_with_a_default_is_no_part_of_the_batch():
    def step(images, labels, scale=2.0, pool=False):
        return tf.reduce_mean(images * scale) + tf.cast(tf.reduce_mean(labels), tf.float32)

    batch = np.zeros([8, 4], "float32"), np.zeros([8], "int32")
    program = FunctionWorkload(step, batch).lower(2)
    assert [each.name for each in program.inputs] == ["feature", "label"]
