"""What learners get wrong in lab 11, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "11a": [
        # Other names, one sharding for the results
        Right(
            r"""
def data_parallel(step, devices):
    mesh = jax.make_mesh((len(devices),), ("batch",), devices=devices)
    on = lambda *axes: NamedSharding(mesh, PartitionSpec(*axes))
    return jax.jit(step, in_shardings=(on(None, None), on("batch", None), on("batch", None)), out_shardings=on())
"""
        ),
        # A mesh of two axes, both over the examples
        Right(
            r"""
from jax.sharding import PartitionSpec as P

def data_parallel(step, devices):
    mesh = Mesh(np.array(devices).reshape(2, -1), ("a", "b"))
    rows = NamedSharding(mesh, P(("a", "b")))
    whole = NamedSharding(mesh, P())
    return jax.jit(step, in_shardings=(whole, rows, rows), out_shardings=whole)
"""
        ),
        # Constraints within the step
        Right(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("d",))
    put = lambda tree, *axes: jax.lax.with_sharding_constraint(
        tree, jax.tree.map(lambda _: NamedSharding(mesh, PartitionSpec(*axes)), tree))

    @jax.jit
    def split(weights, x, target):
        new, loss = step(put(weights), put(x, "d"), put(target, "d"))
        return put(new), loss

    return split
"""
        ),
        # shard_map, with the mean written by hand
        Right(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("d",))

    def own(weights, x, target):
        new, loss = step(weights, x, target)
        return jax.tree.map(lambda w: jax.lax.pmean(w, "d"), new), jax.lax.pmean(loss, "d")

    mapped = jax.shard_map(
        own, mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec("d"), PartitionSpec("d")),
        out_specs=(PartitionSpec(), PartitionSpec()), check_vma=False)
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("d",)))
    return jax.jit(mapped, in_shardings=(whole, rows, rows), out_shardings=whole)
"""
        ),
        # Nothing is split
        Mutant(
            'split = NamedSharding(mesh, PartitionSpec("cores"))\n    return jax.jit(\n        step, in_shardings=(everywhere, split',
            "split = NamedSharding(mesh, PartitionSpec())\n    return jax.jit(\n        step, in_shardings=(everywhere, split",
            "each device should get its share of them: expected (4, 16), yours gives (32, 16)",
        ),
        # The features are split
        Mutant(
            'split = NamedSharding(mesh, PartitionSpec("cores"))\n    return jax.jit(\n        step, in_shardings=(everywhere, split',
            'split = NamedSharding(mesh, PartitionSpec(None, "cores"))\n    return jax.jit(\n        step, in_shardings=(everywhere, split',
            "the first axis counts the examples",
        ),
        # Targets forgotten
        Mutant(
            "in_shardings=(everywhere, split, split)",
            "in_shardings=(everywhere, split, everywhere)",
            "What each device gets of target",
        ),
        # Weights split as well
        Mutant(
            "in_shardings=(everywhere, split, split)",
            "in_shardings=(split, split, split)",
            "each device should hold all weights",
        ),
        # Results split
        Mutant(
            "in_shardings=(everywhere, split, split), out_shardings=(everywhere, everywhere)",
            "in_shardings=(everywhere, split, split), out_shardings=(split, everywhere)",
            "out_shardings should match in_shardings",
        ),
        # Half of the devices
        Wrong(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices[:4]), ("cores",))
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("cores",)))
    return jax.jit(step, in_shardings=(whole, rows, rows), out_shardings=whole)
""",
            "Devices in the mesh, out of 8: expected 8, yours gives 4",
        ),
        # A shard_map without the mean
        Wrong(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("d",))
    P = PartitionSpec
    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P(), P("d"), P("d")), out_specs=(P(), P()), check_vma=False)
    whole, rows = (NamedSharding(mesh, P(*axes)) for axes in ((), ("d",)))
    return jax.jit(mapped, in_shardings=(whole, rows, rows), out_shardings=whole)
""",
            "what the step computes on one device",
        ),
        # The sharding, and no step
        Wrong(
            r"""
def data_parallel(step, devices):
    return NamedSharding(Mesh(np.array(devices), ("cores",)), PartitionSpec("cores"))
""",
            "should return the jitted step",
        ),
    ],
    "11b": [
        # Specs without the trailing None, another name
        Right(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("model",))
    specs = {"inner": PartitionSpec(None, "model"), "outer": PartitionSpec("model")}
    units = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    whole = NamedSharding(mesh, PartitionSpec(None))
    return jax.jit(step, in_shardings=(units, whole, whole), out_shardings=(units, None))
"""
        ),
        # Constraints
        Right(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("m",))

    def put(array, *axes):
        return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, PartitionSpec(*axes)))

    def units(weights):
        return {"inner": put(weights["inner"], None, "m"), "outer": put(weights["outer"], "m", None)}

    @jax.jit
    def split(weights, x, target):
        new, loss = step(units(weights), put(x), put(target))
        return units(new), loss

    return split
"""
        ),
        # Rows of inner, columns of outer
        Wrong(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("cores",))
    whole = NamedSharding(mesh, PartitionSpec())
    units = {
        "inner": NamedSharding(mesh, PartitionSpec("cores", None)),
        "outer": NamedSharding(mesh, PartitionSpec(None, "cores")),
    }
    return jax.jit(step, in_shardings=(units, whole, whole), out_shardings=(units, whole))
""",
            "all rows of some columns",
        ),
        # Columns of both
        Mutant(
            'PartitionSpec("cores", None)',
            'PartitionSpec(None, "cores")',
            "the rows that belong to its columns of inner",
        ),
        # Nothing split
        Wrong(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("cores",))
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(step, in_shardings=(whole, whole, whole), out_shardings=whole)
""",
            "all rows of some columns",
        ),
        # The new weights gathered
        Mutant(
            "out_shardings=(units, everywhere)",
            "out_shardings=(everywhere, everywhere)",
            "should be split like the old ones",
        ),
        # The batch split as well
        Mutant(
            "in_shardings=(units, everywhere, everywhere)",
            'in_shardings=(units, NamedSharding(mesh, PartitionSpec("cores")), everywhere)',
            "each device should see the whole batch",
        ),
    ],
    "11c": [
        Right("all_reduce_bytes = lambda batch, width: [32 * width**2, 4 * batch * width]"),
        # With the loss
        Right(
            r"""
def all_reduce_bytes(batch, width):
    return 4 * (8 * width * width + 1), 4 * (batch * width + 1)
"""
        ),
        Mutant(
            "return 4 * weights, 4 * batch * width",
            "return 4 * weights",
            "should return two numbers, (data-parallel, tensor-parallel)",
        ),
    ],
    "11d": [
        Right(
            "all_reduce_seconds = lambda bytes_, devices, link: bytes_ * (1 - 1 / devices) / link"
        ),
        # Round by round
        Right(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    seconds = 0.0
    for _ in ("reduce-scatter", "all-gather"):
        for _ in range(devices - 1):
            seconds += bytes_ / devices / (2 * link)
    return seconds
"""
        ),
        # NumPy
        Right(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    sent = np.float64(2 * bytes_) * (devices - 1) / devices
    return sent / np.sum([link, link])
"""
        ),
        # All to all, without a ring
        Wrong(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    return devices * (devices - 1) * bytes_ / link
""",
            "a device sends 2 x 3 pieces",
        ),
        # Milliseconds
        Wrong(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    return 1000 * bytes_ * (devices - 1) / devices / link
""",
            "a device sends 2 x 3 pieces",
        ),
    ],
}
