"""The command: functions that it calls, programs that it runs by their main, what it prints, how it ends."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys

import nbformat
import numpy as np
import psutil
import pytest

from lab_utils.common import source
from lab_utils.common.command import status_of as end_of
from lab_utils.dry_run import __main__ as dry_run_command
from lab_utils.dry_run import dry_run, progress, rules, target
from lab_utils.dry_run.frontends import cells, datasets, recorder
from lab_utils.dry_run.frontends.imports import on_import
from lab_utils.estimator import tf

CHEAP = ("--stages", "trace,read", "--no_cache")
RIGHT = "tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))"

MODEL = """
import numpy as np
import tensorflow.compat.v1 as tf


def model_fn(features, labels, mode, params):
    logits = tf.layers.dense(features, 3)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"logits": logits})
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        def metric_fn(labels, logits):
            return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))
    optimizer = OPTIMIZER
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params, training=True):
    data = tf.data.Dataset.from_tensor_slices(
        (np.zeros([256, 4], np.float32), np.zeros([256], np.int32)))
    data = data.shuffle(256).repeat() if training else data
    return data.batch(params["batch_size"], drop_remainder=True)
"""

IN_PACKAGE = """
import tensorflow.compat.v1 as tf
from .port import input_fn
if __name__ == "__main__":
    tf.estimator.Estimator(lambda features: None, "gs://b/run").train(input_fn, max_steps=10)
"""

PORT = """

def port(**options):
    config = tf.estimator.tpu.RunConfig(
        model_dir="model", save_checkpoints_steps=10,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=10))
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=config, train_batch_size=64, **options)
    return estimator, input_fn


def reserved_key():
    return port(params={"batch_size": 64})
"""

ABSL = (
    MODEL
    + """
from absl import app, flags

flags.DEFINE_string("tpu", None, "", short_name="T")
flags.DEFINE_integer("steps", 0, "")
FLAGS = flags.FLAGS


def main(argv):
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu, zone="z", project="p")
    config = tf.estimator.tpu.RunConfig(
        cluster=resolver, model_dir="gs://bucket/run", save_checkpoints_steps=100,
        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8))
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=config, train_batch_size=64, eval_batch_size=64)
    current = 0
    while current < FLAGS.steps:  # evaluate gives no step that moves: the calls repeat
        estimator.train(input_fn, max_steps=current + 100)
        results = estimator.evaluate(lambda params: input_fn(params, False), steps=4)
        current = int(results["global_step"])


if __name__ == "__main__":
    app.run(main)
"""
)

ARGPARSE = (
    MODEL
    + """
import argparse


def run(args):
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn, config=tf.estimator.tpu.RunConfig(model_dir=args.job_dir, tpu_config=
            tf.estimator.tpu.TPUConfig(iterations_per_loop=50), save_checkpoints_steps=50),
        use_tpu=False, train_batch_size=args.batch, eval_batch_size=args.batch,
        predict_batch_size=args.batch)
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(input_fn, max_steps=200),
        tf.estimator.EvalSpec(lambda params: input_fn(params, False), steps=4))
    for row in estimator.predict(lambda params: input_fn(params, False).map(lambda x, y: x)):
        print(row["logits"])
    estimator.export_saved_model("/nowhere", serving)


def serving():
    images = tf.placeholder(tf.float32, [None, 4])
    return tf.estimator.export.TensorServingInputReceiver(images, images)


parser = argparse.ArgumentParser()
parser.add_argument("--job-dir", required=True)
parser.add_argument("--batch", type=int, default=64)
run(parser.parse_args())
"""
)


@pytest.fixture
def started(tmp_path, monkeypatch):
    """This process is as one that started in `tmp_path`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source, "START", tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def loaded(tmp_path, started):
    """A function that writes a program and runs it up to its training, in this process."""

    def run(text, name="train.py", **options):
        (tmp_path / name).write_text(text.replace("OPTIMIZER", RIGHT))
        return target.load_main(name, [], **options)

    return run


@pytest.fixture
def judged(tmp_path, started, capsys):
    """A function that writes train.py and runs the command in this process: its status and what it says."""

    def run(text, *arguments):
        (tmp_path / "train.py").write_text(text.replace("OPTIMIZER", RIGHT))
        status = dry_run_command.main(arguments)
        return status, "".join(capsys.readouterr())

    yield run
    sys.modules.pop("train", None)


def command(folder, *arguments, **options):
    """The command in a process of its own, as a CI runs it."""
    return subprocess.run(
        [sys.executable, "-m", "lab_utils.dry_run", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        **options,
    )


@pytest.mark.parametrize("first", ["lab_utils.estimator", "tensorflow", "keras"])
def test_a_program_may_import_its_packages_in_any_order(first, tmp_path):
    """Estimators and TPUStrategy have their stand-ins, whatever brings TensorFlow."""
    (tmp_path / "program.py").write_text(
        f"import {first}\nimport tensorflow as tf\nfrom lab_utils.estimator import tpu, v1\n"
        "address = tf.distribute.cluster_resolver.TPUClusterResolver('grpc://10.0.0.2:8470')\n"
        "tf.distribute.TPUStrategy(address)\n"
        "config = tpu.RunConfig(cluster=address)\n"
        "tpu.TPUEstimator(lambda features: None, config=config, use_tpu=True, train_batch_size=64)\\\n"
        "    .train(lambda params: None)\n"
    )
    ran = command(tmp_path, "--main", "program.py", "--stages", "trace,read", "--no_cache")
    assert "program.py called train()." in ran.stderr, ran.stderr
    assert ran.stdout.startswith("Not ready for v2:2x2"), ran.stdout


def test_a_program_is_judged_by_its_own_main(tmp_path):
    """Whatever it does to its streams; threads and processes that it leaves do not keep the command."""
    leaves = (
        "import io, subprocess, sys, threading, time, warnings\n"
        "sys.stdout = io.TextIOWrapper(sys.stdout.detach(), 'utf-8')\n"
        "threading.Thread(target=time.sleep, args=(999,)).start()\n"
        "subprocess.Popen(['sleep', '999'])\nwarnings.simplefilter('error')\n"
    )
    (tmp_path / "train.py").write_text(leaves + ABSL.replace("OPTIMIZER", RIGHT))
    ran = command(tmp_path, "--main", "train.py", *CHEAP, "--", "--tpu=mine", "--steps=500")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "called train(max_steps=100), evaluate(steps=4)" in ran.stderr
    assert "Ready for v2:2x2" in ran.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]  # nothing was trained


@pytest.mark.parametrize("first", ["", "import os; os.chdir('..')"], ids=["here", "goes elsewhere"])
def test_a_fault_is_named_at_its_line_as_seen_from_where_the_command_started(first, judged):
    text = first + ARGPARSE.replace("OPTIMIZER", "tf.train.GradientDescentOptimizer(0.1)")
    status, out = judged(text, "--main", "train.py", *CHEAP, "--", "--job-dir", "runs")
    line = 1 + ARGPARSE[: ARGPARSE.index("train_op =")].count("\n")
    assert status == 1 and "TPU201" in out and f" train.py:{line}, " in out
    assert "train, eval, predict, serving" in out


