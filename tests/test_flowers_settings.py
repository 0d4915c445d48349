"""The settings of a run: flags, a YAML file, and mistakes in either."""

import re
import subprocess
import sys

import pytest

from lab_utils.flowers.settings import parse

PATHS = ["--train_data_path=t", "--eval_data_path=e", "--output_dir=o"]


def said(capsys, arguments) -> str:
    """What `parse` says of mistaken arguments."""
    with pytest.raises(SystemExit) as stopped:
        parse(arguments)
    assert stopped.value.code == 2
    return capsys.readouterr().err


@pytest.fixture
def config(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "run.yaml").write_text(text)
        return f"--config={tmp_path / 'run.yaml'}"

    return write


def test_a_flag_wins_over_the_file_and_the_file_over_the_default(config):
    file = config("train_steps: 7\nlearning_rate: 1e-3\nuse_bfloat16: true\nseed: 3\n")
    settings = parse([*PATHS, file, "--seed=5", "--use_bfloat16=False", "--use_tpu"])
    assert (settings.train_steps, settings.seed, settings.use_bfloat16) == (7, 5, False)
    assert settings.learning_rate == 0.001 and settings.use_tpu
    assert settings.train_batch_size == parse(PATHS).train_batch_size
    assert parse([*PATHS, config("")]) == parse(PATHS)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train_stpes: 7", ["run.yaml has train_stpes"]),
        ("train_steps: 7.5", ["train_steps", "int", "7.5"]),
        ("use_tpu: 1", ["use_tpu", "True or False", "1"]),
        ("output_dir:", ["output_dir is not set: give --output_dir"]),
        ("- train_steps", ["run.yaml", "name: value", "is a list or a single value"]),
        ("output_dir: gs:///run", ["gs:///run: no user, variable or bucket"]),
        ("learning_rate: 0,05", ["learning_rate", "float", "'0,05'"]),
        ("output_dir: 'my [run]'", ["output_dir", "'my [run]'", "choose"]),
        ("train_steps: 0", ["train_steps", "at least 1"]),
        (f"eval_batch_size: {10**20}", ["eval_batch_size", "below 2**31"]),
        ("image_size: 100", ["image_size", "multiple of 16"]),
        ("image_size: 1000000000", ["image_size", "32 to 4096"]),
        ("5: 5", ["run.yaml has 5"]),
        ("[" * 5000, ["run.yaml holds no"]),
        ("~: 5\ntrue: 1", ["run.yaml has None, True"]),
    ],
)
def test_mistakes_in_the_file_are_named(capsys, config, text, words):
    paths = PATHS[:2] if "output_dir" in text else PATHS
    message = said(capsys, [*paths, config(text)])
    assert all(word in message for word in words), message


@pytest.mark.parametrize("flag", ["--train_step=7", "--learning_rate=nan", "--config=none.yaml"])
def test_mistaken_flags_are_named(capsys, flag):
    name, value = flag.lstrip("-").split("=")
    assert {name, value} & set(re.findall(r"[\w.]+", said(capsys, [*PATHS, flag])))


def test_a_path_that_is_not_utf_8_is_refused(capsys):
    with pytest.raises(SystemExit):
        parse([*PATHS, "--output_dir=M\udcfcller"])
    assert "output_dir is 'M\\udcfcller': TensorFlow takes only" in capsys.readouterr().err


def test_the_file_that_make_flowers_uses_is_right():
    from lab_utils.flowers.__main__ import CONFIG

    settings = parse([*PATHS, f"--config={CONFIG}"])
    assert settings.train_steps % settings.eval_steps_between == 0
    # A TPU of eight cores divides both batches.
    assert settings.train_batch_size % 8 == settings.eval_batch_size % 8 == 0


def test_help_needs_no_tensorflow():
    script = (
        "import contextlib, runpy, sys\n"
        "for module in ('flowers', 'flowers.task', 'flowers.predict'):\n"
        "    sys.argv = [f'lab_utils.{module}', '--help']\n"
        "    with contextlib.suppress(SystemExit):\n"
        "        runpy.run_module(sys.argv[0], run_name='__main__')\n"
        "assert not {'tensorflow', 'jax', 'apache_beam'} & set(sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("usage:") == 3


def test_a_tpu_that_cannot_be_reached_is_named(monkeypatch):
    from lab_utils.estimator import tf
    from lab_utils.flowers import task

    def absent(*_, **__):
        raise OSError("Name or service not known")

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", absent)
    with pytest.raises(RuntimeError, match="--tpu rose cannot be reached .*Name or service"):
        task.make_estimator(parse([*PATHS, "--use_tpu", "--tpu=rose"]), ["a", "b"])
