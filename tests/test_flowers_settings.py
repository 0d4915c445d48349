"""What a run is told: flags, a YAML file, and mistakes in either."""

import os
import subprocess
import sys

import pytest

from lab_utils.flowers.settings import Settings, parse

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
    file = config("train_steps: 7\nlearning_rate: 1\nuse_bfloat16: true\nseed: 3\n")
    settings = parse([*PATHS, file, "--seed=5", "--no-use_bfloat16"])
    assert (settings.train_steps, settings.seed, settings.use_bfloat16) == (7, 5, False)
    assert settings.learning_rate == 1.0
    assert settings.train_batch_size == parse(PATHS).train_batch_size


def test_every_flag_can_stand_in_the_file(config):
    settings = parse([config("train_data_path: t\neval_data_path: e\noutput_dir: gs://b/o\n")])
    assert settings.output_dir == "gs://b/o"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("train_stpes: 7", ["run.yaml", "'train_stpes'", "train_steps"]),
        ("train_steps: many", ["run.yaml", "train_steps", "int", "'many'"]),
        ("train_steps: 7.5", ["train_steps", "int", "7.5"]),
        ("use_tpu: 1", ["use_tpu", "bool", "1"]),
        ("seed: true", ["seed", "int", "True"]),
        ("output_dir:", ["output_dir", "str", "None"]),
        ("- train_steps", ["run.yaml", "name: value"]),
        ("a: [", ["run.yaml", "not valid YAML"]),
        ("[" * 5000, ["run.yaml", "not valid YAML", "too deeply"]),
        ("output_dir: gs:///run", ["gs:///run names no bucket"]),
        ("train_steps: 1:30", ["train_steps is 1:30", "minutes: 90"]),
        ("train_steps: 010", ["train_steps is 010", "octal number: 8"]),
        ("output_dir: ${HOME}/run", ["only a shell knows what ${HOME} means"]),
        ("learning_rate: 0,05", ["learning_rate must be float", "'0,05'"]),
        ("seed: 1\ntrain_steps: 7\nseed: 2", ["run.yaml", "seed", "line 1", "line 3"]),
        ("output_dir: 'my [run]'", ["output_dir", "'my [run]'", "choose"]),
        ("train_steps: 0", ["train_steps", "at least 1"]),
        ("image_size: 100", ["image_size", "multiple of 16"]),
        ("image_size: 16", ["image_size", "at least 32"]),
    ],
)
def test_mistakes_in_the_file_are_named(capsys, config, text, words):
    paths = PATHS[:2] if "output_dir" in text else PATHS
    message = said(capsys, [*paths, config(text)])
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("tpu: \xfc".encode("latin-1"), "run.yaml is not text in UTF-8"),
        ("seed: 1".encode("utf-16"), "run.yaml is not text in UTF-8"),
        (b"false", "run.yaml must hold `name: value` lines"),
    ],
)
def test_a_file_that_is_none_is_named(capsys, config, tmp_path, content, words):
    flag = config("")
    (tmp_path / "run.yaml").write_bytes(content)
    assert words in said(capsys, [*PATHS, flag])


def test_a_byte_order_mark_is_passed_over_and_an_empty_file_says_nothing(config):
    assert parse([*PATHS, config("\ufeffseed: 4")]).seed == 4
    assert parse([*PATHS, config("")]) == parse(PATHS)


def test_a_tilde_is_the_home_folder(config, monkeypatch):
    monkeypatch.setenv("HOME", "/home/rose")
    settings = parse([*PATHS[:2], config("output_dir: ~/run"), "--train_data_path=~/train-*"])
    assert settings.output_dir == "/home/rose/run"
    assert settings.train_data_path == "/home/rose/train-*"


def test_a_missing_file_is_named(capsys, tmp_path):
    message = said(capsys, [*PATHS, f"--config={tmp_path / 'none.yaml'}"])
    assert "none.yaml" in message
    assert "No such file" in message