def test_a_constructor_of_another_file_is_blamed_at_the_line_that_made_this_estimator(tmp_path):
    """The file of model_fn makes another Estimator, which the program does not use."""
    (tmp_path / "net.py").write_text(MODEL.replace("OPTIMIZER", RIGHT) + PORT)
    (tmp_path / "train.py").write_text(
        "import net\nfrom net import tf\n"
        "config = tf.estimator.tpu.RunConfig(model_dir='model')\n"
        "port = tf.estimator.tpu.TPUEstimator(\n    net.model_fn, config=config, train_batch_size=64)\n"
        "port.train(net.input_fn, max_steps=100)\n"
        "port.predict(lambda params: net.input_fn(params, False))\n"
    )
    ran = command(tmp_path, "--main", "train.py", *CHEAP)
    assert ran.returncode == 1 and re.search(r"TPU107.*\n +where +train\.py:4", ran.stdout), (
        ran.stdout + ran.stderr
    )


def test_old_names_of_numpy_are_given_and_told(tmp_path):
    """As mean encoders and callbacks of 2021 use them; model_fn does so when it is called."""
    text = MODEL.replace("OPTIMIZER", RIGHT) + PORT
    (tmp_path / "train.py").write_text(
        text.replace("def model_fn", "import numpy as np\n\n\ndef model_fn", 1)
        + "best, size = -np.Inf, np.product([2, 3])\n"
        + "port()[0].train(input_fn, max_steps=100)\n"
    )
    ran = command(tmp_path, "--main", "train.py", *CHEAP)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "NumPy 2: it lacks np.Inf, np.product" in " ".join(ran.stdout.split())


def test_a_config_of_another_file_is_blamed_at_its_own_line(tmp_path):
    config = PORT[PORT.index("tf.estimator.tpu.RunConfig") : PORT.index("    estimator =")].rstrip()
    module = f"import tensorflow.compat.v1 as tf\ndef config():\n    return {config}\n"
    (tmp_path / "settings.py").write_text(module.replace("steps=10", "steps=15"))
    (tmp_path / "train.py").write_text(
        MODEL.replace("OPTIMIZER", RIGHT)
        + "import settings\n"
        + "config = settings.config()\n"
        + "port = tf.estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=64)\n"
        + "port.train(input_fn, max_steps=100)\n"
    )
    ran = command(tmp_path, "--main", "train.py", *CHEAP)
    assert ran.returncode == 0 and re.search(r"TPU210.*\n +where +settings\.py:3", ran.stdout), (
        ran.stdout + ran.stderr
    )


def test_a_program_that_ends_its_process_is_not_ready(tmp_path):
    (tmp_path / "port.py").write_text("import os\ndef port():\n    os._exit(0)\n")
    ran = command(tmp_path, "port.py:port", *CHEAP)
    assert ran.returncode == 2 and not ran.stdout
    assert "the program calls os._exit\n  at port.py:3, in port" in ran.stderr


@pytest.mark.parametrize("end", ["exit", "_exit", "quick_exit", "abort"])
def test_a_library_that_ends_the_process_leaves_no_status_of_a_verdict(end, tmp_path):
    """Nor does one that ends it in the middle, when the program has called its Estimator."""
    program = LOOP + f"train()\nimport ctypes\nctypes.CDLL(None).{end}(0)\n"
    (tmp_path / "train.py").write_text(program)
    ran = command(tmp_path, "--main", "train.py", *CHEAP)
    assert ran.returncode == 2 and not ran.stdout, ran.stderr
    assert "before there was a report, so there is no verdict" in ran.stderr
    assert ("SIGABRT" if end == "abort" else "with status 0") in ran.stderr


WAITS = """
import subprocess, time
print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(0.5)
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize(
    ("number", "to_all", "status"),
    [*((number, all, 130) for number in (2, 15, 1) for all in (True, False)), (9, False, -9)],
)  # fmt: skip
def test_a_command_that_is_stopped_takes_with_it_what_it_started(number, to_all, status, tmp_path):
    """A terminal sends a signal to the whole group: both processes of the command, which is one interrupt."""
    (tmp_path / "train.py").write_text(WAITS)
    running = subprocess.Popen(
        [sys.executable, "-m", "lab_utils.dry_run", "--main", "train.py", *CHEAP],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_DFL
        ),  # under nohup it is ignored
    )
    sleeper = psutil.Process(int(running.stdout.readline()))
    (os.killpg if to_all else os.kill)(running.pid, number)
    assert running.wait(60) == status
    assert not psutil.wait_procs([sleeper], timeout=60)[1]
    said = running.stderr.read()
    assert "Traceback" not in said and said.count("interrupted") == (number != signal.SIGKILL)


@pytest.mark.parametrize(
    ("redirection", "encoding", "status"),
    [(">&-", "utf-8", 2), ("2>&-", "utf-8", 0), ("<&-", "utf-8", 0), ("", "ascii", 0)],
)
def test_a_stream_that_is_closed_or_narrow_is_no_finding(redirection, encoding, status, tmp_path):
    (tmp_path / "train.py").write_text((MODEL + PORT).replace("OPTIMIZER", RIGHT))
    command = f"{shlex.quote(sys.executable)} -m lab_utils.dry_run train.py:port"
    line = f"{command} {' '.join(CHEAP)} {redirection}"
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    ran = subprocess.run(
        line, shell=True, cwd=tmp_path, capture_output=True, env=environment, encoding="utf-8"
    )
    assert ran.returncode == status, ran.stdout + ran.stderr
    if status:
        assert ran.stderr.endswith("the report cannot be shown: the standard output is closed\n")
    else:
        assert ran.stdout.startswith("Ready for v2:2x2")
        assert ("? trace" if encoding == "ascii" else "\u2713 trace") in ran.stdout


STRAYS = "import asyncio\nclass Stray(BaseException): pass\n"


@pytest.mark.parametrize("error", ["asyncio.CancelledError()", "GeneratorExit()", "Stray('no')"])
def test_what_is_raised_and_is_no_exception_is_no_finding(error, judged):
    status, said = judged(f"{STRAYS}raise {error}\n", "--main", "train.py", *CHEAP)
    assert status == 2 and f"{error.partition('(')[0].rpartition('.')[2]}: " in said
    assert "at train.py:3: `raise " in said
    in_model = MODEL.replace("    logits = ", f"    raise {error}\n    logits = ")
    status, said = judged(STRAYS + in_model + PORT, "train.py:port", *CHEAP)
    assert status == 2 and "No verdict: trace" in said and "in model_fn: `raise" in said, said


def test_a_program_of_a_package_is_named_as_a_module(tmp_path, monkeypatch):
    folder = tmp_path / "digits" / "jobs"
    folder.mkdir(parents=True)
    (folder / "port.py").write_text("def input_fn(params): pass\n")
    (folder / "train.py").write_text(IN_PACKAGE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    estimator, data, *_ = target.load_main("digits.jobs.train", [])
    assert estimator.model_dir == "gs://b/run" and data.__module__ == "digits.jobs.port"
    with pytest.raises(target.CannotJudge, match=r"nor a module digits\.nothing below"):
        target.load_main("digits.nothing", [])


IN_COLAB = """
import tensorflow as tf
try:
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    print(tpu.cluster_spec().as_dict()["worker"])
    tf.config.experimental_connect_to_cluster(tpu)
    print(tf.tpu.experimental.initialize_tpu_system(tpu).num_tasks)
    strategy = tf.distribute.TPUStrategy(tpu)
