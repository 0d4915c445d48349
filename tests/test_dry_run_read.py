"""Reading a core's program: the op table, the flow of data, and the learner's own lines."""

import functools
import inspect
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader

from lab_utils.common import source
from lab_utils.dry_run import dry_run, rules
from lab_utils.dry_run import ops as op_table
from lab_utils.dry_run.read import inputs, randomness, records
from lab_utils.dry_run.read import stage as read_stage
from lab_utils.dry_run.read import unsupported as read_ops
from lab_utils.dry_run.read.flow import DATA, RANDOM, VARIABLE, CoreProgram, Flow, is_random
from lab_utils.dry_run.records import Mode
from lab_utils.estimator import tf, v1

# What tensorflow-tpu 2.19.1 did with small functions, on x: float32 [8, 16], i: int32 [8].
REFUSED = {
    "AsString": lambda x, i: tf.strings.as_string(x),
    "StringToHashBucketFast": lambda x, i: tf.strings.to_hash_bucket_fast(
        tf.strings.as_string(i), 9
    ),
    "GatherV2": lambda x, i: tf.gather(["a", "b"], i),
    "EagerPyFunc": lambda x, i: tf.py_function(lambda y: y, [x], tf.float32),
    "PyFunc": lambda x, i: tf.numpy_function(lambda y: y, [x], tf.float32),
    "StringFormat": lambda x, i: tf.print(x),
    "Print": lambda x, i: v1.Print(x, [x]),
    "DecodeJpeg": lambda x, i: tf.io.decode_jpeg(tf.strings.as_string(i)[0]),
    "Cast": lambda x, i: tf.cast(x, tf.complex128),
    "ResizeBicubic": lambda x, i: tf.image.resize(_images(x), [9, 9], "bicubic"),
    "CropAndResize": lambda x, i: tf.image.crop_and_resize(_images(x), x[:, :4], i, [2, 2]),
    "RaggedTensorToTensor": lambda x, i: tf.RaggedTensor.from_row_splits(x, i).to_tensor(),
    "LogUniformCandidateSampler": lambda x, i: tf.nn.nce_loss(
        x, x[:, 0], tf.cast(i, tf.int64)[:, None], x, 2, 8
    ),
    "EncodeJpeg": lambda x, i: tf.io.encode_jpeg(tf.cast(_images(x)[0], tf.uint8)),
    "Dilation2D": lambda x, i: tf.nn.dilation2d(
        _images(x), x[:2, :2, None], [1] * 4, "SAME", "NHWC", [1] * 4
    ),
    "FractionalMaxPool": lambda x, i: tf.nn.fractional_max_pool(_images(x), [1, 1.4, 1.4, 1]),
    "MaxPoolWithArgmax": lambda x, i: tf.nn.max_pool_with_argmax(_images(x), 2, 2, "SAME"),
    "SegmentSum": lambda x, i: tf.math.segment_sum(x, i),
}
LOWERED = {
    "unique": lambda x, i: tf.unique(i),
    "where": lambda x, i: tf.where(x > 0),
    "float64": lambda x, i: tf.cast(x, tf.float64) + 1,
    "float16": lambda x, i: tf.cast(x, tf.float16) + 1,
    "int64": lambda x, i: tf.cast(i, tf.int64) + 1,
    "uint8": lambda x, i: tf.cast(i, tf.uint8),
    "int16": lambda x, i: tf.cast(i, tf.int16),
    "range": lambda x, i: tf.range(i[0]),
    "tile": lambda x, i: tf.tile(x, [1, i[0]]),
    "one_hot": lambda x, i: tf.one_hot(i, 9),
    "sequence_mask": lambda x, i: tf.sequence_mask(i),
    "svd": lambda x, i: tf.linalg.svd(x),
    "nms": lambda x, i: tf.image.non_max_suppression(x[:, :4], x[:, 0], 3),
    "resize": lambda x, i: tf.image.resize(_images(x), [9, 9]),
    "resize_nearest": lambda x, i: tf.image.resize(_images(x), [9, 9], "nearest"),
    "random_crop": lambda x, i: tf.image.random_crop(x, [4, 4]),
    "summary_without_writer": lambda x, i: tf.summary.scalar("a", x[0, 0], step=1),
    "fft": lambda x, i: tf.signal.fft(tf.cast(x, tf.complex64)),
    "top_k": lambda x, i: tf.nn.top_k(x, 3),
    "assert": lambda x, i: tf.debugging.assert_greater(x, 0.0),
    "check_numerics": lambda x, i: tf.debugging.check_numerics(x, "x"),
    "sparse_to_dense": lambda x, i: v1.sparse_to_dense(i, [9], x[:, 0]),
    "bincount": lambda x, i: tf.math.bincount(i, minlength=9, maxlength=9),
    "uniform": lambda x, i: tf.random.uniform([8]),
    "shuffle": lambda x, i: tf.random.shuffle(x),
    "while": lambda x, i: tf.while_loop(lambda y: tf.reduce_sum(y) > 0, lambda y: [y - 1], [x]),
    "tensor_array": lambda x, i: tf.TensorArray(tf.float32, 8).unstack(x).stack(),
    "embedding_lookup": lambda x, i: tf.nn.embedding_lookup(x, i),
    "adjust_hue": lambda x, i: tf.image.adjust_hue(tf.reshape(x[:, :15], [8, 5, 3]), 0.1),
    "adjust_saturation": lambda x, i: tf.image.adjust_saturation(
        tf.reshape(x[:, :15], [8, 5, 3]), 2
    ),
    "lrn": lambda x, i: tf.nn.local_response_normalization(_images(x)),
    "partition": lambda x, i: tf.dynamic_partition(x, i, 2),
    "unsorted_segment_sum": lambda x, i: tf.math.unsorted_segment_sum(x, i, 4),
    "sort": lambda x, i: tf.sort(x),
    "matrix_power": lambda x, i: tf.linalg.matmul(x, x, transpose_b=True),
    "eigh": lambda x, i: tf.linalg.eigh(x[:, :8]),
}


