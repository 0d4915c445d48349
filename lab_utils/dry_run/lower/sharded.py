"""A step that JAX lowered, laid on the cores of a topology: StableHLO with its mesh, as text.

A learner's mesh is made of the devices of the learner's process, perhaps a single CPU. The shardings of the
program name the mesh's axes alone, so it is laid on more cores by another size of the mesh. What
`jax.shard_map` or `jax.pmap` maps holds the shapes of one device, and is taken only with a mesh of the right
size.
"""

import math
import re
from collections.abc import Mapping

from lab_utils.common.figures import counted
from lab_utils.dry_run.lower.errors import IndivisibleAxis, InputUnfit

_MESH = re.compile(r"sdy\.mesh @(\w+) = <\[([^\]]*)\][^\n]*")
_AXIS = re.compile(r'"([^"]+)"=(\d+)')
# A sharding with the name of an axis in it, what a mapped function holds, or a sharding in XLA's older words.
_SPLIT = re.compile(r'<@\w+, \[[^\]]*\{"|sdy\.manual_computation|devices=\[')
_PARTITIONS = re.compile(r"mhlo\.num_partitions = (\d+)")


def layout(
    text: str,
    cores: int,
    topology: str,
    mesh_axes: Mapping[str, int] | None,
    mapper: str = "",
    here: int = 1,
) -> tuple[str, dict[str, int]]:
    """The program for `cores` cores, and the sizes of its mesh's axes, {} for a step of one core.

    Args:
        mesh_axes: sizes of axes of the mesh, by name; those that are not named keep theirs.
        mapper: what maps a part of it, "jax.shard_map" or "jax.pmap"; "" where nothing does.
        here: the devices that JAX has in this process.

    Raises:
        InputUnfit: the mesh cannot be laid on so many cores.
    """
    meshes = {
        name: {axis: int(size) for axis, size in _AXIS.findall(axes)}
        for name, axes in _MESH.findall(text)
        if axes
    }
    devices = int(_PARTITIONS.search(text)[1])
    if not meshes:
        if devices != cores and (mapper or devices != 1):
            raise _not_resized(devices, cores, topology, here, mapper, "without a named mesh")
        if mesh_axes:
            names, ones = tuple(mesh_axes), (1,) * len(mesh_axes)
            raise InputUnfit(
                f"mesh_axes names {', '.join(names)}, and no array of the step is laid on a mesh: make "
                f"mesh = jax.sharding.Mesh(np.reshape(jax.devices()[:1], {ones}), {names}), and give the "
                "arrays of the batch a sharding over it, as in jax.ShapeDtypeStruct(shape, dtype, "
                f'sharding=NamedSharding(mesh, PartitionSpec("{names[0]}")))'
            )
        return text, {"devices": devices} if devices > 1 else {}
    name, mesh = next(iter(meshes.items()))
    if unknown := set(mesh_axes or ()) - mesh.keys():
        raise InputUnfit(
            f"mesh_axes names {', '.join(sorted(unknown))}, and the mesh of the step has the axes "
            f"{', '.join(mesh)}"
        )
    sizes = mesh | dict(mesh_axes or {})
    if not mesh_axes and len(mesh) == 1:
        sizes = dict.fromkeys(mesh, cores)  # a mesh of all devices, however many there are
    if math.prod(sizes.values()) != cores:
        sizes_text = ", ".join(f"{axis}={size}" for axis, size in sizes.items())
        raise InputUnfit(
            f"the mesh ({sizes_text}: {counted(math.prod(sizes.values()), 'device')}) cannot be laid on "
            f"{topology} with its {counted(cores, 'core')}: say how, as in dry_run(..., "
            f"mesh_axes={dict.fromkeys(mesh, 1) | {next(iter(mesh)): cores}})"
        )
    if sizes == mesh:
        return text, mesh
    if len(meshes) > 1 or mapper:
        raise _not_resized(devices, cores, topology, here, mapper, "on more than one mesh")
    axes = ", ".join(f'"{axis}"={size}' for axis, size in sizes.items())
    text = _MESH.sub(f"sdy.mesh @{name} = <[{axes}]>", text, count=1)
    text = _PARTITIONS.sub(f"mhlo.num_partitions = {cores}", text, count=1)
    # On one device JAX itself pairs what is donated with results; on several the compiler does.
    return re.sub(r"tf\.aliasing_output = \d+ : i32", "jax.buffer_donor = true", text), sizes


def splits(text: str) -> bool:
    """Whether any array of a program is split over its mesh."""
    return bool(_SPLIT.search(text))


def as_many(cores: int) -> str:
    """What to do for a step that needs so many devices here."""
    devices = counted(cores, "device")
    return f'give JAX {devices} before it starts, jax.config.update("jax_num_cpu_devices", {cores})'


def _not_resized(
    devices: int, cores: int, topology: str, here: int, mapper: str, reason: str
) -> InputUnfit:
    why = f"and {mapper} has their shapes" if mapper else reason
    do = as_many(cores)
    if devices < cores <= here:  # the program chose fewer
        do = f"make the mesh of all {counted(here, 'device')} that JAX has here, jax.devices()"
    return InputUnfit(
        f"{do}: the step is lowered for {counted(devices, 'device')} {why}, and "
        f"{topology} has {counted(cores, 'core')} (the command does so for slices of one size)"
    )


def local_shape(
    shape: tuple[int, ...], spec: tuple | None, mesh: Mapping[str, int], name: str
) -> tuple[int, ...]:
    """The part of an array that one core holds.

    Args:
        spec: for each axis the mesh axes that it is split over: one's name, a tuple of names, or neither.

    Raises:
        IndivisibleAxis: an axis does not divide.
    """
    local = list(shape)
    for axis, part in enumerate(spec or ()):
        names = (part,) if isinstance(part, str) else part if isinstance(part, tuple) else ()
        sizes = {name: mesh.get(name, 1) for name in names}
        count = math.prod(sizes.values())
        if local[axis] % count:
            over = ", ".join(f"{part}={size}" for part, size in sizes.items())
            raise IndivisibleAxis(
                f"axis {axis} of {name}, of size {local[axis]}, cannot be split over {count} cores ({over})"
            )
        local[axis] //= count
    return tuple(local)