except ValueError:
    strategy = tf.distribute.get_strategy()
BATCH = 4 * strategy.num_replicas_in_sync
data = tf.data.Dataset.from_tensors((tf.zeros([5]), 1)).repeat(100).batch(BATCH)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
"""


@pytest.mark.parametrize(
    ("fit", "batch"),
    [
        ("history = model.fit(data, epochs=3)\nprint(history.history['loss'])", [64, 5]),
        ("import numpy as np; model.fit(np.zeros([99, 7]), np.zeros([99]), 24)", [24, 7]),
        ("model.fit(x=[tf.zeros([9, 2]), tf.zeros([9, 3])], y=tf.zeros([9, 1]))", [9, 2]),
        ("model.fit({'a': tf.zeros([40, 2])}, tf.zeros([40]), validation_split=0.1)", [32, 2]),
        (
            "for _ in range(9):\n    model.train_on_batch(tf.zeros([48, 3]), tf.zeros([48]))",
            [48, 3],
        ),
    ],
)
def test_a_keras_program_is_run_up_to_its_fit(fit, batch, loaded):
    model, data, more, observed = loaded(IN_COLAB + fit, cores=16)
    first = tf.nest.flatten(next(iter(data)))[0]
    assert model.optimizer and not more and first.shape.as_list() == batch
    assert observed.trained_at.code and observed.trained_at.code in fit


OWN_LOOP = """
rows = tf.random.stateless_normal([256, 5], [1, 2])
data = tf.data.Dataset.from_tensor_slices((rows, tf.range(256) % 2)).repeat()
DISTRIBUTED
optimizer = tf.keras.optimizers.Adam()
@tf.function
def train(iterator, steps):
    def step(batch):
        rows, labels = batch
        with tf.GradientTape() as tape:
            loss = tf.keras.losses.sparse_categorical_crossentropy(labels, model(rows), from_logits=True)
            loss = PART
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    for _ in tf.range(steps):
        strategy.run(step, args=(next(iterator),))
