"""python -m lab_utils.port: the diff of other people's programs, what it lists, what it leaves alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils.port.__main__ import diff, main, ported

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
    assert all(1 <= line <= old.count(b"\n") for line, _ in left)


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS)
def test_the_port_is_ready(path, tmp_path):
    """With what its list asks for: batch sizes, of these small data, params without one, and Keras 2.

    The input functions of a plain Estimator are left to do.
    """
    new = ported(path.read_bytes())[0].replace(b"=1024", b"=32")
    new = new.replace(b"from tensorflow.python.keras import", b"from tf_keras import")
    (tmp_path / "train.py").write_bytes(new.replace(b"      'batch_size': FLAGS.batch_size,", b""))
    ran = subprocess.run(
        [sys.executable, "-m", "lab_utils.dry_run", "--main", "train.py", "--stages", "trace,read"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = set(re.findall(r"(?:ERROR|WARNING) (TPU\d+)", ran.stdout))
    is_plain = path.parent.name == "plain"
    assert ran.returncode == (1 if is_plain else 0), ran.stdout + ran.stderr
    assert bool(found) == is_plain and found <= {"TPU101", "TPU103"}


def port_of(text: str) -> tuple[str, str]:
    new, left = ported(text.encode())
    return new.decode(), "\n".join(f"line {line}: {message}" for line, message in left)


TF, V1 = "import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n"


@pytest.mark.parametrize(
    ("old", "new", "left"),  # new is "" where nothing changes
    [
        # aliases, and names that stand for what is imported
        ("from tensorflow.contrib import tpu as t\nt.RunConfig()", f"{V1}tf.estimator.tpu.RunConfig()", ""),
        ("import tensorflow as t\nt.contrib.tpu.bfloat16_scope",
         "import tensorflow.compat.v1 as t\nt.tpu.bfloat16_scope", ""),
        (f"{TF}d = d.apply(tf.contrib.data.batch_and_drop_remainder(8))",
         f"{V1}d = d.batch(8, drop_remainder=True)", ""),
        ("tf = object()\ntf.contrib.tpu.RunConfig()", "", ""),
        (f"{TF}tf.keras.layers.Dense(1)", "", ""),
        # what has no counterpart stays, and is listed with its line
        ("from tensorflow.contrib import seq2seq\n\nseq2seq.BasicDecoder(1)", "",
         "line 3: tf.contrib.seq2seq.BasicDecoder"),
        (f"{TF}from tensorflow.contrib import layers, seq2seq\n\n\n"
         "def f(layers):\n    return layers.x + g(lambda: seq2seq.y)",
         f"{V1}from tensorflow.contrib import seq2seq\n\n\n"
         "def f(layers):\n    return layers.x + g(lambda: seq2seq.y)", "line 6: tf.contrib.seq2seq.y"),
        ("from tensorflow.python.keras import layers\nlayers.Dense(1)", "",
         "line 2: python.keras.layers.Dense: TensorFlow keeps only a part"),
        (f"{TF}tf.py_func(f, [x], tf.int32)", f"{V1}tf.py_func(f, [x], tf.int32)", "line 2: py_func"),
        (f"{TF}x = tf.train.shuffle_batch([x], 8, 9, 9)", f"{V1}x = tf.train.shuffle_batch([x], 8, 9, 9)",
         "line 2: train.shuffle_batch: a queue"),
        # no Estimator at all
        (f"{TF}with tf.Session() as s:\n  s.run(0)", f"{V1}with tf.Session() as s:\n  s.run(0)",
         "line 2: Session: this is a training loop"),
        ("from tensorflow import keras\nkeras.Model().fit(1)", "",
         "line 2: keras.Model: a Keras model trains under a TPUStrategy"),
    ],
)  # fmt: skip
def test_what_becomes_of_a_line(old, new, left):
    assert port_of(old)[0] == (new or old)
    assert left in port_of(old)[1] if left else not port_of(old)[1]


PRIVATE = """\
import tensorflow as tf
from tensorflow.contrib.tpu.python.ops import tpu_ops
from tensorflow.contrib.tpu.python.tpu import tpu_function
seen = [tpu_function.get_tpu_context(), tpu_ops.all_to_all, tf.contrib.tpu.while_loop]
seen += [tf.contrib.summary.scalar, tf.contrib.training.wait_for_new_checkpoint]
"""


def test_private_names_of_tensorflow_are_imported_from_their_modules():
    new, left = port_of(PRIVATE)
    assert "tpu_function.get_tpu_context(), tpu_ops.all_to_all, training_loop.while_loop]" in new
    names: dict = {}
    exec(new, names)
    assert all(names["seen"]) and not left


PLAIN = """\
import tensorflow as tf


def model_fn(features, labels, mode, params):
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=elsewhere.step(loss))