def _images(x):
    return tf.reshape(x, [8, 4, 4, 1])


def _graph(function):
    def build(x, i):
        function(x, i)

    signature = tf.TensorSpec([8, 16]), tf.TensorSpec([8], tf.int32)
    return tf.function(build, autograph=False).get_concrete_function(*signature).graph


@pytest.mark.parametrize("op", REFUSED)
def test_op_that_the_tpu_refuses(op):
    graph = _graph(REFUSED[op])
    found = list(read_ops.unsupported(graph.get_operations()))
    assert any(op in finding.message and "XLA_TPU_JIT" in finding.message for finding in found)


@pytest.mark.parametrize("name", LOWERED)
def test_op_that_the_tpu_takes(name):
    graph = _graph(LOWERED[name])
    assert list(read_ops.unsupported(CoreProgram(graph).ops())) == []


def test_table_says_what_it_was_made_from():
    assert op_table.made_from().startswith("tensorflow-tpu 2.19.1, 20")
    assert "string" not in op_table.allowed_types("GatherV2")["Tparams"]
    assert not op_table.has_op("NoSuchOp")


def test_hint_is_the_op_s_own():
    assert "unsorted_segment_sum" in op_table.instead("SegmentSum")
    assert op_table.instead("NoSuchOp") is None


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda: tf.random.uniform([2]), True),
        (lambda: tf.random.normal([2]), True),
        (lambda: tf.random.stateless_uniform([2], [1, 2]), True),
        (lambda: tf.random.shuffle([1, 2]), True),
        (lambda: tf.random.categorical([[1.0]], 2), True),
        (lambda: tf.random.truncated_normal([2]), True),
        (lambda: tf.random.gamma([2], 1.0), True),
        (lambda: tf.raw_ops.UniformQuantize, False),
        (lambda: tf.tanh(1.0), False),
    ],
)
def test_random_ops_are_known(function, kind):
    with tf.Graph().as_default() as graph:
        function()
    assert any(is_random(op) for op in graph.get_operations()) == kind