strategy.run(lambda: 1)
strategy.run(lambda: 2)
train(iter(data), tf.constant(5))
"""
DATASET = "data = strategy.experimental_distribute_dataset(data.batch(BATCH))"
FUNCTION = """data = strategy.distribute_datasets_from_function(
    lambda context: data.batch(context.get_per_replica_batch_size(BATCH), drop_remainder=True))"""
SHORT = FUNCTION.replace(", drop_remainder=True", "")
AVERAGE = "tf.nn.compute_average_loss(loss, global_batch_size=BATCH)"


@pytest.mark.parametrize(
    ("distributed", "part", "line"),
    [
        (DATASET, AVERAGE, None),
        (FUNCTION, AVERAGE, None),
        (DATASET, "tf.reduce_mean(loss)", "optimizer.apply_gradients("),
    ],
    ids=["a dataset", "a function", "own mean"],
)
def test_a_loop_of_ones_own_is_run_up_to_its_first_step(distributed, part, line, judged):
    text = OWN_LOOP.replace("DISTRIBUTED", distributed).replace("PART", part)
    status, said = judged(IN_COLAB + text, "--main", "train.py", "--stages", "read,run")
    assert "train.py called strategy.run(step)." in said and status == bool(line), said
    assert ("TPU403" in said and line in said) if line else "TPU4" not in said, said


def test_batches_of_a_function_may_end_in_a_shorter_one(judged):
    text = OWN_LOOP.replace("DISTRIBUTED", SHORT).replace("PART", AVERAGE)
    status, said = judged(IN_COLAB + text, "--main", "train.py", "--stages", "read")
    assert status == 0 and "NOTE TPU232" in said and "batches of 32 " in said, said
    text = OWN_LOOP.replace("DISTRIBUTED", FUNCTION).replace("PART", AVERAGE)
    assert "TPU232" not in judged(IN_COLAB + text, "--main", "train.py", "--stages", "read")[1]


@pytest.mark.parametrize(("scope", "status"), [("strategy.scope()", 0), ("open(__file__)", 1)])
def test_variables_of_mixed_precision_are_those_of_the_scope(scope, status, tmp_path):
    """Keras puts a variable of its own around each where the policy is mixed_bfloat16."""
    (tmp_path / "train.py").write_text(
        IN_COLAB[: IN_COLAB.index("with ")]
        + "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16')\n"
        + f"with {scope}:\n    part = tf.keras.layers.Dense(3)\n    part.build([None, 5])\n"
        + "with strategy.scope():\n"
        + "    model = tf.keras.Sequential([tf.keras.Input([5]), part, tf.keras.layers.Dense(2)])\n"
        + "    model.compile('adam', 'mse')\nmodel.fit(data, epochs=2)\n"
    )
    ran = command(tmp_path, "--main", "train.py", "--stages", "read", "--no_cache")
    assert ran.returncode == status and ("TPU230" in ran.stdout) == bool(status), ran.stdout


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        (
            "tf_op_layer_rows",
            2,
            "cannot be checked here: .*'tf_op_layer_rows'.*at train.py",
        ),
        ("rows", 1, r"TPU199 .* where train\.py:\d+: `model.fit\(data, epochs=2\)`"),
    ],
)
def test_an_error_of_keras_is_told_at_the_line_of_fit(name, status, said, judged):
    """Keras up to 2.3 gave outputs that an op computes a name of their own."""
    start = IN_COLAB[: IN_COLAB.index("data = ")]
    model = (
        "rows = tf.zeros([64, 5])\n"
        f"data = tf.data.Dataset.from_tensors((rows, {{'{name}': rows[:, 0]}})).repeat(9)\n"
        "with strategy.scope():\n"
        "    inputs = tf.keras.Input([5])\n"
        f"    model = tf.keras.Model(inputs, [tf.squeeze(inputs[:, :1], -1)])\n"
        f"    model.compile('sgd', {{'{name}': 'mse'}})\nmodel.fit(data, epochs=2)\n"
    )
    ended, out = judged(start + model, "--main", "train.py", "--stages", "read")
    assert ended == status and re.search(said, " ".join(out.split())), out


def test_an_op_that_goes_to_the_host_is_a_note(judged, monkeypatch):
    monkeypatch.setattr(tf.config, "get_soft_device_placement", lambda: True)
    part = f"[tf.print(loss), {AVERAGE}][1]"
    text = OWN_LOOP.replace("DISTRIBUTED", DATASET).replace("PART", part)
    status, said = judged(IN_COLAB + text, "--main", "train.py", "--stages", "read,compile")
    assert status == 2 and "NOTE TPU205" in said and "compile skipped" in said, said
    assert "Not judged: the train step, which cannot be lowered here" in " ".join(said.split())


KERAS_1 = """
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    model.compile("adam", "mse")
    model.fit([[1.0]], [[1.0]])
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('nothing to do')", "without calling train, evaluate or predict"),
        ("import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--data', "
         "required=True)\nparser.parse_args()", "SystemExit: 2\n  at train.py:4"),
        ("raise RuntimeError('no data')", "RuntimeError: no data\n  at train.py:1"),
        ("import tensorflow as tf\nwith tf.Graph().as_default():\n" + KERAS_1, "behaviour of TensorFlow 1"),
        ("x = 1\nimport net\n", "at net.py:2"),
        ("import tensorflow as tf\nconfig = tf.tpu.RunConfig()\n",
         r"at train.py:2.*\n  Write tf.compat.v1.estimator.tpu.RunConfig"),
        ("x = 1\n y = 2\n", "at train.py:2"),
        ("from lab_utils.estimator import tf\nnames = tf.data.Dataset.from_tensor_slices([])\n"
         "pictures = names.map(tf.io.read_file)", r"at train.py:3.*\n  Look at the list of files.*TPU233"),
        # As tpu.rewrite's programs run a session: cloudml-samples' tpu_rewrite.
        ("from lab_utils.estimator import tf, v1\nwith tf.Graph().as_default():\n"
         "    v1.Session().run(v1.placeholder(tf.float32, [2]) * 2)\n",
         "Error: You must feed a value for placeholder .*\n.*:3"),
        (IN_COLAB + "model.fit(object(), epochs=2)", "fit gets data of the type object"),
        ("try:\n    1 / 0\nexcept Exception as error:\n    print(error)\n    raise SystemExit(1)",
         "^ZeroDivisionError: .*\n  at train.py:2"),
        ("raise ValueError('\\x1b[1mno \\x1b[38;5;34mrow\\x1b[0m')", r"^ValueError: no row\n  at train.py:1"),
        (IN_COLAB + "for _ in range(2):\n    strategy.run(lambda y: y, (1.0,))",
         "strategy.run at train.py:17 with .*share batches out"),
        # A TPU takes the tensors of a call: Hugging Face's TFTrainer gave its step the optimizer.
        (IN_COLAB + "strategy.run(lambda rate, y: y, (tf.keras.optimizers.SGD(), 1.0))",
         "strategy.run at train.py:16 is given an object of class SGD .*turns each argument into a tensor"),
        ("import tensorflow.compat.v1 as tf\nestimator = tf.estimator.Estimator(lambda features: None, 'x')\n"
         "estimator.export_saved_model('x', lambda: None)", "it only exports a model"),
        (IN_COLAB + "tf.compat.v1.tpu.experimental.AdagradParameters(0.1)",
         "cannot be checked here: .* left TensorFlow"),
        ("import subprocess, sys\nsubprocess.check_output(['true'])\n"
         "subprocess.check_call([sys.executable, 'other.py', '--steps=3'])",
         r"starts `python.* \(train.py:3\)"),
        ("import os\nos.system('CUDA_VISIBLE_DEVICES= python -m pkg.train')",
         r"starts `python.* \(train.py:2\)"),
        # Gaps between versions, and what was made for another TensorFlow: XLNet has such a copy.
        ("import numpy as np\nnp.asfarray([1])", r"cannot be checked here: .*asfarray.*nothing of the port"),
        ("import tensorflow as tf\ntf.keras.optimizers.SGD(0.1, decay=1e-5)",
         r"cannot be checked here: decay is deprecated .*nothing of the port"),
        ("from keras.src.engine import keras_tensor",
         r"cannot be checked here: No module named 'keras.src.engine'.*nothing of the port"),
        ("import jax\nfrom optax._src.alias import gone",
         r"cannot be checked here: .*'gone' from 'optax.*and JAX .*nothing of the port"),
        ("import types\npd = types.ModuleType('pandas')\npd.np",
         r"cannot be checked here: .*'np'.*nothing of the port"),
        ("from tensorflow.python.keras.layers.gone import Layer",
         r"cannot be checked here: .*import from tensorflow.keras\)"),
        ("import mesh_tensorflow as mtf", "cannot be checked here: .*splits a model over the cores"),
        ("from tensorflow.python.ops import array_ops\nclass TPUEstimator:\n    gone = array_ops.gone",
         r"cannot be checked here: .*train.py is a copy of TPUEstimator.*import tf.compat.v1.estimator.tpu"),
    ],
)  # fmt: skip
def test_a_program_that_cannot_be_judged_says_why_with_its_place(text, message, loaded, tmp_path):
    (tmp_path / "net.py").write_text("x = 1\nx = = 2\n")
    with pytest.raises(target.CannotJudge, match=message):
        loaded(text)


@pytest.mark.parametrize(
    "line",
    ["keras.layers.Lambda(lambda x: x.rows)(keras.Input([2]))", "keras.backend.no_such_name"],
)
def test_a_program_that_keras_3_stops_hears_how_it_gets_keras_2(line, loaded):
    if not pytest.importorskip("keras").__version__.startswith("3."):
        pytest.skip("Keras 2")
    with pytest.raises(
        target.CannotJudge, match=r"(?s)at train.py:2.*\n  .*`import tf_keras as keras`"
    ):
        loaded(f"import keras\n{line}\n")


class Rows(tf.keras.utils.Sequence):
    """Batches that Python makes, as directory iterators are."""

    def __len__(self):
        return 3

    def __getitem__(self, number):
        return np.full([64, 8], float(number)), np.zeros([64], np.int32)


@pytest.mark.parametrize("given", [Rows, lambda: iter([Rows()[0], Rows()[1], Rows()[2]])])
def test_batches_that_python_makes_are_a_dataset_in_their_order(given):
    dataset = datasets.of_python(given())
    rows, labels = dataset.element_spec
    assert (rows.dtype, labels.dtype, rows.shape.as_list()) == (tf.float32, tf.int32, [None, 8])
    assert [float(rows[0, 0]) for rows, _ in dataset] == [0, 1, 2]
    assert datasets.of_python(np.zeros([64, 8])) is None


