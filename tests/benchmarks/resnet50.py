"""A ResNet-50 training step in bfloat16, 128 images a core, by the TPU compiler beside published figures.

    python tests/benchmarks/resnet50.py [--topology v2:2x2]

The figures need not agree to the digit (a compiler counts what it emits, and fuses); they must be of a size.
"""

import argparse
import sys
import tempfile

from lab_utils.dry_run import dry_run
from lab_utils.estimator import tf

BATCH = 128  # a core
MULTIPLY_ADDS = 3.8e9  # forward, an image: He et al. 2015, arXiv:1512.03385, table 1
PARAMETERS = 25_557_032  # torchvision's page of resnet50, read 2026-11-21
THROUGHPUT = 3186  # images/s on a v2-8, batch 1024, bfloat16: RiseML's comparison of 2018-04, as quoted since


def model_fn(features, labels, mode, params):
    """ResNet-50 of tf_keras with Momentum, as a port to TPUEstimator has it."""
    v1 = tf.compat.v1
    tf.keras.mixed_precision.set_global_policy(params.get("policy", "mixed_bfloat16"))
    network = tf.keras.applications.ResNet50(weights=None)
    probabilities = tf.cast(network(features, training=mode == "train"), tf.float32)
    tf.keras.mixed_precision.set_global_policy("float32")
    loss = tf.reduce_mean(tf.keras.losses.sparse_categorical_crossentropy(labels, probabilities))
    optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
    if params["use_tpu"]:
        optimizer = v1.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(network.get_updates_for(None) + network.get_updates_for(features)):
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
    return v1.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(params):
    """Blank images: the compiler asks for shapes alone."""
    images, labels = tf.zeros([224, 224, 3], tf.bfloat16), tf.zeros([], tf.int32)
    data = tf.data.Dataset.from_tensors((images, labels)).repeat()
    return data.batch(params["batch_size"], drop_remainder=True)


def main() -> int:
    """Prints the comparison; returns 1 where the program does not fit or is not of the published size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topology", default="v2:2x2")
    topology = parser.parse_args().topology
    from lab_utils.runtime import chips

    cores = chips.cores(topology)
    tpu = tf.compat.v1.estimator.tpu
    config = tpu.RunConfig(model_dir=tempfile.mkdtemp(), tpu_config=tpu.TPUConfig(100))
    port = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=BATCH * cores)
    report = dry_run(port, input_fn, topology, stages=("trace", "read", "compile"))
    figures = {figure.name: figure for where, figure in report.figures() if "eval" not in where}
    if "FLOPs a step" not in figures:
        print(report)
        return 1
    flop = figures["FLOPs a step"].value / BATCH
    published = 2 * 3 * MULTIPLY_ADDS  # two FLOP a multiply-add; backward costs twice the forward
    used = sum(figures[name].value for name in ("arguments", "temporaries", "outputs", "code"))
    # float32 with Momentum's slot, and a batch of bfloat16 images.
    arguments = PARAMETERS * 4 * 2 + BATCH * 224 * 224 * 3 * 2
    step = figures["roofline bound on a step"].value
    print(report.verdict_sentence)
    rows = [
        ("FLOP an image, training", flop / 1e9, published / 1e9, "G"),
        (
            "weights, slots and images",
            figures["arguments"].value / 2**20,
            arguments / 2**20,
            "MiB",
        ),
        (
            "memory of a core",
            used / 2**30,
            figures["memory that a program may use"].value / 2**30,
            "GiB",
        ),
        ("images/s of the whole TPU, at most", BATCH * cores / step, THROUGHPUT, "v2-8 measured"),
    ]
    print(f"{'':38}{'compiler':>12}{'published':>12}")
    for name, computed, quoted, unit in rows:
        print(f"{name:38}{computed:12.1f}{quoted:12.1f}  {unit}")
    print(
        "compiler: computed by the TPU compiler. published: see the constants at the top of this file."
    )
    return 0 if 0.8 < flop / published < 1.25 and report.verdict != "could not run" else 1


if __name__ == "__main__":
    sys.exit(main())