def _flow(step):
    """The flow of a step(w, x) that updates the variable w with the data x; and its program."""
    with tf.Graph().as_default():
        made = {}

        def variable(name, trainable=True):
            if name not in made:
                with tf.init_scope():
                    made[name] = v1.get_variable(
                        name, [2], initializer=v1.zeros_initializer(), trainable=trainable
                    )
            return made[name]

        def build(x):
            step(variable, x)

        graph = tf.function(build, autograph=False).get_concrete_function(tf.TensorSpec([2])).graph
        program = CoreProgram.of(graph)
        return Flow(program, [graph.inputs[0].name]), program


@pytest.mark.parametrize(
    ("step", "bits"),
    [
        (lambda w, x: w.assign_add(x), DATA),
        (lambda w, x: w.assign_add(tf.cast(tf.shape(x), tf.float32) * tf.ones([2])), 0),
        (lambda w, x: w.assign_add(v1.tpu.cross_replica_sum(x, [[0, 1]])), 0),
        (lambda w, x: w.assign_add(v1.tpu.cross_replica_sum(x, [[0], [1]])), DATA),
        (lambda w, x: w.assign(w * 2.0), VARIABLE),
        (lambda w, x: w.assign_add(tf.random.normal([2])), RANDOM),
        (
            lambda w, x: w.assign_add(tf.cond(x[0] > 0, lambda: 1.0, lambda: 2.0) * tf.ones([2])),
            DATA,
        ),
        (
            lambda w, x: w.assign_add(
                tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y + x), [0, tf.zeros([2])])[
                    1
                ]
            ),
            DATA,
        ),
        (lambda w, x: w.assign_add(tf.function(lambda y: y * 2)(x)), DATA),
        (lambda w, x: w.assign_add(tf.zeros_like(x) + 1), 0),
    ],
)
def test_flow_of_data_to_a_variable(step, bits):
    flow, _ = _flow(lambda variable, x: step(variable("w"), x))
    assert flow.variables["w:0"] == bits
    assert ("w:0" in flow.writes) == bool(bits & DATA)


def test_flow_remembers_what_a_variable_was_given_in_an_earlier_step():
    def step(variable, x):
        total = variable("total", trainable=False)
        variable("w").assign_add(total)
        total.assign_add(x)

    flow, program = _flow(step)
    assert flow.variables["w:0"] & DATA
    assert program.trained == {"w:0"}


def test_place_of_an_op_is_the_learner_s_line():
    with tf.Graph().as_default():
        op = v1.layers.dense(tf.zeros([2, 3]), 4, name="mine").op  # this line
    place = str(source.place(op))
    assert "test_dry_run_read.py:" in place
    assert "# this line" in place
    assert place.endswith("(op mine/BiasAdd)")


def test_place_of_an_exception_is_the_learner_s_innermost_line():
    try:
        with tf.Graph().as_default():
            tf.matmul(tf.zeros([2, 3]), tf.zeros([2, 3]))  # this line
    except ValueError as error:
        assert "# this line" in str(source.place(error))


def test_place_within_a_mapped_function():
    def refuses(x):
        return tf.reshape(x, [3, 5])  # this line

    with pytest.raises(ValueError) as caught:
        tf.data.Dataset.from_tensors(tf.zeros([4])).map(refuses)
    assert "# this line" in str(source.place(caught.value))


def test_place_of_a_function():
    def model_fn(features, params):
        return features

    assert ", in model_fn: `def model_fn(features, params):`" in str(source.place(model_fn))
    assert source.place(functools.partial(model_fn, params={})) == source.place(model_fn)

    class Model:
        def __call__(self, features):
            return features

    assert "in __call__" in str(source.place(Model()))


NOTEBOOK = [
    "import tensorflow as tf\nfrom lab_utils.common import source",
    "def model(x):\n    y = x + 1\n    return tf.matmul(y, y)",
    "with tf.Graph().as_default():\n    op = model(tf.zeros([2, 2])).op\n"
    "    print(source.place(op))\n"
    "    try:\n        model(tf.zeros([2, 3]))\n    except ValueError as error:\n"
    "        print(source.place(error))",
]


