"""python -m lab_utils.dry_run: what it takes, what it prints, how it ends."""

import json
import subprocess
import sys
import textwrap

import pytest

from lab_utils.dry_run import __main__ as command
from lab_utils.dry_run import rules

PORT = '''
    """A small port; `wrong` forgets drop_remainder."""
    import tensorflow as tf

    v1 = tf.compat.v1

    def model_fn(features, labels, mode, params):
        logits = v1.layers.dense(features, 3)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        if params["use_tpu"]:
            optimizer = v1.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, v1.train.get_or_create_global_step())
        return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn(params, drop_remainder=True):
        data = tf.data.Dataset.from_tensor_slices((tf.random.stateless_normal([256, 8], [1, 2]),
                                                   tf.zeros([256], tf.int32)))
        data = data.shuffle(256, seed=1).repeat()
        return data.batch(params["batch_size"], drop_remainder=drop_remainder)

    def estimator():
        config = v1.estimator.tpu.RunConfig(
            model_dir="model", save_checkpoints_steps=10,
            tpu_config=v1.estimator.tpu.TPUConfig(iterations_per_loop=10),
        )
        return v1.estimator.tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=64)

    def right():
        return estimator(), input_fn

    def reserved_key():
        return v1.estimator.tpu.TPUEstimator(
            model_fn, config=v1.estimator.tpu.RunConfig(), params={"batch_size": 64}
        )

    def wrong():
        return estimator(), lambda params: input_fn(params, drop_remainder=False)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with small modules to name on the command line."""
    modules = {
        "port": PORT,
        "raises": "def made():\n    values = []\n    return values[3]\n\nnothing = 3\n",
        "broken": "import no_such_module_anywhere\n",
        "returns": "def one():\n    return 7\n\ndef two():\n    return 7, 8\n",
        "ends": "raise SystemExit(0)\n",
    }
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in modules:
        sys.modules.pop(name, None)


def run(folder, *arguments):
    """The command in a process of its own, as a CI runs it."""
    return subprocess.run(
        [sys.executable, "-m", "lab_utils.dry_run", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("raises.py:made", ["IndexError", "raises.py:3"]),
        ("raises.py:nothing", ["no function nothing"]),
        ("raises.py", ["MODULE:FUNCTION"]),
        ("absent.py:made", ["no file", "absent.py"]),
        ("absent:made", ["ModuleNotFoundError", "absent'\n  while it was imported"]),
        ("train.ipynb:made", ["is a notebook: --main train.ipynb"]),
        ("broken.py:made", ["no_such_module_anywhere", "broken.py:1"]),
        ("returns.py:one", ["(estimator, input_fn)", "it returned 7"]),
        ("ends.py:made", ["SystemExit", "ends.py:1"]),
    ],
)
def test_a_target_that_cannot_be_used_is_told_with_its_place(folder, target, said):
    with pytest.raises(command.CannotJudge) as error:
        command.load(target)
    for words in said:
        assert words in str(error.value)


def test_a_target_may_bring_options(folder):
    (folder / "options.py").write_text("def two():\n    return 7, 8, {'steps': 1}\n")
    assert command.load("options.py:two").options == {"steps": 1}


def test_a_file_called_like_a_module_of_pythons_takes_nothing_away(folder):
    (folder / "json.py").write_text("def two():\n    return 7, 8\n")
    assert command.load("json.py:two").data == 8
    assert sys.modules["json"] is json


def test_settings_refused_while_the_estimator_is_made_are_a_finding(folder, capsys):
    assert command.main(["port.py:reserved_key", "--json", "out.json"]) == 1
    assert "TPU105" in capsys.readouterr().out
    written = json.loads((folder / "out.json").read_text())
    [found] = [each for stage in written["stages"] for each in stage["findings"]]
    assert found["rule"] == "TPU105" and "port.py:" in found["where"]
    assert found["message"].startswith("ValueError")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "MODULE:FUNCTION"),
        (["a:b", "--stages", "trace,smell"], "smell"),
        (
            ["a:b", "--json", "no/such/folder/out.json"],
            "cannot be written: name a file in a folder",
        ),
        (["a:b", "--html="], "the path is empty"),
        (["--rule", "TPU999"], "TPU101"),
        (["a:b", "--topology", "v9:2x2"], "not a TPU topology"),
        (["a:b", "--topolgy", "v2:2x2"], "unrecognized arguments: --topolgy"),
        (["a:b", "--ignore", "XYZ"], "not a rule XYZ (--rules"),
    ],
)
def test_arguments_that_make_no_sense_end_with_2(capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        command.main(arguments)
    assert end.value.code == 2
    assert said in capsys.readouterr().err


def test_rules_are_listed_and_shown(capsys):
    assert command.main(["--rules"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(rules.catalogue())
    assert command.main(["--rule", "tpu501"]) == 0
    assert rules.page("TPU501") in capsys.readouterr().out


def test_an_output_that_turns_out_unwritable_is_a_sentence(folder, capsys, monkeypatch):
    def refused(path, text):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(command.files, "write", refused)
    assert command.main(["port.py:reserved_key", "--json", "out.json"]) == 2
    said = capsys.readouterr()
    assert "TPU105" in said.out and "out.json cannot be written: Permission denied" in said.err


def test_help_imports_no_framework(folder):
    code = (
        "import sys, contextlib\nfrom lab_utils.dry_run import __main__ as command\n"
        "with contextlib.suppress(SystemExit): command.main(['--help'])\n"
        "print([name for name in ('tensorflow', 'jax') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "MODULE:FUNCTION" in ran.stdout and ran.stdout.strip().endswith("[]")


def test_what_cannot_be_judged_ends_with_2(folder, capsys):
    for function, message in (("raises.py:made", "IndexError"), ("returns.py:two", "TPUEstimator")):
        assert command.main([function]) == 2
        assert message in capsys.readouterr().err


def test_findings_end_with_1_and_reach_json_and_html(folder, capsys):
    stages = ("--stages", "trace,read")
    assert command.main(["port.py:wrong", *stages, "--json", "out.json", "--html", "out.html"]) == 1
    out = capsys.readouterr().out
    assert "TPU101" in out and "Not ready" in out
    written = json.loads((folder / "out.json").read_text())
    assert written["verdict"] == "findings"
    assert "TPU101" in {found["rule"] for stage in written["stages"] for found in stage["findings"]}
    assert "TPU101" in (folder / "out.html").read_text()


def test_a_port_that_is_ready_ends_with_0(folder):
    ran = run(folder, "port:right", "--feed_seconds", "0.3", "--steps", "2")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("Ready for v2:2x2")
    assert "NOT CHECKED" in ran.stdout
    assert not [line for line in ran.stderr.splitlines() if not line.startswith("Still in stage")]


def test_flags_of_absl_have_their_defaults(folder):
    """As the main of the port, which would read them from its own command line, does not run."""
    (folder / "flagged.py").write_text(
        "from absl import flags\n"
        "flags.DEFINE_integer('width_of_a_test', 32, 'of the hidden layer')\n"
        "def port():\n"
        "    return flags.FLAGS.width_of_a_test, None\n"
    )
    assert command.load("flagged.py:port").subject == 32
