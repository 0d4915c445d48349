"""The flowers model on JAX: the same Keras lines, another backend; on virtual cores and compiled for TPUs.

    python -m lab_utils.flowers.jax_port --weights flowers.weights.h5 --batch batch.npz --output jax.json \\
        [--topology v5e:2x2]

Runs in a process of its own: Keras takes one backend a process, JAX its number of devices.
"""

import argparse
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils import runtime
from lab_utils.common import command

VIRTUAL = 8
PER_CORE = 128
ENVIRONMENT = runtime.NO_CHIP | {
    "KERAS_BACKEND": "jax",
    "JAX_PLATFORMS": "cpu",
    # On the CPU a step is compiled for one run: optimising it takes longer than running it.
    "XLA_FLAGS": f"--xla_force_host_platform_device_count={VIRTUAL} "
    "--xla_llvm_disable_expensive_passes=true --xla_backend_optimization_level=0",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}


def train_step(model: Any, optimizer: Any, loss: Any) -> tuple[Callable, tuple]:
    """One step as a pure function of the state, as jax.jit wants it.

    Returns:
        `step(state, images, targets) -> (loss, state)` and the first state, a tuple of lists of arrays:
        trained weights, other weights, the optimizer's slots. images: uint8 [B, S, S, 3]; targets: float32
        [B, classes], one-hot. Where the batch is split over devices, XLA sums the gradients over them: the
        step of the whole batch, batch statistics included.
    """
    import jax

    optimizer.build(model.trainable_variables)

    def loss_of(trained, others, images, targets):
        logits, others, penalties = model.stateless_call(
            trained, others, images, training=True, return_losses=True
        )
        return loss(targets, logits) + sum(penalties), others

    def step(state, images, targets):
        trained, others, slots = state
        (value, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            trained, others, images, targets
        )
        trained, slots = optimizer.stateless_apply(slots, gradients, trained)
        return value, (trained, others, slots)

    variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    return step, tuple([variable.value for variable in group] for group in variables)


def data_parallel(step: Callable, devices: list[Any]) -> Any:
    """`step` jitted for those devices: the state on each of them, the batch split over them."""
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(devices), ("batch",))
    everywhere, split = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("batch",)))
    return jax.jit(
        step, in_shardings=(everywhere, split, split), out_shardings=(everywhere, everywhere)
    )


def compiled_for(topology: str, step: Callable, state: tuple, batch: tuple) -> dict[str, Any]:
    """The step compiled ahead of time by a TPU's own compiler; the TPU need not be here.

    Args:
        topology: such as "v5e:2x2", of at most VIRTUAL cores.
        step, state: of `train_step`.
        batch: images and targets; each core gets PER_CORE of their kind.

    Returns:
        "cores", "flops" of a core's step and "all_reduces" in the program, computed by the TPU compiler;
        "images_per_second", at most, of all cores, and what it is "bound" by, from quoted peaks.
    """
    import jax

    from lab_utils.dry_run.inspect import compile_stablehlo
    from lab_utils.runtime import chips

    chip, cores = chips.parse(topology)
    examples = PER_CORE * cores
    batch = [jax.ShapeDtypeStruct((examples, *part.shape[1:]), part.dtype) for part in batch]
    stand_ins = data_parallel(step, jax.devices()[:cores])
    lowered = stand_ins.trace(state, *batch).lower(lowering_platforms=("tpu",))
    program = compile_stablehlo(lowered.as_text(), topology)
    cost = program["cost"]
    bound = chip.roofline(cost["flops"], cost["bytes"])
    return {
        "cores": cores,
        "flops": cost["flops"],
        "all_reduces": len(re.findall(r" all-reduce(-start)?\(", program["hlo"])),
        "images_per_second": bound.examples_per_second(examples),
        "bound": bound.bound_by,
    }


def on_virtual_cores(step: Callable, state: tuple, batch: tuple) -> dict[str, Any]:
    """One step on one device and on VIRTUAL of them, with the same batch; measured here.

    Returns:
        "losses", and "difference": the largest difference of a weight over the largest weight.
    """
    import jax

    devices = jax.devices()[:VIRTUAL]
    one, state_one = data_parallel(step, devices[:1])(state, *batch)
    many, state_many = data_parallel(step, devices)(state, *batch)
    largest = max(np.abs(weight).max() for weight in state_one[0])
    pairs = zip(state_one[0], state_many[0], strict=True)
    difference = max(np.abs(np.asarray(a) - np.asarray(b)).max() for a, b in pairs)
    return {
        "devices": len(devices),
        "losses": [float(one), float(many)],
        "difference": float(difference / largest),
    }


def main() -> int:
    """Runs the command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.jax_port",
        description="The flowers model on JAX, with weights that were trained on TensorFlow.",
    )
    for name, text in {
        "weights": "saved by model.save_weights",
        "batch": ".npz with uint8 images and int labels",
        "output": "JSON file to write",
    }.items():
        parser.add_argument(f"--{name}", type=Path, required=True, help=text)
    parser.add_argument("--classes", type=int, default=5, help="default: 5")
    parser.add_argument("--topology", action="append", default=[], help="may be repeated")
    arguments = parser.parse_args()
    os.environ.update(ENVIRONMENT)

    from lab_utils.flowers import keras_model

    with np.load(arguments.batch) as batch:
        images, labels = batch["images"], batch["labels"]
    targets = np.eye(arguments.classes, dtype=np.float32)[labels]
    size = images.shape[1]

    def loaded(**options):
        model = keras_model.network(size, arguments.classes, dropout=0.0, **options)
        model.load_weights(arguments.weights)
        return model

    exact = loaded()
    step, state = train_step(exact, keras_model.optimizer(0.05, 1000), keras_model.loss())
    result = {
        "logits": np.asarray(exact(images, training=False)).tolist(),
        "virtual": on_virtual_cores(step, state, (images, targets)),
        "compiled": {},
    }
    mixed = loaded(dtype="mixed_bfloat16")
    step, state = train_step(mixed, keras_model.optimizer(0.05, 1000), keras_model.loss())
    for topology in arguments.topology:
        print(f"compiling for {topology}", flush=True)
        result["compiled"][topology] = compiled_for(topology, step, state, (images, targets))
    arguments.output.write_text(json.dumps(result, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    command.run(main)
