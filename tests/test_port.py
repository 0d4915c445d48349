"""python -m lab_utils.port: the diff of other people's programs, what it lists, what it leaves alone."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils.port.__main__ import diff, main
from lab_utils.port.port import ported
from lab_utils.port.record import NotPython

SOURCES = Path(__file__).parent / "programs" / "sources"
ALWAYS = ("tutorial", "class_crlf", "private_paths")
PROGRAMS = [
    pytest.param(path, id=path.stem, marks=[] if path.stem in ALWAYS else [pytest.mark.slow])
    for folder in ("contrib", "plain")
    for path in sorted((SOURCES / folder).glob("*.py"))
]


@pytest.mark.parametrize("path", PROGRAMS)
def test_the_diff_applies_and_a_port_has_none(path, tmp_path):
    old = path.read_bytes()
    new, left = ported(old)
    (tmp_path / "train.py").write_bytes(old)
    patch = diff(old, new, Path("train.py"))
    for command in (["git", "apply", "-"], ["patch", "-p1", "--binary", "-R"]):
        subprocess.run(command, cwd=tmp_path, input=patch, check=True, capture_output=True)
        after = (tmp_path / "train.py").read_bytes()
        assert after == (new if command[0] == "git" else old)
    assert ported(new)[0] == new
    assert b"tf.contrib" not in re.sub(rb"#.*", b"", new) and b"estimator.Estimator(" not in new
    lines = old.count(b"\n")
    assert all(1 <= each.line <= lines for each in left)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS)
def test_the_port_is_ready(path, tmp_path):
    (tmp_path / "train.py").write_bytes(ported(path.read_bytes())[0])
    ran = subprocess.run(
        [sys.executable, "-m", "lab_utils.dry_run", "--main", "train.py", "--stages", "trace,read"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    left_to_do = {"flags_params": "TPU206"}.get(path.stem)  # its summary, which is listed
    assert ran.returncode == (1 if left_to_do else 0), ran.stdout + ran.stderr
    assert set(re.findall(r"(?:ERROR|WARNING) (TPU\d+)", ran.stdout)) == {left_to_do} - {None}


def port_of(text: str) -> tuple[str, str]:
    new, left = ported(text.encode())
    return new.decode(), "\n".join(map(str, left))


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        # aliases, and names that stand for what is imported
        ("from tensorflow.contrib import tpu as t\nt.RunConfig()\n",
         "import tensorflow.compat.v1 as tf\ntf.estimator.tpu.RunConfig()\n", ""),
        ("import tensorflow as t\nt.contrib.tpu.bfloat16_scope\n",
         "import tensorflow.compat.v1 as t\nt.tpu.bfloat16_scope\n", ""),
        ("import tensorflow.contrib.slim as slim\nslim.conv2d(1)\n",
         "import tf_slim as slim\nslim.conv2d(1)\n", ""),
        ("import tensorflow as tf\nd = d.apply(tf.contrib.data.batch_and_drop_remainder(8))\n",
         "import tensorflow.compat.v1 as tf\nd = d.batch(8, drop_remainder=True)\n", ""),
        # what has no counterpart stays, and is listed with its line
        ("from tensorflow.contrib import seq2seq\n\nseq2seq.BasicDecoder(1)\n",
         "from tensorflow.contrib import seq2seq\n\nseq2seq.BasicDecoder(1)\n",
         "line 3: tf.contrib.seq2seq.BasicDecoder"),
        # nothing of TensorFlow
        ("", "", ""),
        ("tf = object()\ntf.contrib.tpu.RunConfig()\n", "tf = object()\ntf.contrib.tpu.RunConfig()\n", ""),
        ("x = rows.batch(3)\n", "x = rows.batch(3)\n", ""),
        # hooks and host code are listed
        ("import tensorflow as tf\ntf.train.LoggingTensorHook(['loss'])\n",
         "import tensorflow.compat.v1 as tf\ntf.train.LoggingTensorHook(['loss'])\n",
         "line 2: train.LoggingTensorHook"),
        ("import tensorflow as tf\ntf.py_func(f, [x], tf.int32)\n",
         "import tensorflow.compat.v1 as tf\ntf.py_func(f, [x], tf.int32)\n", "line 2: py_func"),
        # an import with a comment behind it is there already
        ("import tensorflow as tf  # noqa\nimport os\ntf.contrib.tpu.RunConfig()\n",
         "import tensorflow.compat.v1 as tf  # noqa\nimport os\ntf.estimator.tpu.RunConfig()\n", ""),
        # predict's last batch is filled up by TPUEstimator: to drop it would lose predictions
        ("import tensorflow as tf\ndef asked(params):\n  return d.batch(8)\n"
         "tf.contrib.tpu.TPUEstimator().predict(input_fn=lambda params: asked(params))\n",
         "import tensorflow.compat.v1 as tf\ndef asked(params):\n  return d.batch(8)\n"
         "tf.estimator.tpu.TPUEstimator().predict(input_fn=lambda params: asked(params))\n", ""),
        # no Estimator at all
        ("import tensorflow as tf\nwith tf.Session() as s:\n  s.run(0)\n",
         "import tensorflow.compat.v1 as tf\nwith tf.Session() as s:\n  s.run(0)\n",
         "line 2: a training loop of its own"),
        ("from tensorflow import keras\nkeras.Model().fit(1)\n",
         "from tensorflow import keras\nkeras.Model().fit(1)\n",
         "line 2: a Keras model trains under a TPUStrategy"),
        ("import sklearn\nsklearn.svm.SVC().fit(1)\n", "import sklearn\nsklearn.svm.SVC().fit(1)\n", ""),
        # of TensorFlow 2: left as it is
        ("import tensorflow as tf\ntf.keras.Model()\n", "import tensorflow as tf\ntf.keras.Model()\n", ""),
    ],
)  # fmt: skip
def test_odd_files(old, new, left):
    assert port_of(old)[0] == new
    assert left in port_of(old)[1] if left else not port_of(old)[1]


ODD_FORMS = """\
import functools
import tensorflow as tf
from tensorflow import estimator as est

