"""Programs of JAX, and of Keras on JAX, are judged where there is no TensorFlow, as on Colab's TPU runtime.

In a child process that does not find TensorFlow. tests/test_places.py has an environment without it.
"""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("libtpu")
ROOT = Path(__file__).parents[1]

HIDDEN = """
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @staticmethod
    def find_spec(name, path=None, target=None):
        hidden = name.split(".")[0] in ("tensorflow", "tf_keras", "tensorflow_estimator")
        return None if hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Hiding
"""
COMMAND = """
from lab_utils.dry_run.__main__ import main
status = main(sys.argv[1:])
print("status", status, "TensorFlow" if "tensorflow" in sys.modules else "no TensorFlow")
"""
STEP = """
import jax, jax.numpy as jnp, numpy as np
from lab_utils.dry_run import dry_run

@jax.jit
def step(weights, batch):
    loss, slope = jax.value_and_grad(lambda w: jnp.mean((batch @ w - 1) ** 2))(weights)
    return weights - 0.1 * slope, loss

state, batch = jnp.ones((64, 8)), np.random.default_rng(0).random((128, 64), np.float32)
report = dry_run(step, (state, batch), progress=False, cache=False, numerics=True)
"""
KERAS = """
import os
os.environ["KERAS_BACKEND"] = "jax"
import keras
import numpy as np

def made():
    model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(4)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss)
    return model

draw = np.random.default_rng(0)
x, y = draw.random((256, 16), "float32"), draw.integers(0, 4, 256)
"""
KERAS_MAIN = """
keras.distribution.set_distribution(keras.distribution.DataParallel())
made().fit(x, y, batch_size=64, epochs=2)
"""
KERAS_OBJECTS = """
import sys
from lab_utils.dry_run import dry_run
report = dry_run(made(), (x[:64], y[:64]), progress=False, cache=False)
"""
SAID = """
print(report)
print("status", report.exit_status, "TensorFlow" if "tensorflow" in sys.modules else "no TensorFlow")
"""


def python(code: str, *arguments: str, cwd: Path = ROOT, executable: str = sys.executable) -> str:
    """What a program prints, on both streams; it must end by itself."""
    ran = subprocess.run(
        [executable, "-c", code, *map(str, arguments)], cwd=cwd, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout + ran.stderr


def judged(said: str, *stages: str) -> None:
    """The program is ready, these stages are done, and no TensorFlow was imported."""
    assert "status 0 no TensorFlow" in said, said
    assert re.search(r"^Ready for v5e:2x4(\.|, as far as was checked)", said, re.M), said
    for stage in stages:
        assert re.search(rf"^✓ {stage} +done", said, re.M), said


def test_a_program_of_jax_by_the_command():
    said = python(HIDDEN + COMMAND, "--main", "tests/jax_mains/optax_mlp.py", "--no_cache")
    judged(said, "read", "compile", "run")
    assert re.search(r"JAX; 1 of the 8 cores.*; jax [\d.]+, libtpu", said.replace("\n", " "))


def test_a_step_of_jax_and_what_a_tpus_rounding_does_to_it():
    said = python(HIDDEN + STEP + SAID)
    judged(said, "read", "compile", "run")
    assert "With a TPU's matmuls, the loss is" in " ".join(said.split())


def test_a_program_of_keras_on_jax_by_the_command(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(KERAS + KERAS_MAIN)
    said = python(HIDDEN + COMMAND, "--main", program, "--no_cache")
    judged(said, "read", "compile", "run", "feed")


def test_a_model_of_keras_on_jax():
    judged(python(HIDDEN + KERAS + KERAS_OBJECTS + SAID), "read", "compile", "run")


def test_where_tensorflow_is_installed_such_programs_do_not_import_it_either():
    said = python(
        "import sys\n" + COMMAND, "--main", "tests/jax_mains/plain_sgd.py", "--stages=read"
    )
    assert "status 0 no TensorFlow" in said


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import tensorflow as tf\n", "tensorflow is not installed"),
        (
            "def port():\n    return lambda x, y: x, ([[1.0]], [1])\n",
            "this object needs TensorFlow: tens",
        ),
    ],
    ids=["imports it", "a plain function"],
)
def test_a_program_of_tensorflow_is_told_what_to_install(program, says, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(program)
    target = [f"{path}:port"] if "port" in program else ["--main", path]
    said = python(HIDDEN + COMMAND, *target)
    assert says in said and "make setup" in said and "status 2" in said


def test_tensorflow_gets_its_estimator_when_it_comes_after_the_dry_run():
    """As where the dry run was imported first: notebooks import in any order."""
    code = """
        import sys
        from lab_utils.dry_run import dry_run
        assert "tensorflow" not in sys.modules
        import tensorflow as tf
        print(tf.estimator.Estimator.__module__, tf.keras.Model.__module__)
    """
    said = python(textwrap.dedent(code))
    assert re.search(r"^tensorflow_estimator\.\S+ tf_keras\.", said, re.M), said