def test_an_encoding_with_which_python_does_not_start_is_refused(tmp_path, capsys):
    (tmp_path / "latin.py").write_bytes(b"x = 1\n\n# \xe9\n")
    assert dry_run_command.main(["--main", str(tmp_path / "latin.py"), *CHEAP]) == 2
    said = capsys.readouterr().err
    assert "SyntaxError: 'utf-8' codec can't decode byte 0xe9" in said and "latin.py:3" in said
    assert "save the file as UTF-8, or declare its encoding" in said


def test_evaluation_that_waits_for_checkpoints_is_judged(loaded, capsys):
    port = loaded(
        MODEL
        + """
import time
estimator = tf.estimator.tpu.TPUEstimator(
    model_fn, config=tf.estimator.tpu.RunConfig(), train_batch_size=16, eval_batch_size=16)
for path in tf.train.checkpoints_iterator("/no/where", min_interval_secs=60):
    estimator.evaluate(input_fn, steps=4, checkpoint_path=path)
    assert int(path.split("-")[-1]) == 0
estimator.train(input_fn, steps=4)
while not estimator.latest_checkpoint():
    time.sleep(60)
next(estimator.predict(input_fn))
"""
    )
    assert port.data is port.options["eval_input_fn"] and not port.observed.not_judged
    assert "called evaluate(steps=4), train(steps=4), predict()." in capsys.readouterr().err
    assert "train.py:36" in port.observed.not_checked[0]


@pytest.mark.parametrize(
    ("call", "mode"),
    [("list(estimator.predict(input_fn))", "predict"), ("estimator.evaluate(input_fn, steps=4)", "eval")],
)  # fmt: skip
def test_a_program_that_trains_nothing_is_judged_for_what_it_calls(call, mode, loaded):
    sizes = "train_batch_size=16, eval_batch_size=16, predict_batch_size=16"
    made = "estimator = tf.estimator.tpu.TPUEstimator(\n    model_fn, config=tf.estimator.tpu.RunConfig(), "
    port = loaded(f"{MODEL}\n{made}{sizes})\n{call}\n")
    stages = ("trace", "read", "feed")
    report = dry_run(port.subject, port.data, observed=port.observed, stages=stages, **port.options)
    details = {stage.stage: stage.detail for stage in report.stages}
    assert details["trace"] == f"graphs built for {mode}", report
    assert details["read"] == f"programs of {mode}" and report.feed.examples_per_second
    assert "Mode train: the dry run did not see the program use it." in report.not_checked


def test_what_a_program_calls_goes_along_with_the_steps_of_one_call(loaded):
    port = loaded(
        MODEL
        + """
estimator = tf.estimator.tpu.TPUEstimator(
    model_fn, config=tf.estimator.tpu.RunConfig(), train_batch_size=16, eval_batch_size=16)
for until in (30, 70):
    estimator.train(input_fn, max_steps=until)  # 30, then 40
estimator.train(lambda params: input_fn(params), steps=1000)  # other data, which are not judged
estimator.evaluate(input_fn)
"""
    )
    assert port.observed.steps() == 40
    assert port.observed.may_call("eval") and not port.observed.may_call("predict")


def notebook(*cells):
    made = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    return nbformat.writes(
        nbformat.v4.new_notebook(cells=[made[kind](text) for kind, text in cells])
    )


def test_a_notebook_is_run_cell_by_cell(loaded):
    model = "model = tf.keras.Sequential([tf.keras.layers.Dense(2)])\nmodel.compile('adam', 'mse')\nmodel?\n"
    judged = loaded(notebook(
        ("markdown", "# Title"), ("code", "%%bash\nexit 1\n"),
        ("code", "%matplotlib inline\nimport tensorflow as tf\nif True:\n    !pip install x\n"),
        ("code", model), ("code", "model.fit(tf.zeros([64, 3]), tf.zeros([64, 2]))"),
    ), "train.ipynb")  # fmt: skip
    assert judged.subject.optimizer and judged.data.element_spec[0].shape.as_list() == [32, 3]
    with pytest.raises(target.CannotJudge, match=r"at train\.ipynb\[cell 2\]:2: `1 / 0`"):
        loaded(notebook(("code", ""), ("code", "x = 1\n1 / 0\n")), "train.ipynb")
    null = json.loads(notebook(("code", "")))
    null["cells"][0]["source"] = None
    for damaged in ("[1]", json.dumps(null)):
        with pytest.raises(target.CannotJudge, match="is not a Jupyter notebook, or is damaged"):
            loaded(damaged, "train.ipynb")
    with pytest.raises(target.CannotJudge, match="it starts `python -m a.task --steps 3`"):
        loaded(notebook(("code", "!python -m a.task --steps 3")), "train.ipynb")


# As IPython runs them, which is the reference (tried cell by cell against it).
CELLS = {
    "a remainder at the start of a line": ("msg = ('%d of %d'\n   % (1, 2))\n", {"msg": "1 of 2"}),
    "a bang in a text": ('text = """\n! one\n% two\n"""\n', {"text": "\n! one\n% two\n"}),
    "blank lines, and two": ("\n\n%%capture out\n%%time\nx = 4\n", {"x": 4}),
    "a cell for a shell": ("%%bash\nx = 5\n", {}),
    "a shell's answer": ("files = !echo a b\nn = len(files)\n", {"files": [], "n": 0}),
    "a shell's long line": ("!echo a \\\n   b\nx = 3\n", {"x": 3}),
    "the environment": ("%env LABS_TRIAL=7\nimport os\nx = os.environ['LABS_TRIAL']\n", {"x": "7"}),
    "indented as a whole": ("\n  x = 1\n  if x:\n    y = 2\n", {"x": 1, "y": 2}),
    "exported": ("get_ipython().run_line_magic('time', 'x = 11')\nget_ipython().system('ls')\n", {"x": 11}),
    "saved by Colab": (
        '# -*- coding: utf-8 -*-\n!pip install -q \\\n  tensorflow-addons\n%tensorflow_version 2.x\n'
        "import inspect\nline = inspect.currentframe().f_lineno\n", {"line": 6}),
    "Windows": ("x = 1\r\ny = ('%d'\r\n  % x)\r\n", {"x": 1, "y": "1"}),
}  # fmt: skip