BATCH = 30


def rows(n, training=False):
    return tf.data.Dataset.range(n).batch(BATCH)


def model_fn(features, labels, mode):
    opt = {"adam": tf.train.AdamOptimizer, "sgd": tf.train.GradientDescentOptimizer}["sgd"](0.1)
    spec = dict(mode=mode, loss=0)
    spec["eval_metric_ops"] = {"mean": tf.metrics.mean(labels)}
    spec["eval_metric_ops"] = made_elsewhere(labels)
    spec["train_op"] = tf.keras.optimizers.Adagrad(0.05) or opt.minimize(0)
    if mode == "head":
        return head.create_estimator_spec(features, mode, 0, labels)
    return est.EstimatorSpec(**spec)


train_input = lambda: rows(150, training=True)
c = est.Estimator(model_fn)
c.train(train_input, steps=10)
c.evaluate(functools.partial(rows, 45))
c.predict(input_fn=rows)
"""


def test_forms_that_no_pass_changes_are_listed_with_their_lines():
    new, left = port_of(ODD_FORMS)
    assert "train_input = lambda params: rows(150, training=True)" in new
    assert "c.evaluate(lambda params: rows(45))" in new
    metrics = '(lambda labels: {"mean": tf.metrics.mean(labels)}, [labels])'
    assert f'spec["eval_metrics"] = {metrics}' in new
    told = dict(line.split(": ", 1) for line in left.splitlines())
    for line, what in {
        5: "BATCH is of all 8 cores",
        8: "rows takes no params",
        13: "an optimizer's class is chosen here",
        15: "each tensor of eval_metrics",
        16: "eval_metric_ops becomes eval_metrics",
        17: "keras.optimizers.Adagrad",
        19: "a head makes a plain EstimatorSpec",
    }.items():
        assert what in told.get(f"line {line}", ""), (line, told)


MAKER = """\
import tensorflow as tf
from tensorflow.train import AdamOptimizer
HP = {'lr': 1e-3, 'batch_size': 48}


def make(batch_size):
    def rows():
        yield [1.0], 2.0

    def input_fn():
        data = tf.data.Dataset.from_generator(rows, (tf.float32, tf.float32)).window(3)
        data = data.flat_map(lambda w: w.batch(3))
        return data.batch(batch_size)

    return input_fn


def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, features)
    mae = tf.metrics.mean_absolute_error(labels, features)
    spec = {True: dict(mae=mae, rmse=tf.metrics.root_mean_squared_error(labels, features))}
    if mode == "eval":
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=dict(mae=mae))
    train_op = AdamOptimizer(HP["lr"]).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(args):
    estimator = tf.estimator.Estimator(model_fn, params=PARAMS)
    estimator.train(make(SIZE), steps=10)
