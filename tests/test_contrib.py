"""tf.contrib for programs of 2017 to 2019: the programs of programs/sources/contrib, and the names."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_dry_run_main import command

from lab_utils.estimator import v1
from lab_utils.port.contrib import names, stand_ins

FOLDER = Path(__file__).parent / "programs" / "sources" / "contrib"
ALWAYS = ("slim_images",)
PROGRAMS = [
    pytest.param(path.stem, marks=[] if path.stem in ALWAYS else [pytest.mark.slow])
    for path in sorted(FOLDER.glob("*.py"))
]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_contrib_runs_by_its_own_main(name):
    ran = command(
        FOLDER, "--main", f"{name}.py", "--contrib", "--stages", "trace,read", "--no_cache"
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Ready for v2:2x2" in ran.stdout
    assert re.search(r"tf\.contrib itself: .*tf\.contrib\.\w+", " ".join(ran.stdout.split()))


def test_a_name_that_is_gone_is_named_at_its_line(tmp_path):
    (tmp_path / "train.py").write_text(
        "import tensorflow as tf\nfrom tensorflow.contrib import seq2seq\n\n"
        "def main():\n    return seq2seq.BasicDecoder(1, 2)\n\nmain()\n"
    )
    ran = command(tmp_path, "--main", "train.py", "--contrib")
    assert ran.returncode == 2 and "train.py:5, in main" in ran.stderr
    assert "tf.contrib.seq2seq.BasicDecoder" in ran.stderr and "tfa.seq2seq" in ran.stderr


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("tpu.TPUEstimator", "estimator.tpu.TPUEstimator"),
        ("tpu.python.tpu.tpu_config.TPUConfig", "estimator.tpu.TPUConfig"),
        ("framework.nest", "nest"),
        (
            "lookup.index_table_from_tensor",
            "lab_utils.port.contrib.stand_ins.index_table_from_tensor",
        ),
        ("summary.scalar", "tensorflow.python.ops.summary_ops_v2.scalar"),
        # Of Colab's notebooks with TPUEstimator, which no other line stops.
        ("cloud.configure_gcs", "lab_utils.port.contrib.stand_ins.configure_gcs"),
        ("tpu.python.tpu.tpu.shard", "tensorflow.python.tpu.tpu.shard"),
    ],
)
def test_places_of_today(path, place):
    assert place in names.candidates(path)


@pytest.mark.parametrize("path", ["seq2seq.BasicDecoder", "tpu.keras_to_tpu_model", "kfac.x"])
def test_what_is_gone_has_no_place_but_advice(path):
    assert not names.candidates(path) and names.advice(path)


VERSION_1 = """
import inspect
import tensorflow as tf
import tensorflow.compat.v1 as v1
import tensorflow.compat.v2 as v2
from tensorflow.compat import v1 as again
from tensorflow.contrib.tpu.python.tpu import tpu, tpu_context
from tensorflow.python.framework import ops
from tensorflow.python.keras.engine.base_layer import InputSpec, Layer
from tensorflow.python.ops import array_ops, control_flow_ops
from tensorflow.python.training import training_ops

assert ops.Tensor is tf.Tensor and control_flow_ops.cond is tf.cond and array_ops.stack is tf.stack
ops.register_tensor_conversion_function(type("Held", (), {}), lambda held, dtype, name, as_ref: 1)
ops.register_dense_tensor_like_type(type("Held", (), {}))
assert v1.estimator.tpu.TPUEstimator is tf.compat.v1.estimator.tpu.TPUEstimator is tf.contrib.tpu.TPUEstimator
assert again.layers.dense and v1.train.AdamOptimizer and v2.keras.Model and tf.compat.as_bytes("a") == b"a"
assert tf.contrib.distribute.initialize_tpu_system is tf.tpu.experimental.initialize_tpu_system
assert inspect.getargspec(lambda a, b=1, **more: 0) == (["a", "b"], None, "more", (1,))
assert InputSpec is tf.keras.layers.InputSpec and Layer is tf.keras.layers.Layer
assert tpu.shard and tpu_context and training_ops.apply_adam and v1.placeholder is tf.placeholder
"""


def test_version_1_is_whole_by_each_of_its_names(tmp_path):
    (tmp_path / "names.py").write_text(VERSION_1)
    code = "from lab_utils.port import contrib; contrib.install(); import names"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)


def test_gradients_are_clipped_by_their_global_norm_where_they_are_applied():
    with v1.Graph().as_default(), v1.Session() as session:
        weights = [v1.get_variable(name, [2], initializer=v1.zeros_initializer()) for name in "ab"]
        loss = 3 * weights[0][0] + 4 * weights[1][1]
        optimizer = stand_ins.clip_gradients_by_norm(v1.train.GradientDescentOptimizer(1.0), 0.5)
        train = optimizer.minimize(loss)
        session.run(v1.global_variables_initializer())
        session.run(train)
        moved = session.run(weights)
    np.testing.assert_allclose(moved, [[-0.3, 0], [0, -0.4]], rtol=1e-5)


def test_strings_have_their_numbers_in_a_table():
    with v1.Graph().as_default(), v1.Session() as session:
        table = stand_ins.index_table_from_tensor(mapping=["a", "b"])
        session.run(v1.tables_initializer())
        assert session.run(table.lookup(v1.constant(["b", "c"]))).tolist() == [1, -1]


def test_weights_decay_apart_from_adam():
    with v1.Graph().as_default(), v1.Session() as session:
        weights = v1.get_variable("w", initializer=np.array([2.0, -4.0], np.float32))
        optimizer = stand_ins.AdamWOptimizer(0.25, learning_rate=0.1)
        step = optimizer.apply_gradients([(np.array([1.0, -1.0], np.float32), weights)])
        session.run(v1.global_variables_initializer())
        session.run(step)
        # Adam's first step is the learning rate in the gradient's direction.
        assert np.allclose(session.run(weights), [2.0 * 0.75 - 0.1, -4.0 * 0.75 + 0.1], atol=1e-5)


def test_hyperparameters():
    hp = stand_ins.HParams(rate=0.1, layers=[1, 2], on=True, steps=3, path=None)
    hp.parse("rate=1,layers=[3,9],on=false")
    assert hp.values() == {"rate": 1.0, "layers": [3, 9], "on": False, "steps": 3, "path": None}
    assert isinstance(hp.rate, float) and "steps" in hp and hp["rate"] == hp.rate
    hp.add_hparam("path", "gs://x")  # as tensorflow/tpu's amoeba_net does where it is None
    for taken in ("path", "parse"):
        with pytest.raises(ValueError, match="reserved"):
            hp.add_hparam(taken, 1)
    for wrong in ("steps=many", "unknown=1", "rate"):
        with pytest.raises(ValueError):
            hp.parse(wrong)