def ran(path):
    names = {}
    if cells.needs_jupyter(path):
        shell = cells.Shell(names)
        names.update(get_ipython=lambda: shell, display=print)
    for code in cells.code_of(path):
        exec(code, names)
    return {k: v for k, v in names.items() if isinstance(v, int | str | list)}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_means_what_it_means_to_jupyter(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, wanted = CELLS[name]
    path = tmp_path / "one.ipynb"
    path.write_text(notebook(("code", text)))
    assert ran(path) == wanted
    if name in ("exported", "saved by Colab"):
        (tmp_path / "one.py").write_text(text)
        assert ran(tmp_path / "one.py") == wanted


def test_a_cell_that_is_not_python_is_named(tmp_path):
    path = tmp_path / "one.ipynb"
    path.write_text(notebook(("code", "x = 1\n"), ("code", "\nif x:\n    y = 2\n  z = 3\n")))
    with pytest.raises(SyntaxError) as refused:
        ran(path)
    assert refused.value.filename == f"{path}[cell 2]" and refused.value.lineno == 4


def test_a_file_that_a_notebook_writes_is_imported_and_the_disk_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "written_layers.py").write_text("SIZE = 1\n")
    path = tmp_path / "one.ipynb"
    path.write_text(notebook(
        ("code", "%%writefile written_layers.py\nSIZE = 3\n"),
        ("code", "%%writefile -a written_layers.py\nMORE = SIZE + 1\n"),
        ("code", "from written_layers import SIZE as x, MORE as y\n"),
    ))  # fmt: skip
    assert ran(path) == {"x": 3, "y": 4}
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["one.ipynb", "written_layers.py"]
    del sys.modules["written_layers"]


COLAB = """
import google.colab, os
import distutils
assert distutils.version.LooseVersion("1.14") < "2.0"
from google.colab import drive, files
google.colab.auth.authenticate_user()
for name in files.upload(): print(name)
import tensorflow.compat.v1 as tf
with tf.Session('grpc://' + os.environ['COLAB_TPU_ADDR']) as session: print(session.list_devices())
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
model.compile('adam', 'mse')
model.fit(tf.zeros([64, 3]), tf.zeros([64, 2]))
files.download('model.h5')
"""


def test_what_colab_gives_is_there(loaded):
    assert loaded(COLAB).subject.optimizer and "COLAB_TPU_ADDR" not in os.environ


LOOP = """
import tensorflow.compat.v1 as tf
estimator = tf.estimator.Estimator(lambda features: None, "nowhere")
def train():
    estimator.train(lambda: None, max_steps=10)
"""


@pytest.mark.parametrize(
    "waits",
    [
        "import threading\nworker = threading.Thread(target=train)\nworker.start()\n"
        "threading.Event().wait(99)",
        "import time\ntrain()\nwhile True: time.sleep(99)",
    ],
)
def test_a_program_that_waits_after_its_training_is_ended(waits, loaded, monkeypatch):
    monkeypatch.setattr(recorder, "PATIENCE", 0.5)
    port = loaded(LOOP + waits)
    assert (
        port.subject.model_dir == "nowhere"
        and "no other call within" in port.observed.not_checked[0]
    )
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