"""


@pytest.mark.parametrize(
    ("params", "size", "batch"),
    [
        ("HP", "HP['batch_size']", "HP['batch_size']"),
        ("{'lr': 1}", "args.batch_size", "args.batch_size"),
        ("{'lr': 1}", "FLAGS.train_batch_size", "FLAGS.train_batch_size"),
        ("{'lr': 1}", "other.batch_size", "HP['batch_size']"),  # `other` holds nowhere
    ],
)
def test_the_batch_size_is_found_where_it_holds(params, size, batch):
    new, left = port_of(MAKER.replace("PARAMS", params).replace("SIZE", size))
    assert f"train_batch_size={batch}" in new and "no batch size" not in left
    without = "params={k: v for k, v in HP.items() if k != 'batch_size'}"
    assert (without in new) == (params == "HP")
    # input_fn takes params, the generator beside it does not; the window keeps its length
    assert "def input_fn(params):" in new and "def rows():" in new
    assert (
        "w.batch(3, drop" in new and 'data.batch(params["batch_size"], drop_remainder=True)' in new
    )
    assert "from tensorflow.compat.v1.train import AdamOptimizer" in new
    metrics = (
        '(lambda labels, features: {"mae": tf.metrics.mean_absolute_error(labels, features)}, '
    )
    assert f"eval_metrics={metrics}[labels, features])" in new
    assert "line 20: metric_fn builds this metric" in left


@pytest.mark.parametrize(
    ("body", "new"),
    [
        ("return d.batch(64)", 'return d.batch(params["batch_size"], drop_remainder=True)'),
        ("bs = params['batch_size']\n    return d.batch(bs)", "return d.batch(bs, drop_remainder=True)"),
        ("d = d.batch(9).map(f)\n    return d.batch(64)",
         'd = d.batch(9, drop_remainder=True).map(f)\n    return d.batch(params["batch_size"], drop'),
        ("if x:\n        d = d.batch(8)\n    else:\n        d = d.batch(9)\n    return d",
         'd = d.batch(params["batch_size"], drop_remainder=True)\n    else:\n        d = d.batch(params["b'),
    ],
)  # fmt: skip
def test_an_input_function_with_params_batches_by_them(body, new):
    program = (
        "import tensorflow as tf\ndef data(params):\n    BODY\n"
        "tf.contrib.tpu.TPUEstimator().train(data)\n"
    )
    assert new in port_of(program.replace("BODY", body))[0]


@pytest.mark.parametrize(
    ("given", "data"),
    [
        ("x={'x': a}, y=b, batch_size=100, num_epochs=None, shuffle=True",
         "from_tensor_slices(({'x': a}, b)).shuffle(len(b)).repeat().batch(params"),
        ("{'x': a}, b, shuffle=False", "from_tensor_slices(({'x': a}, b)).batch(params"),
        ("x=a, y=None, num_epochs=3, shuffle=False", "from_tensor_slices(a).repeat(3).batch(params"),
        ("x=a, y=b, shuffle=mode == 'train'", ""), ("a, b, shuffle=True, num_threads=4", ""),
    ],
)  # fmt: skip
def test_arrays_are_fed_by_a_dataset(given, data):
    program = (
        f"import tensorflow as tf\nf = tf.estimator.inputs.numpy_input_fn({given})\ntf.Session\n"
    )
    new, left = port_of(program)
    if data:
        assert (
            f"f = lambda params: tf.data.Dataset.{data}" in new and "line 2: drop_remainder" in left
        )
    else:
        assert (
            f"numpy_input_fn({given})" in new and "line 2: estimator.inputs.numpy_input_fn" in left
        )


def test_a_batch_size_that_stays_is_listed():
    program = "import tensorflow as tf\ndef rows(n, hp=H):\n  return d.batch(hp.batch_size)\n"
    new, left = port_of(program + "tf.contrib.tpu.TPUEstimator().train(lambda: rows(5))\n")
    assert (
        "line 3: each core gets hp.batch_size examples at once" in left and "lambda params:" in new
    )


OPTIMIZED = """\
import tensorflow as tf
import optimization
from tensorflow.contrib import layers, opt


class AdamWeightDecay(tf.train.Optimizer):
    pass