estimator = tf.estimator.Estimator(model_fn, params={"lr": 1, "batch_size": 9})
"""


def test_what_belongs_to_an_estimator_is_listed_at_its_line():
    new, left = port_of(PLAIN)
    assert "use_tpu=True, train_batch_size=1024" in new
    for line in (
        "line 5: there is no optimizer",
        "line 8: params must be a dict without",
        "line 8: its input functions take params",
        "line 8: set the batch sizes",
    ):
        assert line in left


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
        ("opt.LARSOptimizer(0.1).minimize(loss)", f"{CROSS}(lab_utils.port.contrib.stand_ins.LARS",
         "line 11: on a CPU the wrapped optimizer fails"),
        ("AdamWeightDecay(lr).apply_gradients(pairs)", f"{CROSS}(AdamWeightDecay(lr))", "line 11: on a CPU"),
        # one wraps the other: the gradients are summed once
        ("AdamWeightDecay(tf.train.AdamOptimizer(1)).minimize(loss)",
         f" AdamWeightDecay({CROSS}(tf.train.AdamOptimizer(1))).min", "line 11: wrap the optimizer"),
        ("layers.optimize_loss(loss, step, 0.1, 'Momentum')", "optimize_loss(loss, step, 0.1, 'Momentum')",
         "line 11: contrib.layers.optimize_loss: call minimize()"),
        ("{'a': tf.train.AdamOptimizer}[FLAGS.x](1)", "{'a': tf.train.AdamOptimizer}[FLAGS.x](1)",
         "line 11: wrap the optimizer"),
        ("optimization.make(loss, 0.1)", "optimization.make(loss", "line 12: there is no optimizer"),
    ],
)  # fmt: skip
def test_each_optimizer_is_wrapped_or_listed(step, new, left):
    text, todo = port_of(OPTIMIZED.replace("STEP", step).replace("METRICS", "None"))
    assert new in text and left in todo


def test_a_name_for_version_1_may_be_assigned_and_a_comment_wraps_nothing():
    text, todo = port_of(
        "import tensorflow as tf\ntf1 = tf.compat.v1  # later: CrossShardOptimizer\n"
        "def model_fn(features, labels, mode, params):\n"
        "    train_op = tf1.train.AdamOptimizer(1).minimize(loss)\n"
        "    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)\n"
    )
    assert "tf1.tpu.CrossShardOptimizer(tf1.train.AdamOptimizer(1))" in text
    assert "tf1.estimator.tpu.TPUEstimatorSpec(" in text and "line 4: on a CPU" in todo


@pytest.mark.parametrize(
    ("metrics", "new", "left"),
    [
        ("{'a': tf.metrics.mean(values=tf.abs(x), weights=None)}",
         "(lambda tensor_0: {'a': tf.metrics.mean(values=tensor_0, weights=None)}, [tf.abs(x)]))", ""),
        ("metric_fn(labels, 2)", "eval_metrics=metric_fn(labels, 2))", "line 12: eval_metrics must"),
        ("{'f': tf.contrib.metrics.f1_score(y, z)}",
         "eval_metrics=(lambda y, z: {'f': tf_slim.metrics.f1_score(y, z)}, [y, z]))", ""),
    ],
)  # fmt: skip
def test_each_form_of_metrics_is_changed_or_listed(metrics, new, left):
    text, todo = port_of(OPTIMIZED.replace("STEP", "x").replace("METRICS", metrics))
    assert new in text and left in todo and (left or "eval_metrics must" not in todo)


def test_encoding_and_line_ends_stay():
    text = "# -*- coding: latin-1 -*-\r\n# für\r\nimport tensorflow as tf\r\ntf.app.run()"
    old = text.encode("latin-1")
    new, _ = ported(old)
    assert new == old.replace(b"import tensorflow as", b"import tensorflow.compat.v1 as")


@pytest.mark.parametrize("text", ["print 'hello'\n", f"x = {'(' * 5000}"])
def test_what_is_not_python_3_is_refused(text, tmp_path, capsys):
    (tmp_path / "old.py").write_text(text)
    assert main([str(tmp_path / "old.py")]) == 2
    assert "old.py: this is not Python 3" in capsys.readouterr().err


def test_the_name_of_a_file_need_not_be_text():
    name = b"M\xfcller.py"
    patch = diff(b"x = 1\n", b"x = 2\n", Path(os.fsdecode(name)))
    assert patch.startswith(b"--- a/" + name + b"\n+++ b/" + name + b"\n")


@pytest.mark.parametrize("name", ["nothing", "hex", "undefined", "utf-16"])
def test_text_of_an_encoding_that_is_none_is_refused(name, tmp_path, capsys):
    (tmp_path / "old.py").write_text(f"# coding: {name}\nx = 1\n")
    assert main([str(tmp_path / "old.py")]) == 2
    assert "old.py: its text cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "says"), [("a.ipynb", "is a notebook"), ("no.py", "No such")])
def test_what_is_not_a_program_is_refused(tmp_path, monkeypatch, capsys, name, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.ipynb").write_text('{"cells": []}')
    with pytest.raises(SystemExit) as stopped:
        main([name])
    assert stopped.value.code == 2 and says in capsys.readouterr().err