def test_a_program_that_comes_no_further_says_where_it_is(loaded, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS", 0.1)
    loaded(LOOP + "import threading\nthreading.Event().wait(1)\ntrain()\n")
    assert re.search(r"Dry run: running train.py \(.*, at train.py:7\)", capsys.readouterr().err)


CONTACTS = """
import tensorflow.compat.v1 as tf
resolver = tf.distribute.cluster_resolver.TPUClusterResolver("my-tpu", zone="z", project="p")
tf.Session.reset(resolver.get_master())
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
with tf.Session(resolver.master(), config=tf.ConfigProto()) as session:
    assert session.run(tf.constant(3)) == 3
"""


# A resolver of the program's own, which looks up its base in TensorFlow's private modules.
OWN_RESOLVER = """
from tensorflow.python.distribute.{module} import TPUClusterResolver
class Resolver(TPUClusterResolver):
    def __init__(self, *arguments, host=None, **options):
        super().__init__(*arguments, **options)
Resolver("my-tpu", zone="z", project="p").master()
"""


@pytest.mark.parametrize(
    "module", ["", "cluster_resolver", "cluster_resolver.tpu_cluster_resolver"]
)
def test_nothing_waits_for_the_address_of_a_tpu(module, loaded):
    first = OWN_RESOLVER.format(module=module) if module else ""
    port = loaded(first + CONTACTS + LOOP + "train()\n")
    assert port.subject.model_dir == "nowhere" and not port.observed.not_checked


UNDER_A_STRATEGY = """
import tensorflow.compat.v1 as tf
strategy = tf.distribute.experimental.TPUStrategy(tf.distribute.cluster_resolver.TPUClusterResolver("my-tpu"))
config = tf.estimator.RunConfig(train_distribute=strategy)
tf.estimator.Estimator(lambda features: None, "nowhere", config).train(lambda: None, max_steps=10)
"""


def test_an_estimator_under_a_tpu_strategy_is_called_no_tpu_estimator(judged):
    status, out = judged(UNDER_A_STRATEGY, "--main", "train.py", *CHEAP)
    assert status == 1 and "ERROR TPU109" in out and "train.py:5" in out, out


REWRITES = """
import tensorflow.compat.v1 as tf
with tf.Graph().as_default(), tf.Session("grpc://10.0.0.2:8470") as session:
    outputs = tf.tpu.rewrite(lambda x: x + 1.0, [tf.ones([8])])
    session.run(tf.tpu.initialize_system())
    session.run(outputs)
"""


def test_a_session_of_the_program_that_needs_a_tpu_says_what_to_hand_over(judged):
    status, out = judged(REWRITES, "--main", "train.py", *CHEAP)
    assert status == 2 and "needs a TPU" in out and "pass it the function" in out, out
    assert re.search(r"at train\.py:[56]", out), out


ON_HOST = """
def estimator(use_tpu):
    config = tf.estimator.tpu.RunConfig(save_checkpoints_steps=10, tpu_config=
        tf.estimator.tpu.TPUConfig(iterations_per_loop=10))
    return tf.estimator.tpu.TPUEstimator(
        model_fn, config=config, use_tpu=use_tpu, train_batch_size=64, eval_batch_size=64)
estimator(TRAINED).train(input_fn, max_steps=10)
estimator(EVALUATED).evaluate(lambda params: input_fn(params, False))
"""


@pytest.mark.parametrize(
    ("trained", "evaluated", "status", "said"),
    [
        (True, True, 1, "ERROR TPU133"),
        (False, False, 0, "NOTE TPU133"),  # its steps may depend on use_tpu
        (True, False, 0, "this runs on the host"),
    ],
)
def test_an_evaluation_without_steps_counts_where_a_tpu_does_it(
    trained, evaluated, status, said, judged
):
    text = ON_HOST.replace("TRAINED", str(trained)).replace("EVALUATED", str(evaluated))
    ended, out = judged(MODEL + text, "--main", "train.py", *CHEAP)
    assert ended == status and said in out, out
    assert ("train.py:33: `estimator(" in out) == ("TPU133" in said)


KERAS_3 = """
CHOICE
import keras
import numpy as np
model = keras.Sequential([keras.layers.Input([8]), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.zeros([64, 8], "float32"), np.zeros(64, "float32"), batch_size=64)
"""
CHOOSES = "import os; os.environ['KERAS_BACKEND'] = '{}'"


@pytest.mark.parametrize(
    ("choice", "status", "said"),
    [
        (CHOOSES.format("jax"), 0, "cores of v5e:2x4 (chosen for JAX)"),
        (CHOOSES.format("torch"), 2, "uses Keras on torch"),
        (CHOOSES.format("jax") + "; import tensorflow.keras as keras, sys; sys.modules['keras'] = keras",
         2, "write `import keras` instead"),
        (CHOOSES.format("tensorflow"), 0, "Keras 3 on TensorFlow; 8 cores of v2:2x2 (chosen for TensorFlow)"),
    ],
    ids=["jax", "torch", "tf.keras", "tensorflow"],
)  # fmt: skip
def test_keras_has_the_backend_that_the_program_chooses(choice, status, said, tmp_path):
    """In a process of its own, as Keras is imported once."""
    (tmp_path / "train.py").write_text(KERAS_3.replace("CHOICE", choice))
    ran = command(tmp_path, "--main", "train.py", *CHEAP)
    printed = " ".join((ran.stdout + ran.stderr).split())
    assert ran.returncode == status and said in printed, printed


def test_an_import_that_is_waited_for_is_any_other_import(tmp_path, monkeypatch):
    (tmp_path / "waited_for.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    met = []
    with on_import({"waited_for": met.append, "json": met.append}):
        assert met == [json]  # it is here already
        import waited_for
    assert met == [json, waited_for] and waited_for.x == 1
    assert waited_for.__spec__.origin == str(tmp_path / "waited_for.py")
    del sys.modules["waited_for"]


JAX = """
import functools, jax, jax.numpy as jnp, sys
rows, weights = jnp.ones([16, 8]), {"w": jnp.ones([8, 8]), "b": jnp.zeros([8])}
def loss_of(weights): return jnp.mean((rows @ weights["w"] + weights["b"]) ** 2)
def updated(weights): return jax.tree.map(lambda w, g: w - g, weights, jax.grad(loss_of)(weights))
"""


@pytest.mark.parametrize(
    "loop",
    [
        "step = jax.jit(updated)\nfor _ in range(3):\n    weights = step(weights)  # here",
        "weights = updated(weights)  # here".replace("updated(", "jax.value_and_grad(loss_of)("),
        "def train(w): return jax.lax.fori_loop(0, 9, lambda i, w: updated(w), w)\n"
        "jax.jit(train)(weights)  # here",
        "class Model:\n    @functools.partial(jax.jit, static_argnums=0)\n    def step(self, weights):\n"
        "        return updated(weights), 1.0\nweights, loss = Model().step(weights)  # here",
        "@functools.partial(jax.pmap, axis_name='i')\ndef step(w):\n"
        "    return jax.tree.map(lambda w, g: w - jax.lax.pmean(g, 'i'), w, jax.grad(loss_of)(w))\n"
        "step(jax.tree.map(lambda w: w[None], weights))  # here",
    ],
    ids=["a loop", "without jit", "a loop of JAX", "a method", "pmap"],
)
def test_a_program_of_jax_is_stopped_at_its_step(loop, loaded):
    made = "keys = jax.jit(jax.random.split)(jax.random.PRNGKey(1))\nprint(jax.jit(loss_of)(weights))\n"
    step = loaded(JAX + made + loop + "\nprint('its end')\n").data
    assert step.called_at.code.endswith("# here") and step.calls


def test_an_interrupt_waits_until_jax_is_imported(tmp_path):
    """It would end that in an abort, and in the place of the one word there would be a stack of C++."""
    (tmp_path / "train.py").write_text(
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'jaxlib':\n"
        "            os.kill(os.getpid(), signal.SIGINT); print('importing')\n"
        "sys.meta_path.insert(0, Finder())\n"
        "import jax\nprint('imported')\n"
    )
    ran = command(tmp_path, "--main", "train.py")
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "importing\n", "\ninterrupted\n")


def test_a_program_of_jax_that_trains_nothing_is_told_what_is_judged(loaded):
    with pytest.raises(
        target.CannotJudge, match="no function of jax.jit.*that trains.*--step NAME"
    ):
        loaded(JAX + "print(loss_of(weights))")


def test_jax_beside_another_framework_is_no_training(loaded):
    port = loaded(
        JAX + "rows = jax.jit(jnp.sum)(rows)\n" + LOOP + "train()\njax.grad(loss_of)(weights)\n"
    )
    assert port.subject.model_dir == "nowhere"
    assert "What it computes with JAX: loss_of (" in port.observed.not_checked[0]


def test_trainings_that_follow_the_first_limit_the_verdict(judged, loaded):
    scaler = "class Scaler:\n    def fit(self, x): return self\nScaler().fit(data)\n"
    more = "if len(data) > 1e9:\n    model.fit(data)\nother = model\nother.fit(x=data, epochs=9)\n"
    status, said = judged(
        IN_COLAB + scaler + "model.fit(data)\n" + more, "--main", "train.py", *CHEAP
    )
    first = " ".join(said.split("\n\n")[0].split())
    assert status == 0 and "Ready for v2:2x2, as far as was checked" in first
    assert (
        "Only the first training was judged, not fit at train.py:21, fit at train.py:23." in first
    )
    status, said = judged(IN_COLAB + scaler + "model.fit(data)\n", "--main", "train.py", *CHEAP)
    assert status == 0 and "Only the first training" not in said
    port = loaded(notebook(
        ("code", IN_COLAB), ("code", "%%time\nmodel.fit(data, epochs=2)\n"),
        ("code", "!ls\nmodel.fit(data)\n"), ("code", "this is no Python\n"),
    ), "train.ipynb")  # fmt: skip
    assert port.observed.not_covered == ["fit at train.ipynb[cell 3]:2"]


SEVERAL = """
def made(scale, faulty=False, rate=0.1):
    def scaled_fn(features, labels, mode, params):
        features = tf.py_func(abs, [features], tf.float32) if faulty else features * scale
        return model_fn(features, labels, mode, params)
    config = tf.estimator.tpu.RunConfig(save_checkpoints_steps=50, tpu_config=
        tf.estimator.tpu.TPUConfig(iterations_per_loop=50))
    return tf.estimator.tpu.TPUEstimator(
        scaled_fn, config=config, params={"rate": rate}, train_batch_size=64, eval_batch_size=64)


if __name__ == "__main__":
    for _ in range(2):
        made(1).train(input_fn, max_steps=10)
    made(1, rate=0).evaluate(input_fn, steps=4)
"""


@pytest.mark.parametrize(
    ("second", "others"),
    [
        ("", []),
        ("    made(1, faulty=True).train(input_fn, max_steps=5)\n", ["train(max_steps=5)"]),
        ("    made(2).train(input_fn, max_steps=5)\n", ["train(max_steps=5)"]),
    ],
)
def test_an_estimator_that_was_not_judged_is_named(second, others, loaded):
    port = loaded(MODEL + SEVERAL + second)
    assert port.options["eval_input_fn"] and len(port.observed.not_judged) == len(others)
    for name, call in zip(port.observed.not_judged, others, strict=True):
        assert re.search(r"model_fn of train\.py:\d+, in scaled_fn: ", name) and call in name


def test_a_program_whose_second_estimator_is_wrong_is_not_ready(judged):
    second = "    made(1, faulty=True).train(input_fn, max_steps=5)\n"
    status, out = judged(MODEL + SEVERAL + second, "--main", "train.py", *CHEAP)
    assert status == 2 and "No verdict: nothing was found in what was judged" in out


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("tf.io.gfile.glob('gs://no-such-bucket-of-ours/x*')", "the data are at gs://no-such-bucket-of-ours"),
        ("import inspect; inspect.getargspec(abs)", "it stops here, under Python 3"),
        ("raise Exception('URL fetch failure on https://x.org/mnist.npz: None')", "cannot reach that"),
        ("raise SystemExit(0)", "in input_fn"),
    ],
)  # fmt: skip
def test_a_dry_run_that_judged_nothing_has_no_verdict(line, reason, judged):
    text = MODEL.replace(
        "def input_fn(params, training=True):\n", f"def input_fn(params):\n    {line}\n"
    )
    status, out = judged(text + PORT, "train.py:port", "--stages", "trace,read,feed")
    assert status == 2 and "No verdict: trace" in out, out
    assert reason in out and "TPU199" not in out and "TPU503" not in out