def model_fn(features, labels, mode, params):
    train_op = STEP
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=METRICS)


def metric_fn(labels, classes):
    return {"accuracy": tf.metrics.accuracy(labels, classes)}
"""
CROSS = "tf.tpu.CrossShardOptimizer"


@pytest.mark.parametrize(
    ("step", "new", "left"),
    [
        ("opt.AdamWOptimizer(0.1).minimize(loss)", f"{CROSS}(lab_utils.port.contrib.optimizers.AdamW", ""),
        ("tf.contrib.opt.LazyAdamOptimizer(1).minimize(loss)", f"{CROSS}(tf.train.AdamOptimizer(1))", ""),
        ("AdamWeightDecay(lr).apply_gradients(pairs)", f"{CROSS}(AdamWeightDecay(lr))", ""),
        # one wraps the other: the gradients are summed once
        ("tf.contrib.opt.MovingAverageOptimizer(tf.train.AdamOptimizer(1)).minimize(loss)",
         f"opt.MovingAverageOptimizer({CROSS}(tf.train.AdamOptimizer(1))).min", "line 11: tf.contrib.opt."),
        ("AdamWeightDecay(tf.train.AdamOptimizer(1)).minimize(loss)",
         f" AdamWeightDecay({CROSS}(tf.train.AdamOptimizer(1))).min", ""),
        ("layers.optimize_loss(loss, step, 0.1, 'Momentum')",
         f"lambda rate: {CROSS}(tf.train.MomentumOptimizer(rate, momentum=0.9)), summaries=[])",
         "line 11: tf.contrib.layers.optimize_loss: tf-slim uses names"),
        ("layers.optimize_loss(loss, step, 0.1, optimizer=tf.train.AdamOptimizer(1))",
         f"optimizer={CROSS}(tf.train.AdamOptimizer(1)), summaries=[])", "line 11: its summaries would"),
        ("layers.optimize_loss(loss, step, 0.1, optimizer=params['optimizer'])",
         "optimizer=params['optimizer'], summaries=[])", "line 11: the optimizer may be a name"),
        ("layers.optimize_loss(loss, step, 0.1, tf.train.AdamOptimizer, summaries=['loss'])",
         "0.1, tf.train.AdamOptimizer, summaries=['loss'])", "line 11: an optimizer's class is chosen here"),
        # made in another file, looked up, written by hand
        ("optimization.make(loss, 0.1)", "optimization.make(loss", "line 12: no optimizer is seen"),
        ("getattr(tf.train, params['name'])(1).minimize(loss)", "getattr(", "line 12: no optimizer is seen"),
        ("tf.train.SyncReplicasOptimizer(x, 8).minimize(loss)", "SyncReplicas", "line 11: train.Sync"),
    ],
)  # fmt: skip
def test_each_optimizer_is_wrapped_or_told(step, new, left):
    ported, told = port_of(OPTIMIZED.replace("STEP", step).replace("METRICS", "None"))
    assert new in ported and left in told
    assert left or "CrossShard" not in told


@pytest.mark.parametrize(
    ("metrics", "new", "left"),
    [
        ("metric_fn(labels, tf.argmax(x, 1))", "eval_metrics=(metric_fn, [labels, tf.argmax(x, 1)]))", ""),
        ("metric_fn(labels, FLAGS.k)", "=metric_fn(labels, FLAGS.k))", "line 12: eval_metrics must"),
        ("{'a': tf.metrics.mean(x)} if mode == 'eval' else None",
         "eval_metrics=(lambda x: {'a': tf.metrics.mean(x)}, [x]) if mode == 'eval' else None)", ""),
        ("{'f': tf.contrib.metrics.f1_score(y, z)}",
         "eval_metrics=(lambda y, z: {'f': tf_slim.metrics.f1_score(y, z)}, [y, z]))", ""),
        ("{'a': own(x)}", "eval_metrics={'a': own(x)})", "line 12: build these metrics inside"),
    ],
)  # fmt: skip
def test_each_form_of_metrics_is_changed_or_told(metrics, new, left):
    ported, told = port_of(OPTIMIZED.replace("STEP", "x").replace("METRICS", metrics))
    assert new in ported and left in told
    assert left or "eval_metrics must" not in told


PARAMS = """import collections
import dataclasses
import tensorflow as tf
import settings


class Hyper:
    dim, batch_size = 8, 32


