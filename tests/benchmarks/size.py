"""Peak memory and seconds of whole dry runs of models of a real size, with an empty cache.

    python tests/benchmarks/size.py [resnet50] [bert] [--topology v2:2x2] [--most SECONDS] [--output FILE]

The dry run is a process of its own, and its whole tree is looked at several times a second: memory is the
sum of PSS (what processes share counts once), the largest of each phase. The compiler's seconds are those in
which its process lived.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psutil
import resnet50 as published

EVERY = 0.25  # seconds between two looks
SEQUENCE, VOCABULARY, HIDDEN, HEADS, LAYERS = 128, 30_522, 768, 12, 12  # BERT-base
PREDICTIONS = 20  # masked positions of a text


def resnet50() -> tuple:
    """ResNet-50 on 224 pixels, 128 images a core, trained and evaluated."""
    return _estimator(_resnet_model_fn, batch=128), published.input_fn


def bert() -> tuple:
    """Masked language modelling with BERT-base, 32 texts of 128 words a core."""
    return _estimator(_bert_model_fn, batch=32), _texts


def _estimator(model_fn, batch: int):
    from lab_utils.estimator import tpu
    from lab_utils.runtime import chips

    batch *= chips.cores(os.environ["SIZE_TOPOLOGY"])
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp(), tpu_config=tpu.TPUConfig(100))
    return tpu.TPUEstimator(
        model_fn, config=config, train_batch_size=batch, eval_batch_size=batch, use_tpu=True
    )


def _resnet_model_fn(features, labels, mode, params):
    from lab_utils.estimator import tf, tpu

    if mode == "train":
        return published.model_fn(features, labels, mode, params)
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    probabilities = tf.keras.applications.ResNet50(weights=None)(features, training=False)
    tf.keras.mixed_precision.set_global_policy("float32")
    losses = tf.keras.losses.sparse_categorical_crossentropy(
        labels, tf.cast(probabilities, tf.float32)
    )
    return tpu.TPUEstimatorSpec(mode, loss=tf.reduce_mean(losses))


def _texts(params):
    from lab_utils.estimator import tf

    def text(seed):
        draw = tf.random.stateless_uniform
        words = draw([SEQUENCE], [1, seed], 0, VOCABULARY, tf.int32)
        places = draw([PREDICTIONS], [2, seed], 0, SEQUENCE, tf.int32)
        return {"words": words, "places": places}, tf.gather(words, places)

    data = tf.data.Dataset.range(2**31 - 1).map(lambda n: text(tf.cast(n, tf.int32)))
    return data.batch(params["batch_size"], drop_remainder=True)


def _bert_model_fn(features, labels, mode, params):
    from lab_utils.estimator import tf, tpu, v1

    training = mode == "train"

    def variable(name, shape):
        return v1.get_variable(
            name, shape, initializer=v1.truncated_normal_initializer(stddev=0.02)
        )

    def dense(x, size, name, activation=None):
        weights = variable(name + "/kernel", [x.shape[-1], size])
        bias = v1.get_variable(name + "/bias", [size], initializer=v1.zeros_initializer())
        x = tf.einsum("...i,ij->...j", x, tf.cast(weights, x.dtype)) + tf.cast(bias, x.dtype)
        return activation(x) if activation else x

    def norm(x, name):
        scale = v1.get_variable(name + "/scale", [HIDDEN], initializer=v1.ones_initializer())
        x = tf.cast(x, tf.float32)
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return tf.cast((x - mean) * tf.math.rsqrt(variance + 1e-6) * scale, tf.bfloat16)

    def drop(x):
        return tf.nn.dropout(x, 0.1) if training else x

    table = variable("words", [VOCABULARY, HIDDEN])
    x = tf.gather(table, features["words"]) + variable("places", [SEQUENCE, HIDDEN])
    x = drop(norm(x, "embedded"))
    for layer in range(LAYERS):
        with v1.variable_scope(f"layer_{layer}"):
            query, key, value = (
                tf.reshape(dense(x, HIDDEN, name), [-1, SEQUENCE, HEADS, HIDDEN // HEADS])
                for name in ("query", "key", "value")
            )
            scores = tf.einsum("bqhd,bkhd->bhqk", query, key) * (HIDDEN // HEADS) ** -0.5
            seen = tf.einsum("bhqk,bkhd->bqhd", drop(tf.nn.softmax(scores)), value)
            seen = tf.reshape(seen, [-1, SEQUENCE, HIDDEN])
            x = norm(x + drop(dense(seen, HIDDEN, "out")), "attended")
            inner = dense(x, 4 * HIDDEN, "inner", tf.nn.gelu)
            x = norm(x + drop(dense(inner, HIDDEN, "outer")), "done")
    masked = tf.gather(x, features["places"], axis=1, batch_dims=1)
    logits = tf.einsum("bpi,vi->bpv", masked, tf.cast(table, tf.bfloat16))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=labels, logits=tf.cast(logits, tf.float32)
    )
    loss = tf.reduce_mean(losses)
    optimizer = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(1e-4))
    train_op = optimizer.minimize(loss, v1.train.get_global_step()) if training else None
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def measure(name: str, topology: str, folder: Path, most: float) -> dict:
    """One dry run: seconds of each stage and of each sort of child, and bytes at most in each phase.

    After `most` seconds it is ended: there is no verdict then, and no stages.
    """
    report, seconds, peaks = folder / "report.json", defaultdict(float), defaultdict(int)
    start = time.perf_counter()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "lab_utils.dry_run", f"{Path(__file__).resolve()}:{name}"),
            *("--topology", topology, "--json", report),
        ],
        env=os.environ | {"XDG_CACHE_HOME": str(folder), "SIZE_TOPOLOGY": topology},
        stdout=subprocess.DEVNULL,
    )
    before, parent = start, psutil.Process(process.pid)
    while process.poll() is None:
        time.sleep(EVERY)
        held, jobs = 0, set()
        for each in [parent, *parent.children(recursive=True)]:
            try:
                held += each.memory_full_info().pss
                jobs |= {_job(each.cmdline())} - {""}
            except (psutil.Error, OSError):
                continue  # it has just ended
        now = time.perf_counter()
        for job in jobs:
            seconds[job] += now - before
        before = now
        phase = " and ".join(sorted(jobs)) or "TensorFlow's process alone"
        peaks[phase] = max(peaks[phase], held)
        if now - start > most:
            process.terminate()
            process.wait()
    whole = time.perf_counter() - start
    said = json.loads(report.read_text()) if report.exists() else {"verdict": "ended", "stages": []}
    stages = {each["stage"]: each["seconds"] for each in said["stages"]}
    details = {each["stage"]: each["detail"] for each in said["stages"]}
    return {
        "model": name, "verdict": said["verdict"], "stages": stages, "details": details, "whole": whole,
        "children": dict(seconds), "peaks": dict(peaks), "load": os.getloadavg()[1],
    }  # fmt: skip


def _job(command: list[str]) -> str:
    """What a child of the dry run does: "compile" or "run"; "" for any other process."""
    if "lab_utils.dry_run.private.child" not in command:
        return ""
    request = Path(command[-1]) / "request.json"
    return json.loads(request.read_text())["job"] if request.exists() else ""


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["resnet50", "bert"])
    parser.add_argument("--topology", default="v2:2x2")
    parser.add_argument("--most", type=float, default=3600.0, help="seconds for a model")
    parser.add_argument("--output", type=Path)
    flags = parser.parse_args()
    for name in flags.models:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(name, flags.topology, Path(folder), flags.most)
        stages = ", ".join(f"{stage} {took:.1f} s" for stage, took in found["stages"].items())
        beside = found["whole"] - found["children"].get("compile", 0.0)
        print(
            f"{name} on {flags.topology}: {found['verdict']}; {stages}; whole {found['whole']:.0f} s, "
            f"beside the compiler's processes {beside:.0f} s; load {found['load']:.1f} (measured here)",
            flush=True,
        )
        for phase, peak in found["peaks"].items():
            print(f"  at most {peak / 2**30:.2f} GiB during {phase}")
        for stage, detail in found["details"].items():
            print(f"  {stage}: {detail}")
        if flags.output:
            with flags.output.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