@pytest.mark.parametrize(
    "line",
    ["from tensorflow.contrib import layers", "import tensorflow\ntensorflow.contrib.layers"],
)
def test_a_program_that_needs_tf_contrib_hears_of_the_flag(line, judged):
    status, out = judged(line, "--main", "train.py")
    assert status == 2 and "Give the dry run --contrib" in out and "not installed" not in out, out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises.py:made", ["IndexError", "raises.py:3"]),
        ("raises.py:nothing", ["no function nothing"]),
        ("raises.py", ["MODULE:FUNCTION"]),
        ("absent.py:made", ["no file", "absent.py"]),
        ("absent:made", ["ModuleNotFoundError", "'absent'"]),
        ("train.ipynb:made", ["is a notebook: --main train.ipynb"]),
        ("returns.py:one", ["(estimator, input_fn)", "it returned 7"]),
        ("returns.py:two", ["TPUEstimator"]),
        ("ends.py:made", ["SystemExit", "ends.py:1"]),
    ],
)
def test_a_function_that_cannot_be_judged_is_told_with_its_place(name, said, judged, tmp_path):
    for file, text in {
        "raises": "def made():\n    values = []\n    return values[3]\n\nnothing = 3\n",
        "returns": "def one():\n    return 7\n\ndef two():\n    return 7, 8\n",
        "ends": "raise SystemExit(0)\n",
    }.items():
        (tmp_path / f"{file}.py").write_text(text)
    status, words = judged("", name)
    assert status == 2 and all(word in words for word in said)


@pytest.mark.parametrize(
    ("name", "said"), [(".", "is a folder: name"), ("./no", "there is no file")]
)
def test_a_folder_is_told_from_a_missing_file(name, said, judged):
    status, out = judged("", "--main", name)
    assert status == 2 and said in " ".join(out.split())


def test_a_function_may_bring_options_and_has_the_flags_of_its_module(tmp_path):
    """As the main of the port, which would read them from its own command line, does not run."""
    (tmp_path / "json.py").write_text(
        "from absl import flags\n"
        "flags.DEFINE_integer('width_of_a_test', 32, 'of the hidden layer')\n"
        "def port():\n    return flags.FLAGS.width_of_a_test, None, {'steps': 1}\n"
    )
    loaded = target.load(f"{tmp_path}/json.py:port")
    assert loaded.subject == 32 and loaded.options == {"steps": 1}
    assert sys.modules["json"] is json, "a file called like one of Python's modules takes its place"


def test_settings_refused_while_the_estimator_is_made_are_a_finding(
    judged, tmp_path, monkeypatch, capsys
):
    arguments = "train.py:reserved_key", "--json", "out.json"
    assert judged(MODEL + PORT, *arguments)[0] == 1
    written = json.loads((tmp_path / "out.json").read_text())
    [found] = [finding for stage in written["stages"] for finding in stage["findings"]]
    assert found["rule"] == "TPU105" and "train.py:" in found["where"]
    assert found["message"].startswith("ValueError")

    def refused(path, text):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(dry_run_command.files, "write", refused)
    assert end_of(lambda: dry_run_command.main(arguments), 2) == 2
    said = capsys.readouterr()
    assert "TPU105" in said.out and "out.json: Permission denied. Give another path" in said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "MODULE:FUNCTION"),
        (["a:b", "--stages", "trace,smell"], "smell"),
        (["a:b", "--json", "no/such/folder/out.json"], "cannot be written: name a file in a folder"),
        (["a:b", "--html="], "the path is empty"),
        (["--rule", "TPU999"], "TPU101"),
        (["a:b", "--topology", "v9:2x2"], "not a TPU topology"),
        (["a:b", "--topolgy", "v2:2x2"], "unrecognized arguments: --topolgy"),
        (["a:b", "--ignore", "XYZ"], "not a rule XYZ (--rules"),
        (["a:b", "--ignore", "TPU2O1"], "there is not a rule TPU2O1"),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_end_with_2(capsys, arguments, said):
    with pytest.raises(SystemExit) as end:
        dry_run_command.main(arguments)
    assert end.value.code == 2 and said in capsys.readouterr().err


def test_rules_are_listed_and_shown(capsys):
    assert dry_run_command.main(["--rules"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(rules.catalogue())
    assert dry_run_command.main(["--rule", "tpu501"]) == 0
    assert rules.page("TPU501") in capsys.readouterr().out


def test_findings_end_with_1_and_reach_json_and_html(judged, tmp_path):
    wrong = (MODEL + PORT).replace("drop_remainder=True", "drop_remainder=False")
    status, said = judged(
        wrong, "train.py:port", *CHEAP, "--json", "out.json", "--html", "out.html"
    )
    assert status == 1 and "TPU101" in said and "Not ready" in said
    assert json.loads((tmp_path / "out.json").read_text())["verdict"] == "findings"
    assert "TPU101" in (tmp_path / "out.html").read_text()


def test_a_port_that_is_ready_ends_with_0(tmp_path):
    (tmp_path / "train.py").write_text((MODEL + PORT).replace("OPTIMIZER", RIGHT))
    ran = command(tmp_path, "train:port", "--steps", "2")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.startswith("Ready for v2:2x2") and "NOT CHECKED" in ran.stdout
    assert not [line for line in ran.stderr.splitlines() if not line.startswith("Dry run: ")]