@dataclasses.dataclass
class Settings:
    dim: int = 8
    train_batch: int = 64


class Dotted(dict):
    pass


Tuple = collections.namedtuple("Tuple", "dim")
given = MADE


def model_fn(features, labels, mode, params):
    \"\"\"The model.\"\"\"
    return tf.estimator.EstimatorSpec(mode, loss=params.dim)


estimator = tf.estimator.Estimator(model_fn, params=given)
"""


@pytest.mark.parametrize(
    ("made", "boxed", "batch"),
    [
        ("Hyper()", True, "given.batch_size"),
        ("Settings()", True, "given.train_batch"),
        ("Tuple(8)", True, "1024"),
        ("parser.parse_args()", True, "1024"),
        ("Dotted(dim=8)", False, "1024"),
        ("tf.contrib.training.HParams(dim=8)", False, "1024"),
        ("settings.load()", False, "1024"),
        ("{'dim': 8, 'batch_size': 16}", False, "given['batch_size']"),
    ],
)
def test_params_that_are_no_dict_are_handed_over_in_one(made, boxed, batch):
    text = PARAMS.replace("MADE", made)
    new, left = port_of(text)
    assert ('params={"hparams": given}' in new) is boxed
    assert (':\n    """The model."""\n    params = params["hparams"]\n' in new) is boxed
    assert f"train_batch_size={batch}" in new
    assert "line 30: give its RunConfig" in left  # of the old file, though a line was added
    elsewhere, left = port_of(text.replace("mode, params)", "mode)"))
    assert ('line 30: TPUEstimator puts "batch_size" into params' in left) is boxed
    assert '{"hparams"' not in elsewhere


@pytest.mark.parametrize("flags", ["FLAGS", "tf.flags.FLAGS", "Hyper", "args", "known"])
def test_flags_and_classes_as_params_are_handed_over_in_a_dict(flags):
    parsed = "args = None\nargs = parser.parse_args()\nknown, _ = parser.parse_known_args(argv)\n"
    new, _ = port_of(
        parsed + PARAMS.replace("params=given", f"params={flags}").replace("MADE", "0")
    )
    assert f'params={{"hparams": {flags}}}' in new


@pytest.mark.parametrize(
    ("batches", "new"),
    [
        ("d.apply(tf.contrib.data.batch_and_drop_remainder(FLAGS.size))",
         'd.batch(params["batch_size"], drop_remainder=True)'),
        ("d.apply(tf.contrib.data.map_and_batch(f, FLAGS.size, drop_remainder=True))",
         'tf.data.experimental.map_and_batch(f, params["batch_size"], drop_remainder=True)'),
        ("d.apply(map_and_batch(f, batch_size=FLAGS.size))",
         'map_and_batch(f, batch_size=params["batch_size"], drop_remainder=True)'),
    ],
)  # fmt: skip
def test_batches_that_are_applied_follow_params(batches, new):
    program = (
        "import tensorflow as tf\nfrom tensorflow.contrib.data import map_and_batch\n"
        f"def rows():\n  return {batches}\n"
        "e = tf.estimator.Estimator(f)\ne.train(rows)\ne.evaluate(rows, FLAGS.eval_batch_size)\n"
    )
    ported, left = port_of(program)
    assert (
        new in ported and "train_batch_size=FLAGS.size" in ported and "each core gets" not in left
    )


@pytest.mark.parametrize(("given", "told"), [("True", False), ("False", True), ("training", True)])
def test_a_remainder_that_is_not_dropped_is_told(given, told):
    program = f"import tensorflow as tf\nd.batch(size, drop_remainder={given})\ntf.estimator.Estimator(f)\n"
    new, left = port_of(program)
    assert (
        f"drop_remainder={given})" in new and (f"line 2: drop_remainder={given}: " in left) is told
    )


def test_an_evaluation_keeps_its_own_batch_size():
    program = (
        "import tensorflow as tf\ne = tf.estimator.Estimator(f)\n"
        "e.evaluate(make(FLAGS.eval_batch_size))\ne.train(make(FLAGS.batch_size))\n"
    )
    new, _ = port_of(program)
    assert "train_batch_size=FLAGS.batch_size, eval_batch_size=FLAGS.eval_batch_size" in new


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("import horovod.tensorflow as hvd", "Horovod"),
        ("x = tf.train.shuffle_batch([x], 8, 9, 9)", "a queue feeds this"),
        ("x = tf.train.string_input_producer(x)", "a queue feeds this"),
        (
            "x = tf.contrib.data.bucket_by_sequence_length(f, [9], [8, 8])",
            "its batches differ in shape",
        ),
        (
            "x = tf.contrib.distribute.MirroredStrategy()",
            "TPUEstimator's RunConfig takes no strategy",
        ),
        ("tf.contrib.slim.learning.train(x, y)", "a training loop of its own"),
    ],
)
def test_what_a_tpu_estimator_has_no_place_for_is_told(line, says):
    estimator = "tf.estimator.Estimator(f, params={'batch_size': 8})"
    _, left = port_of(f"import tensorflow as tf\n{line}\n{estimator}\n")
    assert re.search(rf"line 2: ([\w.]+: )?{says}", left)


def test_encoding_and_line_ends_stay():
    old = "# -*- coding: latin-1 -*-\r\n# für\r\nimport tensorflow as tf\r\ntf.app.run()".encode(
        "latin-1"
    )
    new, _ = ported(old)
    assert new == old.replace(b"import tensorflow as", b"import tensorflow.compat.v1 as")


@pytest.mark.parametrize("text", ["print 'hello'\n", "except_ = 1\nexec 'x'\n", "def f(:\n"])
def test_what_is_not_python_3_is_told_with_its_line(text, tmp_path, capsys):
    with pytest.raises(NotPython, match=r"line \d+: this is not Python 3.*Python 2"):
        ported(text.encode())
    (tmp_path / "old.py").write_text(text)
    assert main([str(tmp_path / "old.py"), "--no-dry-run"]) == 2
    assert "old.py: line" in capsys.readouterr().err


def test_a_file_is_changed_only_when_told_to(tmp_path, capsysbinary):
    file = tmp_path / "train.py"
    file.write_bytes((SOURCES / "plain" / "tutorial.py").read_bytes())
    old = file.read_bytes()
    assert main([str(file), "--no-dry-run"]) == 0
    assert file.read_bytes() == old and b"+  classifier = tf.est" in capsysbinary.readouterr().out
    assert main([str(file), "--no-dry-run", "--write"]) == 0
    assert file.read_bytes() == ported(old)[0]


@pytest.mark.parametrize("deep", ["(" * 5000, "1+" * 20_000 + "1", "-" * 3000 + "1"])
def test_what_is_nested_too_deeply_is_told(deep):
    """libcst's own parser ends the process there."""
    with pytest.raises(NotPython, match="nested too deeply"):
        ported(b"x = " + deep.encode())


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a.ipynb", "is a notebook"),
        (".", "is not a file"),
        ("", "empty"),
        ("no.py", "No such file"),
    ],
)
def test_what_is_not_a_program_is_told(tmp_path, monkeypatch, capsys, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ipynb").write_text('{"cells": []}')
    with pytest.raises(SystemExit) as stopped:
        main([name])
    assert stopped.value.code == 2 and says in capsys.readouterr().err


def test_where_the_port_cannot_be_written_it_is_told(tmp_path, monkeypatch, capsys):
    file = tmp_path / "train.py"
    file.write_bytes((SOURCES / "plain" / "tutorial.py").read_bytes())

    def full(path, _):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("lab_utils.common.files.write", full)
    assert main([str(file), "--no-dry-run", "--write"]) == 2
    assert "train.py: No space left" in capsys.readouterr().err


def test_a_signal_takes_the_port_beside_the_file_away(tmp_path, monkeypatch):
    """It stands there while it is judged, as its neighbours are imported by it."""
    file = tmp_path / "train.py"
    file.write_bytes((SOURCES / "plain" / "tutorial.py").read_bytes())
    seen = []

    def judge(when, path, *_):
        if when == "after":
            seen.append(path.name)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("lab_utils.port.__main__._dry_run", judge)
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with pytest.raises(KeyboardInterrupt):
            main([str(file)])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert seen and seen != ["train.py"] and list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("old", "new", "left"),
    [
        # a module of contrib that was used by what is renamed, and one that is still needed
        ("import tensorflow as tf\nimport tensorflow.contrib as c\nc.layers.conv2d(1)\n",
         "import tensorflow.compat.v1 as tf\nimport tf_slim\ntf_slim.conv2d(1)\n", ""),
        ("import tensorflow as tf\nfrom tensorflow import contrib\ncontrib.layers.conv2d(1)\n",
         "import tensorflow.compat.v1 as tf\nimport tf_slim\ntf_slim.conv2d(1)\n", ""),
        ("from tensorflow.contrib.learn.python.learn import learn_runner\nlearn_runner.run(f)\n",
         "from tensorflow.contrib.learn.python.learn import learn_runner\nlearn_runner.run(f)\n",
         "line 2: tf.contrib.learn.python.learn.learn_runner.run: tf.estimator.train_and_evaluate"),
        # the batch size that stands as a parameter's default, or is handed over by its place
        ("import tensorflow as tf\ndef rows(mode, batch=64):\n  return d.batch(batch, True)\n"
         "e = tf.estimator.tpu.TPUEstimator(f)\ne.train(lambda: rows(1))\ne.evaluate(lambda: rows(2, 8))\n",
         "import tensorflow.compat.v1 as tf\ndef rows(mode, batch=64):\n  return d.batch(batch, True)\n"
         "e = tf.estimator.tpu.TPUEstimator(f)\ne.train(lambda params: "
         "rows(1, batch=params[\"batch_size\"]))\n"
         "e.evaluate(lambda params: rows(2, params[\"batch_size\"]))\n", ""),
        # what functools.partial binds, unless the function takes params already
        ("import functools\nimport tensorflow as tf\ndef rows(mode, batch):\n  return d.batch(batch, True)\n"
         "def more(mode, params):\n  return d\ne = tf.estimator.tpu.TPUEstimator(f)\n"
         "e.train(functools.partial(rows, 1, batch=args.batch))\ne.train(functools.partial(more, 2))\n",
         "import functools\nimport tensorflow.compat.v1 as tf\n"
         "def rows(mode, batch):\n  return d.batch(batch, True)\n"
         "def more(mode, params):\n  return d\ne = tf.estimator.tpu.TPUEstimator(f)\n"
         "e.train(lambda params: rows(1, batch=params[\"batch_size\"]))\n"
         "e.train(functools.partial(more, 2))\n", ""),
        # a flag about batches is no batch size
        ("import tensorflow as tf\ndef rows(mode, drop_last_batch=True):\n  return d\n"
         "e = tf.estimator.tpu.TPUEstimator(f)\ne.train(lambda: rows(1, drop_last_batch=False))\n",
         "import tensorflow.compat.v1 as tf\ndef rows(mode, drop_last_batch=True):\n  return d\n"
         "e = tf.estimator.tpu.TPUEstimator(f)\n"
         "e.train(lambda params: rows(1, drop_last_batch=False))\n", ""),
        # what no pass changes
        ("import tensorflow as tf\nclass Mine(tf.estimator.DNNClassifier):\n  pass\n",
         "import tensorflow as tf\nclass Mine(tf.estimator.DNNClassifier):\n  pass\n",
         "line 2: estimator.DNNClassifier: this ready-made estimator has no form for a TPU"),
        ("import tensorflow as tf\nclass Mine(tf.estimator.Estimator):\n  pass\n",
         "import tensorflow as tf\nclass Mine(tf.estimator.Estimator):\n  pass\n",
         "line 2: its base must be TPUEstimator"),
        ("import tensorflow as tf\nspec = make(eval_metric_ops={})\n",
         "import tensorflow as tf\nspec = make(eval_metric_ops={})\n",
         "line 2: eval_metric_ops becomes eval_metrics"),
    ],
)  # fmt: skip
def test_what_stands_in_other_places(old, new, left):
    test_odd_files(old, new, left)


@pytest.mark.parametrize(
    ("made", "size"),
    [
        (
            "self.config = config\n        self.e = tf.estimator.Estimator(f)",
            "self.config.batch_size",
        ),
        ("self.e = tf.estimator.Estimator(f)\n        self.config = config", "1024"),
    ],
)
def test_a_batch_size_of_self_is_taken_where_it_holds_already(made, size):
    new, left = port_of(
        "import tensorflow as tf\nclass Job:\n    def __init__(self, config):\n        MADE\n"
        "    def rows(self):\n        return d.batch(self.config.batch_size)\n".replace(
            "MADE", made
        )
    )
    assert f"train_batch_size={size}," in new
    assert ("no batch size was found" in left) == (size == "1024")