@pytest.mark.parametrize("missing", range(3))
def test_what_must_be_given_is_named(capsys, missing):
    message = said(capsys, PATHS[:missing] + PATHS[missing + 1 :])
    name = PATHS[missing].split("=")[0]
    assert f"give {name}, or {name[2:]} in the YAML file" in message


@pytest.mark.parametrize("flag", ["--train_stpes=7", "--train_steps=many", "--train_steps=-1"])
def test_mistaken_flags_are_named(capsys, flag):
    assert flag.split("=")[0].lstrip("-") in said(capsys, [*PATHS, flag])


def test_a_rate_is_a_number_in_each_notation(config):
    for text in ("1e-3", "1.0e-3", "0.001", "'0.001'"):
        assert parse([*PATHS, config(f"learning_rate: {text}")]).learning_rate == 0.001


def test_a_pipe_is_not_waited_for(capsys, tmp_path):
    os.mkfifo(tmp_path / "run.yaml")
    assert "is a pipe or a device" in said(capsys, [*PATHS, f"--config={tmp_path / 'run.yaml'}"])


def test_the_file_that_make_flowers_uses_is_right():
    from lab_utils.flowers.__main__ import CONFIG

    settings = parse([*PATHS, f"--config={CONFIG}"])
    assert settings.train_steps % settings.eval_steps_between == 0
    # A TPU of eight cores divides both batches.
    assert settings.train_batch_size % 8 == settings.eval_batch_size % 8 == 0


@pytest.mark.parametrize("module", ["flowers", "flowers.task", "flowers.page", "flowers.predict"])
def test_help_needs_no_tensorflow(module):
    script = (
        "import runpy, sys\n"
        f"sys.argv = ['lab_utils.{module}', '--help']\n"
        "try:\n"
        f"    runpy.run_module('lab_utils.{module}', run_name='__main__')\n"
        "finally:\n"
        "    heavy = {'tensorflow', 'jax', 'apache_beam'} & set(sys.modules)\n"
        "    assert not heavy, heavy\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "--output" in ran.stdout


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--train_steps=99999999999999999999"], "train_steps must be at least 1 and below 2**31"),
        (
            ["--train_batch_size=1000000000"],
            "a batch of 1,000,000,000 images of 128 pixels takes 45,776",
        ),
        (["--eval_batch_size=1000000000"], "take a smaller batch or image_size"),
        (["--image_size=16000000"], "a batch of 64 images of 16,000,000 pixels takes"),
    ],
)
def test_sizes_that_no_machine_holds_are_refused(capsys, flags, words):
    assert words in said(capsys, [*PATHS, *flags])


def test_switches_are_taken_as_absl_writes_them():
    settings = parse([*PATHS, "--use_tpu=True", "--use_bfloat16=true", "--tpu=true"])
    assert (settings.use_tpu, settings.use_bfloat16, settings.tpu) == (True, True, "true")
    assert not parse([*PATHS, "--use_bfloat16", "--use_bfloat16=False"]).use_bfloat16
    assert not parse([*PATHS, "--use_tpu=yes", "--use_tpu=0"]).use_tpu


def test_a_tpu_that_cannot_be_reached_is_named(monkeypatch):
    from lab_utils.estimator import tf
    from lab_utils.flowers import task

    def absent(*_, **__):
        raise OSError("Name or service not known")

    monkeypatch.setattr(tf.distribute.cluster_resolver, "TPUClusterResolver", absent)
    with pytest.raises(RuntimeError, match="--tpu rose cannot be reached .*Name or service"):
        task.make_estimator(parse([*PATHS, "--use_tpu", "--tpu=rose"]), ["a", "b"])


def test_a_batch_for_a_whole_pod_is_not_measured_by_this_machine():
    assert parse([*PATHS, "--use_tpu", "--train_batch_size=1000000"]).train_batch_size == 10**6
    Settings(train_data_path="t", eval_data_path="e", output_dir="o", eval_batch_size=10**6)
