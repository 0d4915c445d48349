"""Lab 11: shardings by hand, a step as a function, FSDP, a loop that resumes, somebody's shard_map."""

import re

from wrong_answers import Mutant, Right, Wrong

_MIRA = r"""
%%writefile mira.py
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

RATE = 0.1


def loss_of(weights, x, y):
    return jnp.mean((x @ weights["slope"] + weights["level"] - y) ** 2)


def make_step(devices):
    mesh = Mesh(np.array(devices), ("cores",))
    examples, whole = PartitionSpec("cores"), PartitionSpec()
STEP
    return step
"""


def _mira(step: str) -> str:
    """The program with that step, as a cell."""
    lines = "\n".join(f"    {line}".rstrip() for line in step.strip("\n").splitlines())
    return _MIRA.replace("STEP", lines)


def _mapped(body: str, options: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return _mira(f"""
@jax.jit
@functools.partial(
    jax.shard_map, mesh=mesh, in_specs=(whole, examples, examples), out_specs=(whole, whole){options}
)
def step(weights, x, y):
{lines}
    return jax.tree.map(lambda w, g: w - RATE * g, weights, gradients), loss
""")


_SICK = """
loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
gradients = jax.lax.pmean(gradients, "cores")
loss = jax.lax.pmean(loss, "cores")
"""
ANSWERS = {
    "11a": [
        # Specs in a table
        Right(
            r"""
def layer_shardings(mesh):
    specs = {
        "examples": (PartitionSpec("cores", None), PartitionSpec(None, None)),
        "inputs": (PartitionSpec(None, "cores"), PartitionSpec("cores", None)),
        "outputs": (PartitionSpec(), PartitionSpec(None, "cores")),
    }
    return {way: [NamedSharding(mesh, spec) for spec in pair] for way, pair in specs.items()}
"""
        ),
        # A helper with the mesh's own name of the axis
        Right(
            r"""
def layer_shardings(mesh):
    (name,) = mesh.axis_names
    on = lambda *axes: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
    return dict(outputs=(on(), on(None, name)), examples=(on(name), on()), inputs=(on(None, name), on(name)))
"""
        ),
        # Another mesh of the same devices
        Right(
            r"""
def layer_shardings(mesh):
    again = Mesh(mesh.devices.reshape(2, -1), ("a", "b"))
    both, P = ("a", "b"), PartitionSpec
    return {
        "examples": (NamedSharding(again, P(both)), NamedSharding(again, P())),
        "inputs": (NamedSharding(again, P(None, both)), NamedSharding(again, P(both))),
        "outputs": (NamedSharding(again, P()), NamedSharding(again, P(None, both))),
    }
"""
        ),
        # Specs without a mesh
        Wrong(
            r"""
def layer_shardings(mesh):
    P = PartitionSpec
    return {"examples": (P("cores"), P()), "inputs": (P(None, "cores"), P("cores")), "outputs": (P(), P(None, "cores"))}
""",
            "should be a sharding: NamedSharding(mesh, spec)",
        ),
        # One way forgotten
        Mutant(', "outputs": (whole, columns)', "", "missing: outputs"),
        # Examples and inputs mixed up
        Mutant(
            '"examples": (rows, whole)',
            '"examples": (columns, whole)',
            'holds of x, which has the shape [32, 16], in "examples"',
        ),
        # Only x
        Wrong(
            r"""
def layer_shardings(mesh):
    rows, columns = NamedSharding(mesh, PartitionSpec("cores")), NamedSharding(mesh, PartitionSpec(None, "cores"))
    return {"examples": rows, "inputs": columns, "outputs": columns}
""",
            "should return two shardings, of x and of w",
        ),
        # Both arrays split for the examples
        Mutant(
            '"examples": (rows, whole)',
            '"examples": (rows, rows)',
            'holds of w, which has the shape [16, 64], in "examples"',
        ),
    ],
    "11b": [
        # Dicts by hand
        Right(
            r"""
def train_step(state, images, labels):
    (loss, averages), slopes = jax.value_and_grad(loss_of, has_aux=True)(
        state["weights"], state["averages"], images, labels)
    rate = 0.5 * RATE * (1 + jnp.cos(np.pi * state["step"] / STEPS))
    weights, momenta = {}, {}
    for name, slope in slopes.items():
        momenta[name] = 0.9 * state["momenta"][name] + slope
        weights[name] = state["weights"][name] - rate * slope - rate * 0.9 * momenta[name]
    return dict(state, step=state["step"] + 1, weights=weights, averages=averages, momenta=momenta), loss
"""
        ),
        # jitted already, the state unpacked
        Right(
            r"""
@jax.jit
def train_step(state, images, labels):
    step, weights, averages, momenta = (state[k] for k in ("step", "weights", "averages", "momenta"))

    def mean_loss(weights):
        return loss_of(weights, averages, images, labels)

    (loss, averages), gradients = jax.value_and_grad(mean_loss, has_aux=True)(weights)
    momenta = jax.tree.map(lambda m, g: m * 0.9 + g, momenta, gradients)
    move = jax.tree.map(lambda m, g: g + m * 0.9, momenta, gradients)
    rate = jnp.float32(RATE) * (0.5 + 0.5 * jnp.cos(step / STEPS * jnp.pi))
    return {
        "step": step + 1,
        "weights": jax.tree.map(lambda w, u: w - rate * u, weights, move),
        "averages": averages,
        "momenta": momenta,
    }, loss
"""
        ),
        # The loss and the gradients apart
        Right(
            r"""
def train_step(state, images, labels):
    given = (state["weights"], state["averages"], images, labels)
    gradients, averages = jax.grad(loss_of, has_aux=True)(*given)
    loss, _ = loss_of(*given)
    new = {"step": state["step"] + 1, "averages": averages}
    new["momenta"] = {k: 0.9 * state["momenta"][k] + gradients[k] for k in gradients}
    rate = RATE * jnp.square(jnp.cos(jnp.pi * state["step"] / STEPS / 2))
    new["weights"] = {k: w - rate * (gradients[k] + 0.9 * new["momenta"][k]) for k, w in state["weights"].items()}
    return new, loss
"""
        ),
        # The state changed in place
        Wrong(
            r"""
def train_step(state, images, labels):
    (loss, averages), gradients = jax.value_and_grad(loss_of, has_aux=True)(
        state["weights"], state["averages"], images, labels)
    rate = RATE * 0.5 * (1 + jnp.cos(jnp.pi * state["step"] / STEPS))
    for name, gradient in gradients.items():
        state["momenta"][name] = 0.9 * state["momenta"][name] + gradient
        state["weights"][name] -= rate * (gradient + 0.9 * state["momenta"][name])
    return {"step": state["step"] + 1, "weights": state["weights"], "averages": averages}, loss
""",
            "missing: momenta",
        ),
        # The rate in Python
        Wrong(
            r"""
import math

def train_step(state, images, labels):
    (loss, averages), gradients = jax.value_and_grad(loss_of, has_aux=True)(
        state["weights"], state["averages"], images, labels)
    rate = RATE * 0.5 * (1 + math.cos(math.pi * state["step"] / STEPS))
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, state["momenta"], gradients)
    weights = jax.tree.map(lambda w, g, m: w - rate * (g + 0.9 * m), state["weights"], gradients, momenta)
    return {"step": state["step"] + 1, "weights": weights, "averages": averages, "momenta": momenta}, loss
""",
            "jax.jit cannot trace the step",
        ),
        # The old momentum in the update
        Mutant(
            'state["weights"], gradients, momenta\n',
            'state["weights"], gradients, state["momenta"]\n',
            "How far the weight of",
        ),
        # Uphill
        Mutant("w - rate *", "w + rate *", "The sum of all weights"),
        # The loss first
        Mutant("return new, loss", "return loss, new", "The next state should be a dict"),
        # The gradients summed over the examples
        Mutant(
            "momenta = jax.tree.map(lambda m, g: 0.9 * m + g,",
            "momenta = jax.tree.map(lambda m, g: 0.9 * m + 6 * g,",
            "How far the momentum of",
        ),
    ],
    "11c": [
        # Names of arguments, one sharding by position
        Right(
            r"""
def data_parallel(step, mesh, state):
    on = lambda *axes: NamedSharding(mesh, PartitionSpec(*axes))
    return jax.jit(step, donate_argnums=(0,), in_shardings=(state, on("cores"), on("cores")), out_shardings=(state, on()))
"""
        ),
        # Donated by name, the loss left to the compiler
        Right(
            r"""
def data_parallel(step, mesh, state):
    def run(state, images, labels):
        return step(state, images, labels)

    shares = jax.sharding.NamedSharding(mesh, PartitionSpec("cores"))
    return jax.jit(run, in_shardings=(state, shares, shares), out_shardings=(state, None), donate_argnames="state")
"""
        ),
        # Constraints within the step
        Right(
            r"""
def data_parallel(step, mesh, state):
    shares = NamedSharding(mesh, PartitionSpec("cores"))

    def put(tree):
        if isinstance(state, NamedSharding):
            return jax.lax.with_sharding_constraint(tree, jax.tree.map(lambda _: state, tree))
        return jax.lax.with_sharding_constraint(tree, state)

    def split(now, images, labels):
        images, labels = (jax.lax.with_sharding_constraint(part, shares) for part in (images, labels))
        new, loss = step(put(now), images, labels)
        return put(new), loss

    return jax.jit(split, donate_argnums=0)
"""
        ),
        # The features are split
        Mutant(
            'examples = NamedSharding(mesh, PartitionSpec("cores"))',
            'examples = NamedSharding(mesh, PartitionSpec(None, "cores"))',
            "what each device gets of images",
        ),
        # Always whole
        Mutant(
            "in_shardings=(state, examples, examples)",
            "in_shardings=(everywhere, examples, examples)",
            "what each device holds of inner in the state",
        ),
        # The batch donated
        Mutant("donate_argnums=0", "donate_argnums=1", "The state is not donated"),
        # Not jitted
        Wrong(
            r"""
def data_parallel(step, mesh, state):
    return step
""",
            "what each device gets of images",
        ),
        # A sharding
        Wrong(
            r"""
def data_parallel(step, mesh, state):
    return NamedSharding(mesh, PartitionSpec("cores"))
""",
            "should return the jitted step",
        ),
        Mutant("        donate_argnums=0,\n", "", "The state is not donated"),
        Mutant(
            "in_shardings=(state, examples, examples)",
            "in_shardings=(state, examples, everywhere)",
            "each device should get its share of the examples",
        ),
        Mutant(
            "out_shardings=(state, everywhere)",
            "out_shardings=(everywhere, everywhere)",
            "should be split as `state` says",
        ),
    ],
    "11d": [
        # The first axis that fits
        Right(
            r"""
def fsdp(state, mesh):
    def of(leaf):
        if np.prod(leaf.shape, initial=1) >= 4096:
            for axis, size in enumerate(leaf.shape):
                if size % mesh.shape["cores"] == 0:
                    return NamedSharding(mesh, PartitionSpec(*(None,) * axis, "cores"))
        return NamedSharding(mesh, PartitionSpec())

    return jax.tree.map(of, state)
"""
        ),
        # The last axis that fits, a list of names
        Right(
            r"""
def fsdp(state, mesh):
    cores = len(mesh.devices.flat)

    def names(shape):
        found = [None] * len(shape)
        fitting = [n for n in range(len(shape)) if not shape[n] % cores]
        if fitting and int(np.prod(shape)) > 4095:
            found[fitting[-1]] = "cores"
        return found

    return jax.tree_util.tree_map(lambda leaf: NamedSharding(mesh, PartitionSpec(*names(leaf.shape))), state)
"""
        ),
        # Flattened and put together again
        Right(
            r"""
def fsdp(state, mesh):
    leaves, structure = jax.tree.flatten(state)
    found = []
    for leaf in leaves:
        axes = sorted((size, axis) for axis, size in enumerate(leaf.shape) if size % mesh.size == 0)
        spec = [None] * leaf.ndim
        if axes and leaf.size >= 2**12:
            spec[axes[-1][1]] = mesh.axis_names
        found.append(NamedSharding(mesh, PartitionSpec(*spec)))
    return jax.tree.unflatten(structure, found)
"""
        ),
        # Always the first axis
        Wrong(
            r"""
def fsdp(state, mesh):
    return jax.tree.map(lambda leaf: NamedSharding(mesh, PartitionSpec("cores")), state)
""",
            "does not suit an array of shape",
        ),
        # Nothing split
        Wrong(
            r"""
def fsdp(state, mesh):
    return jax.tree.map(lambda leaf: NamedSharding(mesh, PartitionSpec()), state)
""",
            "each core should hold one part in 8",
        ),
        # One sharding
        Wrong(
            r"""
def fsdp(state, mesh):
    return NamedSharding(mesh, PartitionSpec("cores"))
""",
            "should return a tree like the state",
        ),
        # Specs
        Mutant(
            "return NamedSharding(mesh, spec)",
            "return spec",
            "should be a sharding: NamedSharding(mesh, spec)",
        ),
        # Only arrays of several axes
        Mutant(
            "leaf.size >= 4096",
            "leaf.size >= 4096 and len(leaf.shape) > 1",
            "each core should hold one part in",
        ),
    ],
    "11e": [
        # With a context, the end by max
        Right(
            r"""
def train(step, state, batch_at, last, every, folder):
    losses = {}
    with ocp.CheckpointManager(folder) as manager:
        newest = manager.latest_step()
        if newest is None:
            newest = 0
        else:
            state = manager.restore(newest, args=ocp.args.StandardRestore(state))
        while newest < last:
            images, labels = batch_at(newest)
            state, losses[newest] = step(state, images, labels)
            newest += 1
            if newest % every == 0 or newest == last:
                manager.save(newest, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
    return state, losses
"""
        ),
        # Stretches of steps, each saved and waited for; only the last two kept
        Right(
            r"""
def train(step, state, batch_at, last, every, folder):
    options = ocp.CheckpointManagerOptions(max_to_keep=2)
    manager = ocp.CheckpointManager(folder, options=options)
    at, losses = manager.latest_step() or 0, {}
    if at:
        shapes = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        state = manager.restore(at, args=ocp.args.StandardRestore(shapes))
    while at < last:
        end = min((at // every + 1) * every, last)
        for number in range(at, end):
            state, loss = step(state, *batch_at(number))
            losses[number] = float(loss)
        at = end
        manager.save(at, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
    manager.close()
    return state, losses
"""
        ),
        # The manager decides by its interval; the end is forced
        Right(
            r"""
def train(step, state, batch_at, last, every, folder):
    manager = ocp.CheckpointManager(folder, options=ocp.CheckpointManagerOptions(save_interval_steps=every))
    first = manager.latest_step()
    if first is not None:
        state = manager.restore(first, args=ocp.args.StandardRestore(state))
    losses = {}
    for number in range(first or 0, last):
        state, losses[number] = step(state, *batch_at(number))
        done = number + 1
        if done % every == 0 or done == last:
            manager.save(done, args=ocp.args.StandardSave(state), force=True)
    manager.close()
    return state, losses
"""
        ),
        # Never resumed
        Wrong(
            r"""
def train(step, state, batch_at, last, every, folder):
    manager, losses = ocp.CheckpointManager(folder), {}
    for number in range(last):
        state, losses[number] = step(state, *batch_at(number))
        if (number + 1) % every == 0 and number + 1 not in manager.all_steps() or number + 1 == last:
            if number + 1 not in manager.all_steps():
                manager.save(number + 1, args=ocp.args.StandardSave(state))
    manager.close()
    return state, losses
""",
            "killed before batch 5, with checkpoint 3 complete",
        ),
        # Resumed with the first weights
        Mutant(
            "state = manager.restore(start, args=ocp.args.StandardRestore(state))",
            "manager.restore(start, args=ocp.args.StandardRestore(state))",
            "which should be as without a kill",
        ),
        # Only the weights
        Mutant(
            "args=ocp.args.StandardSave(state))",
            'args=ocp.args.StandardSave({"weights": state["weights"]}))',
            "does not hold the whole state",
        ),
        # Always further `last` steps
        Mutant("range(start, last)", "range(start, start + last)", "The numbers of the batches"),
        # Only at the end
        Mutant("(number + 1) % every == 0 or ", "", "The numbers of the batches"),
        # The losses as a list
        Mutant(
            "return state, losses",
            "return state, list(losses.values())",
            "should return the losses as a dict",
        ),
        Mutant(
            "        manager.save(number + 1,",
            "        manager.save(number,",
            "The newest checkpoint after this job",
        ),
        Mutant(" or number + 1 == last", "", "The newest checkpoint after this job"),
        Mutant("range(start, last)", "range(start + 1, last)", "The numbers of the batches"),
    ],
    "11f": [
        # Without the automatic sum
        Right(_mapped(_SICK, ", check_vma=False")),
        # The sum that jax.grad made, divided
        Right(
            _mapped(
                """
loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
gradients = jax.tree.map(lambda g: g / jax.lax.axis_size("cores"), gradients)
loss = jax.lax.pmean(loss, "cores")
"""
            )
        ),
        # Each core's part of the mean
        Right(
            _mapped(
                """
def part(weights):
    return loss_of(weights, x, y) / len(devices)

loss, gradients = jax.value_and_grad(part)(weights)
loss = jax.lax.psum(loss, "cores")
"""
            )
        ),
        # The weights told to vary
        Right(
            _mapped(
                """
own = jax.tree.map(lambda w: jax.lax.pcast(w, "cores", to="varying"), weights)
loss, gradients = jax.value_and_grad(loss_of)(own, x, y)
gradients, loss = jax.lax.pmean((gradients, loss), "cores")
"""
            )
        ),
        # No shard_map at all
        Right(
            _mira(
                """
rows, everywhere = NamedSharding(mesh, examples), NamedSharding(mesh, whole)

@functools.partial(jax.jit, in_shardings=(everywhere, rows, rows), out_shardings=everywhere)
def step(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, g: w - RATE * g, weights, gradients), loss
"""
            )
        ),
        # As it was
        Wrong(_mapped(_SICK), "On 2 cores, slope moves by 2 times the gradient"),
        # For eight cores only
        Wrong(
            _mapped(
                """
loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
gradients = jax.tree.map(lambda g: g / 8, gradients)
loss = jax.lax.pmean(loss, "cores")
"""
            ),
            "On 1 core, slope moves by 0.125 times the gradient",
        ),
        # Sums in the place of means
        Wrong(
            _mapped(_SICK.replace("pmean(gradients", "psum(gradients")),
            re.compile(r"On 2 cores, slope moves by \S+ times the gradient"),
        ),
        # No exchange, and the check of it switched off
        Wrong(
            _mapped(
                """
loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
loss = jax.lax.pmean(loss, "cores")
""",
                ", check_vma=False",
            ),
            "On 2 cores,",
        ),
        # The mean within, and the check switched off
        Wrong(
            _mapped(
                """
def mean_loss(weights):
    return jax.lax.pmean(loss_of(weights, x, y), "cores")

loss, gradients = jax.value_and_grad(mean_loss)(weights)
""",
                ", check_vma=False",
            ),
            "On 2 cores,",
        ),
        # Each core computes everything
        Wrong(
            _mira(
                """
@functools.partial(jax.jit, out_shardings=NamedSharding(mesh, whole))
def step(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return jax.tree.map(lambda w, g: w - RATE * g, weights, gradients), loss
"""
            ),
            "a core should get 8 of 64 examples",
        ),
        # The loss of a core's own share
        Wrong(
            _mapped(
                """
loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
gradients = jax.lax.pmean(gradients, "cores")
loss = jax.lax.psum(loss, "cores")
""",
                ", check_vma=False",
            ),
            "On 2 cores, the loss is",
        ),
        # The rest of the program thrown away
        Wrong("%%writefile mira.py\nprint(1)\n", "no longer has make_step"),
    ],
}