def test_place_in_a_notebook_is_the_cell():
    import nbclient
    import nbformat

    cells = [nbformat.v4.new_code_cell(source) for source in NOTEBOOK]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    printed = "".join(o["text"] for o in cells[2]["outputs"] if o.get("name") == "stdout")
    op, error = printed.splitlines()
    assert op == "cell In [2], line 3, in model: `return tf.matmul(y, y)` (op MatMul)"
    assert error == "cell In [2], line 3, in model: `return tf.matmul(y, y)`"


class Table(tf.keras.layers.Layer):
    """Looks its words up in Python."""

    def call(self, inputs):
        found = tf.py_function(lambda x: x * 2, [inputs], tf.float32)  # <- here
        return tf.ensure_shape(found, inputs.shape)


def read_front_door(subject, data):
    report = dry_run(subject, data, stages=["read"], progress=False)
    found = {}
    for finding in report.findings:
        found.setdefault(finding.rule, finding)
    return found


def line_of(mark, function):
    lines, first = inspect.getsourcelines(function)
    return next(first + n for n, line in enumerate(lines) if line.rstrip().endswith(mark))


def test_a_keras_models_own_layer_is_read_and_placed():
    model = tf.keras.Sequential([Table(), tf.keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((np.ones([64, 4], "f4"), np.ones([64, 3], "f4")))
    found = read_front_door(model, data.batch(32, drop_remainder=True))
    assert set(found) == {"TPU205"}
    assert f"test_dry_run_read.py:{line_of('<- here', Table)}" in found["TPU205"].where
    right = tf.keras.Sequential([tf.keras.layers.Dense(3)])
    right.compile("sgd", "mse")
    assert read_front_door(right, data.batch(32, drop_remainder=True)) == {}


def test_a_bare_steps_ops_and_types_are_read():
    weights = tf.Variable(tf.ones([4, 3]))

    @tf.function
    def step(features, labels):
        words = tf.strings.as_string(labels)  # <- strings
        wide = tf.cast(features @ weights, tf.float64) * 2  # <- wide
        return tf.reduce_mean(wide) + tf.cast(tf.reduce_sum(tf.strings.length(words)), tf.float64)

    batch = np.ones([64, 4], "f4"), np.ones([64], "i4")
    found = read_front_door(step, batch)
    assert set(found) == {"TPU204", "TPU208"}
    for rule, mark in (("TPU204", "<- strings"), ("TPU208", "<- wide")):
        assert f"test_dry_run_read.py:{line_of(mark, step.python_function)}" in found[rule].where
    assert read_front_door(lambda x, y: tf.reduce_mean(x @ weights), batch) == {}


@pytest.mark.parametrize("folder", ["tensorflow", "keras", "numpy", "six", "absl"])
def test_a_learner_s_folder_may_have_a_framework_s_name(tmp_path, folder):
    file = tmp_path / folder / "models" / "net.py"
    file.parent.mkdir(parents=True)
    file.write_text("def model():\n    raise ValueError('mine')\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(ValueError, match="mine") as caught:
        names["model"]()
    place = source.place(caught.value)
    assert (place.file, place.line, place.function) == (str(file), 2, "model")


def test_a_constant_counts_as_it_is_stored(monkeypatch):
    monkeypatch.setattr(inputs, "_LARGE", 2**16)
    with tf.Graph().as_default() as graph:
        tf.zeros([512, 512])
        assert not [*inputs.constants(graph)]
        tf.constant(np.random.rand(512, 512))
        assert [found.rule for found in inputs.constants(graph)] == ["TPU222"]


def test_the_classes_that_tpu308_names_exist():
    from lab_utils.dry_run import rules

    names = re.findall(r"\btf\.[\w.]+", rules.rule("TPU308").fix)
    assert names
    for name in names:
        owner = tf
        for part in name.split(".")[1:]:
            owner = getattr(owner, part)


def test_records_that_an_evaluation_drops_are_counted(tmp_path):
    file = str(tmp_path / "eval.tfrecord")
    with tf.io.TFRecordWriter(file) as writer:
        for number in range(70):
            writer.write(np.full([6], number, np.float32).tobytes())

    def evaluation(params):
        def parse(record):
            return tf.reshape(tf.io.decode_raw(record, tf.float32), [6]), tf.constant(1)

        data = tf.data.TFRecordDataset([file]).map(parse)
        return data.batch(params["batch_size"], drop_remainder=True)  # <- drops six

    report = dry_run(
        make(dense),
        reader((ROWS, CLASSES)),
        eval_input_fn=evaluation,
        stages=["trace", "read"],
        progress=False,
    )
    (found,) = [each for each in report.findings if each.rule == "TPU225"]
    assert "6" in found.why and "70" in found.why and "<- drops six" in found.where


def test_data_that_are_given_once_are_a_note_where_they_fill_a_loop():
    """Some call train once for each epoch."""
    with tf.Graph().as_default() as graph:
        batches = tf.data.Dataset.range(640).batch(64, drop_remainder=True)
        last = batches.cardinality().op.inputs[0].op
    pipeline = inputs.Pipeline(graph, last, [[64]], 64, 1, cores=8, elements=10)
    for loop, severity in ((10, "note"), (11, "warning")):
        [found] = inputs.length(pipeline, Mode.TRAIN, loop, input_fn=None)
        assert (found.rule, found.severity) == ("TPU218", severity)


FLAGS = SimpleNamespace(batch=64)


def _literal():
    return _rows().batch(64, drop_remainder=True)


def _named_here():
    size = 64
    return _rows().batch(size, drop_remainder=True)


def _from_a_flag():
    return _rows().batch(FLAGS.batch, drop_remainder=True)


def _rows():
    return tf.data.Dataset.range(640).map(lambda number: tf.fill([8], number))


@pytest.mark.parametrize(
    "input_fn, severity", [(_literal, "warning"), (_named_here, "warning"), (_from_a_flag, "note")]
)
def test_a_fixed_batch_size_is_a_note_where_no_literal_gives_it(input_fn, severity):
    with tf.Graph().as_default() as graph:
        last = input_fn().cardinality().op.inputs[0].op
    shapes = [[FLAGS.batch, 8]]
    made = inputs.Pipeline(graph, last, shapes, asked=FLAGS.batch, batches_a_step=1, cores=8)
    [found] = inputs.batch_size(made, made, input_fn)
    assert (found.rule, found.severity) == ("TPU226", severity)


def test_draws_that_reach_a_part_of_the_metrics_are_a_note():
    """A gradient penalty mixes pictures at random for the loss; augmented examples reach every metric."""
    with tf.Graph().as_default() as graph:
        rows = v1.placeholder(tf.float32, [8, 4])
        weights = v1.get_variable(
            "weights", [4, 1], None, v1.zeros_initializer(), use_resource=True
        )
        mixed, free = (tf.random.uniform([8, 1]) * rows) @ weights, rows @ weights
    flow = Flow(CoreProgram(graph, {weights.handle.name: "weights"}, off_device=True), [rows.name])
    for metrics, severity in (
        ([mixed, rows], "warning"),
        ([mixed, free], "note"),
        ({"free": free}, "note"),
    ):
        spec = SimpleNamespace(eval_metrics=(None, metrics))
        [found] = randomness.in_model(graph.get_operations(), flow, "eval", spec)
        assert (found.rule, found.severity) == ("TPU212", severity)


def test_a_column_against_a_row_is_told_where_it_is_written_not_at_its_gradient():
    with tf.Graph().as_default() as graph:
        rows = v1.placeholder(tf.float32, [8, 4])
        weights = v1.get_variable("weights", [4, 1], use_resource=True)
        quotient = tf.squeeze(rows @ weights, 1) / rows[:, :1]
        tf.gradients(quotient, weights)
    program = CoreProgram(graph, {weights.handle.name: "weights"}, off_device=True)
    assert Flow(program, [rows.name]).stretched == [quotient.op]


def test_what_goes_on_in_gradients_or_without_a_line_is_told_once():
    def found(rule, op, line=None, **facts):
        at = source.Place("model.py", line, op=op) if line else source.Place(op=op)
        return rules.finding(rule, at, op=op, **facts)

    ops = [
        found("TPU202", "net/Dilation2D", 7, hint=""),
        found("TPU202", "gradient_tape/net/Dilation2DBackpropInput", 9, hint=""),
        found(
            "TPU202", "gradient_tape/net/Other", 9, hint=""
        ),  # has no kernel where its op has one
        found("TPU202", "net/Bucketize", hint=""),
        found("TPU208", "Adam/mul"),
        found("TPU208", "gradients/net/Cast_grad/Cast", 9),
        found("TPU208", "net/Cast", 5),
    ]
    told = [(each.rule, each.place.line) for each in read_stage._once(ops)]
    assert told == [("TPU202", 7), ("TPU202", 9), ("TPU202", None), ("TPU208", 5)]
    assert len(read_stage._once([found("TPU208", "Cast"), found("TPU208", "Adam/mul")])) == 1


def test_which_dataset_is_next_may_be_drawn_in_evaluation():
    def noisy(number):
        return tf.random.normal([4]) + tf.cast(number, tf.float32)[:, None]

    for build, found in (
        (lambda data: tf.data.Dataset.sample_from_datasets([data, data], [0.7, 0.3]), 0),
        (lambda data: tf.data.Dataset.zip((tf.data.Dataset.random(1), data.map(noisy))), 1),
    ):
        with tf.Graph().as_default() as graph:
            build(tf.data.Dataset.range(640).batch(8))
        assert len(list(randomness.in_input(graph, "eval"))) == found


def test_records_of_others_are_counted_or_their_number_stays_unknown(tmp_path):
    rows = [b"x" * 50] * 600
    for name, kind in (("plain", ""), ("empty", ""), ("packed", "GZIP")):
        with tf.io.TFRecordWriter(str(tmp_path / name), kind) as file:
            for row in rows * (name != "empty"):
                file.write(row)
    damaged = bytearray((tmp_path / "plain").read_bytes())
    (tmp_path / "cut").write_bytes(damaged[:20_020])
    damaged[20_000] ^= 1
    (tmp_path / "damaged").write_bytes(damaged)
    wanted = {
        "plain": 600,
        "empty": 0,
        "packed": None,
        "cut": None,
        "damaged": None,
        "absent": None,
    }
    for name, count in wanted.items():
        with tf.Graph().as_default():
            made = tf.data.TFRecordDataset(str(tmp_path / name)).shuffle(10)
            variant = tf.data.experimental.to_variant(made).op
            assert records.elements(variant, read_files=True) == count, name


@pytest.mark.parametrize("data", [tf.data.Dataset, v1.data.Dataset], ids=["version 2", "version 1"])
def test_elements_are_known_behind_maps_and_files(data, tmp_path):
    for name in "ab":
        with tf.io.TFRecordWriter(str(tmp_path / name)) as file:
            for _ in range(50):
                file.write(b"x")

    def files(given):
        names = given.list_files(str(tmp_path / "*"), shuffle=False)
        return names.interleave(tf.data.TFRecordDataset, cycle_length=2)

    def mapped(given):
        return given.range(100).map(lambda n: n + 1)

    def twice(given):
        return given.list_files(str(tmp_path / "*")).repeat(2).flat_map(tf.data.TFRecordDataset)

    wanted = [
        (mapped, 100),
        (lambda given: mapped(given).batch(8, drop_remainder=True).map(tf.identity), 12),
        (lambda given: mapped(given).padded_batch(8, []).prefetch(1), 13),
        (lambda given: mapped(given).repeat(3), 300),
        (lambda given: mapped(given).repeat(), math.inf),
        (lambda given: given.zip((mapped(given), mapped(given).repeat(2))), 100),
        (lambda given: mapped(given).filter(lambda n: n > 7), None),
        (files, 100),
        (lambda given: files(given).repeat(1).batch(7).map(tf.identity), 15),
        (twice, None),
    ]
    for build, count in wanted:
        with tf.Graph().as_default():
            made = tf.data.experimental.to_variant(build(data)).op
            assert records.elements(made, read_files=True) == count
