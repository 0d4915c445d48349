"""Every private name of JAX and jaxlib that the dry run uses; process.py says with which versions of JAX.

What traces a step works in the caller's process, where JAX is imported; what compiles and executes one in the
child process, and for labs.
"""

import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.export  # in jax 0.7.2 `import jax` does not bring it
import numpy as np
from jax._src import core, debugging, shard_map
from jax._src.interpreters import mlir, partial_eval
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.experimental import topologies
from jaxlib import _jax

from lab_utils.common.source import Place, place_of_stack
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.runtime import chips

_CALLBACKS = ("callback", "debug_print")
OLD_PMAP = "xla_pmap"  # jax.pmap before 0.8, which builds it on jax.shard_map


@dataclass(frozen=True)
class Argument:
    """An array that the lowered step takes: its name, shape and type, and its PartitionSpec if any.

    A random key is the array of numbers that it is for the compiler.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    spec: tuple[Any, ...] | None
    donated: bool


@dataclass(frozen=True)
class Wish:
    """What a jitted function within the step asks of an array of the step's own arguments."""

    donated: bool = False
    sharding: Any = None


def is_callback(equation: Any) -> bool:
    """Whether an equation of a jaxpr calls Python on the host."""
    return any(part in equation.primitive.name for part in _CALLBACKS)


def is_of_gradient(equation: Any) -> bool:
    """Whether reverse-mode differentiation made an equation of a jaxpr."""
    return "transpose(" in str(equation.source_info.name_stack)


def prints(equation: Any) -> bool:
    """Whether an equation of a jaxpr only shows values: jax.debug.print, jax.debug.callback."""
    return "debug" in equation.primitive.name


def place(equation: Any) -> Place:
    """The caller's line that made an equation of a jaxpr."""
    stack = equation.source_info.traceback
    return place_of_stack(traceback.extract_tb(stack.as_python_traceback())) if stack else Place()


def leak(traced: Any) -> tuple[Exception, Place] | None:
    """What a call of a step raises that holds a value of a trace that has ended; where that was made."""
    constants = getattr(traced, "_consts", ())
    tracer = next((each for each in constants if isinstance(each, jax.core.Tracer)), None)
    if tracer is None:
        return None
    stack = getattr(getattr(tracer, "_line_info", None), "traceback", None)
    made_at = (
        place_of_stack(traceback.extract_tb(stack.as_python_traceback())) if stack else Place()
    )
    return core.escaped_tracer_error(tracer), made_at


@contextmanager
def callbacks_left_out(primitives: set[Any]) -> Iterator[None]:
    """Context manager: a step lowered for TPUs calls no host, and takes zeros for what the host would return.

    JAX can lower a callback for TPUs only where a TPU is.
    """
    table = mlir._platform_specific_lowerings["tpu"]
    before = dict(table)

    def nothing(ctx: Any, *arguments: Any, **parameters: Any) -> list[Any]:
        if ctx.tokens_in:
            ctx.set_tokens_out(ctx.tokens_in)
        return [mlir.full_like_aval(ctx, 0, aval) for aval in ctx.avals_out]

    for primitive in primitives:
        mlir.register_lowering(primitive, nothing, platform="tpu")
    try:
        yield
    finally:
        table.clear()
        table.update(before)


def names(jaxpr: Any) -> list[str]:
    """The names of a step's arrays: "params['w1']"."""
    arguments = jaxpr.debug_info.arg_names or ()
    named = [name or f"argument {number}" for number, name in enumerate(arguments)]
    return named + [f"argument {number}" for number in range(len(named), len(jaxpr.invars))]


def donated(traced: Any) -> tuple[bool, ...]:
    """Whether the step may take the memory of each of its arrays."""
    return traced._params["donated_invars"]


def static_arguments(function: Any, positional: int) -> set[int | str]:
    """The arguments that a jitted function takes as constants: of so many, by position, and by name.

    Raises:
        Unavailable: it is not one that JAX made, or of a JAX that was not tried.
    """
    info = getattr(function, "_jit_info", None)
    if info is None:
        raise Unavailable("it is not known which arguments of the jitted step are static")
    places = {n % positional for n in info.static_argnums if -positional <= n < positional}
    return places | set(info.static_argnames)


def arguments(traced: Any, lowered: Any) -> list[Argument]:
    """The arrays that the lowered program takes, in its order; those that it does not use are not there."""
    compile_args = lowered._lowering.compile_args
    jaxpr, given_away = traced.jaxpr.jaxpr, donated(traced)
    named = names(jaxpr)
    result = []
    pairs = zip(sorted(compile_args["kept_var_idx"]), compile_args["in_shardings"], strict=True)
    for number, sharding in pairs:
        spec = getattr(sharding, "spec", None)
        shape, dtype = _numbers(jaxpr.invars[number].aval)
        spec = None if spec is None else tuple(spec)
        result.append(Argument(named[number], shape, dtype, spec, given_away[number]))
    return result


def _numbers(aval: Any) -> tuple[tuple[int, ...], str]:
    """Shape and type of an array as the compiler sees it."""
    if is_key(aval):
        aval = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
    return tuple(aval.shape), str(aval.dtype)


def trees(traced: Any) -> tuple[Any, Any]:
    """The structures of (positional arguments, keyword arguments) and of the results.

    `args_info` and `out_info` build objects of the caller's classes, which may take nothing but arrays.
    """
    return traced._in_tree, getattr(traced, "out_tree", None) or traced._out_tree  # before jax 0.8


def result_names(traced: Any) -> list[str]:
    """A name for each result: its place in what the step returns, "[1]['loss']", as far as it is known."""
    _, results = trees(traced)
    count = len(traced.jaxpr.jaxpr.outvars)
    try:
        paths, _ = jax.tree_util.tree_flatten_with_path(
            jax.tree.unflatten(results, range(results.num_leaves))
        )
        names = [jax.tree_util.keystr(path) for path, _ in paths]
    except Exception:  # the caller's classes may take nothing but arrays
        names = []
    return names if len(names) == count else [""] * count


def devices_of(traced: Any) -> int:
    """How many devices a traced step works on."""
    return max(
        [1, *(mesh.size for mesh in _meshes(traced.jaxpr.jaxpr)), *_argument_devices(traced)]
    )


def _argument_devices(traced: Any) -> Iterator[int]:
    for sharding in traced._params.get("in_shardings") or ():
        if isinstance(sharding, jax.sharding.Sharding):
            yield len(sharding.device_set)
    for variable in traced.jaxpr.jaxpr.invars:
        if explicit := _explicit(variable.aval):
            yield explicit.mesh.size


def _explicit(aval: Any) -> Any:
    """The sharding that is a part of an array's type, on a mesh of explicit axes; None without one."""
    sharding = getattr(aval, "sharding", None)
    return sharding if sharding is not None and sharding.mesh.size > 1 else None


def _meshes(jaxpr: Any) -> Iterator[Any]:
    for equation in equations(jaxpr):
        if equation.primitive.name == "shard_map":
            yield equation.params["mesh"]
        if equation.primitive.name == "sharding_constraint":
            sharding = equation.params["sharding"]
            if isinstance(sharding, jax.sharding.NamedSharding):
                yield sharding.mesh


@contextmanager
def on_one_device() -> Iterator[None]:
    """Context manager: what jax.shard_map maps is traced for a mesh of one device, whatever mesh it names."""
    real = shard_map.shard_map_p.bind

    def bind(*arguments: Any, mesh: Any, **parameters: Any) -> Any:
        first = np.array(jax.devices()[:1]).reshape((1,) * len(mesh.axis_names))
        one = jax.sharding.Mesh(first, mesh.axis_names, axis_types=mesh.axis_types)
        return real(*arguments, mesh=one, **parameters)

    with _bound_otherwise({shard_map.shard_map_p: bind}):
        yield


@contextmanager
def printing_left_out() -> Iterator[None]:
    """Context manager: what is traced leaves out jax.debug.print and jax.debug.callback."""
    primitives = (debugging.debug_callback_p, debugging.debug_print_p)
    with _bound_otherwise(dict.fromkeys(primitives, lambda *arguments, **parameters: [])):
        yield


@contextmanager
def _bound_otherwise(functions: dict[Any, Any]) -> Iterator[None]:
    jax.clear_caches()  # which hold what was traced before
    for primitive, function in functions.items():
        primitive.bind = function
    try:
        yield
    finally:
        for primitive in functions:
            del primitive.bind
        jax.clear_caches()


def exported(traced: Any, given: Mapping[int, Any]) -> tuple[bytes, list[tuple[str, int, str]]]:
    """The step for this machine's CPU, serialized: a function of its arrays, keys as their numbers.

    With it the axes of its mesh: name, size and type; none for a step of one device. `given` are shardings
    that arguments have, by their numbers, where the step itself asks for none.

    Raises:
        Exception: whatever JAX cannot export.
    """
    jaxpr, variables = traced.jaxpr, traced.jaxpr.jaxpr.invars
    impls = [key_kind(var.aval) if is_key(var.aval) else None for var in variables]

    def of_arrays(*arrays: Any) -> list[Any]:
        whole = [
            array if impl is None else jax.random.wrap_key_data(array, impl=impl)
            for array, impl in zip(arrays, impls, strict=True)
        ]
        results = jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *whole)
        return [  # of a constant, a number of Python
            jax.random.key_data(each) if is_key(variable.aval) else each
            for each, variable in zip(results, jaxpr.jaxpr.outvars, strict=True)
        ]

    shardings = _export_shardings(traced, given)
    shapes = [
        jax.ShapeDtypeStruct(*_numbers(variable.aval), sharding=sharding)
        for variable, sharding in zip(variables, shardings or [None] * len(variables), strict=True)
    ]
    options = {"in_shardings": shardings} if shardings else {}
    step = jax.jit(of_arrays, **options)
    blob = jax.export.export(step, platforms=["cpu"])(*shapes).serialize()
    meshes = [shardings[0].mesh] if shardings else []
    return bytes(blob), [
        (name, size, kind.name)
        for mesh in meshes
        for (name, size), kind in zip(mesh.shape.items(), mesh.axis_types, strict=True)
    ]


def _export_shardings(traced: Any, given: Mapping[int, Any]) -> tuple[Any, ...]:
    """A sharding for each argument of a step of several devices: its own, or copies on all of them."""
    variables = traced.jaxpr.jaxpr.invars
    asked = traced._params.get("in_shardings") or ()
    asked = asked if len(asked) == len(variables) else [None] * len(variables)
    named = [
        next((s for s in (each, given.get(n)) if isinstance(s, jax.sharding.NamedSharding)), None)
        for n, each in enumerate(asked)
    ]
    named = [
        each or _explicit(variable.aval) for each, variable in zip(named, variables, strict=True)
    ]
    meshes = [each.mesh for each in named if each] or list(_meshes(traced.jaxpr.jaxpr))
    if not meshes or meshes[0].size == 1:
        return ()
    mesh = meshes[0]
    if not isinstance(mesh, jax.sharding.Mesh):  # it names no devices
        devices = np.array(jax.devices()[: mesh.size]).reshape(tuple(mesh.shape.values()))
        mesh = jax.sharding.Mesh(devices, mesh.axis_names, axis_types=mesh.axis_types)
    copies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    return tuple(jax.sharding.NamedSharding(mesh, each.spec) if each else copies for each in named)


def is_key(aval: Any) -> bool:
    """Whether an array, or the shape of one, is of random keys."""
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def holds_key(aval: Any, outer: int = 0) -> bool:
    """Whether an array holds a random key, or the numbers of one, behind `outer` axes such as the cores'."""
    return is_key(aval) or (aval.dtype == "uint32" and aval.shape[outer:] in ((2,), (4,)))


def key_kind(aval: Any) -> str:
    """The generator of a random key, by the name that jax.random takes: "threefry2x32"."""
    return aval.dtype._impl.name


def wishes(traced: Any) -> dict[int, Wish]:
    """By the number of the argument's array, where a jitted function within the step takes it as it is."""
    jaxpr = traced.jaxpr.jaxpr
    numbers = {id(variable): number for number, variable in enumerate(jaxpr.invars)}
    result: dict[int, Wish] = {}
    for equation in jaxpr.eqns:
        if "in_shardings" not in equation.params:
            continue
        columns = equation.invars, equation.params["donated_invars"], _shardings(equation)
        for variable, donated, sharding in zip(*columns, strict=True):
            if id(variable) in numbers and (donated or sharding):
                result[numbers[id(variable)]] = Wish(donated, sharding)
    return result


def _shardings(equation: Any) -> list[Any]:
    """Of what a jitted function takes: its NamedShardings, or those of the pmap that it stands for."""
    shardings = equation.params["in_shardings"]
    body = equation.params["jaxpr"].jaxpr
    if len(body.eqns) == 1 and body.eqns[0].primitive.name == "shard_map":
        (mapping,) = body.eqns
        if [id(var) for var in mapping.invars] == [id(var) for var in body.invars]:
            mesh, specs = mapping.params["mesh"], mapping.params["in_specs"]
            shardings = [jax.sharding.NamedSharding(mesh, spec) for spec in specs]
    named = jax.sharding.NamedSharding
    return [sharding if isinstance(sharding, named) else None for sharding in shardings]


def constraints(jaxpr: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The equations of a jaxpr that constrain how an array is split, each with its PartitionSpec."""
    for equation in equations(jaxpr):
        sharding = equation.params.get("sharding")
        if equation.primitive.name == "sharding_constraint" and hasattr(sharding, "spec"):
            yield equation, tuple(sharding.spec)


def equations(jaxpr: Any) -> Iterator[Any]:
    """Every equation of a jaxpr, those of loops, branches and inner functions with them."""
    for equation in jaxpr.eqns:
        yield equation
        for body in bodies(equation):
            yield from equations(body)


def bodies(equation: Any) -> Iterator[Any]:
    """The jaxprs of loops, branches and functions that an equation holds."""
    for value in equation.params.values():
        for part in value if isinstance(value, tuple | list) else (value,):
            body = getattr(part, "jaxpr", part)
            if hasattr(body, "eqns"):
                yield body


def computes(jaxpr: Any) -> bool:
    """Whether a step computes anything of its arguments: a result, or a new value of one that is mutable."""
    needed, used = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    mutable = any(hasattr(variable.aval, "inner_aval") for variable in jaxpr.invars)
    return bool(needed.eqns) and any(used) and (bool(jaxpr.outvars) or mutable)


def is_ref(leaf: Any) -> bool:
    """Whether an argument is a jax.Ref, which a step changes in place."""
    return hasattr(getattr(leaf, "aval", None), "inner_aval")


def maker(jaxpr: Any, variable: Any) -> Any:
    """The equation that makes a result, within jitted functions and shard_map; None: none does."""
    for equation in reversed(jaxpr.eqns):
        for number, result in enumerate(equation.outvars):
            if result is not variable:
                continue
            is_mapped = equation.primitive.name == "shard_map"
            if not is_mapped and "donated_invars" not in equation.params:
                return equation
            body = equation.params["jaxpr"]
            body = getattr(body, "jaxpr", body)
            inner = maker(body, body.outvars[number]) or equation
            if is_mapped and inner.primitive.name == "broadcast_in_dim":
                # pmap adds its axis of devices at the end
                inner = maker(body, inner.invars[0]) or inner
            return inner
    return None


def tpu_devices(topology: str) -> list[Any]:
    """The devices of a TPU topology that need not be here, such as "v2:2x2".

    Raises:
        Exception: whatever libtpu says of a name that it does not know.
    """
    sizes = [int(size) for size in topology.rpartition(":")[2].split("_")[0].split("x")]
    # Hosts have 2x2x1 chips by default; a topology that this does not divide is one host's.
    odd = any(size % 2 for size in sizes[:2])
    options: dict[str, Any] = {"chips_per_host_bounds": (*sizes, 1, 1)[:3]} if odd else {}
    if config := chips.parse(topology)[0].config:
        options["chip_config_name"] = config
    return list(topologies.get_topology_desc(topology, "tpu", **options).devices)


def compile_hlo(hlo: bytes, devices: list[Any], *, load: bool) -> Any:
    """Compiles a serialized HloModuleProto as one replica on each device; `load` to execute it here."""
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(hlo))
    # The one op of the old dialect that the parser refuses; the barrier does the same: nothing.
    text = text.replace("mhlo.copy", "stablehlo.optimization_barrier")
    return _compile(text, devices, _options(len(devices), 1), load=load)


def hlo_of(stablehlo: str) -> bytes:
    """A serialized HloModuleProto of a program as `jax.jit(...).lower(...).as_text()` gives it."""
    convert = xla_client._xla.mlir.mlir_module_to_xla_computation
    computation = convert(stablehlo, use_tuple_args=False, return_tuple=True)
    return computation.as_serialized_hlo_module_proto()


@dataclass(frozen=True)
class Module:
    """A serialized HloModuleProto, the numbers of the arguments that it takes, and its number of results."""

    hlo: bytes
    kept: list[int]
    results: int


def module_of(blob: bytes) -> Module:
    """What `exported` serialized, as a module.

    It may be compiled for a single device, where the shardings in it mean nothing.
    """
    step = jax.export.deserialize(bytearray(blob))
    hlo = hlo_of(step.mlir_module())
    return Module(hlo, list(step.module_kept_var_idx), len(step.out_avals))


def compile_partitioned(stablehlo: str, devices: list[Any]) -> Any:
    """Compiles a program with shardings, as `jax.jit(...).lower(...).as_text()` gives it, split over devices.

    Lower it for as many devices of any kind, with lowering_platforms=("tpu",). `.compile()` for a topology's
    devices ends the process with jax 0.7.2 and libtpu 0.0.21.1.
    """
    options = _options(1, len(devices))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, len(devices)
    build.device_assignment = options.device_assignment
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = "sdy." in stablehlo
    return _compile(stablehlo, devices, options, load=False)


def _options(replicas: int, partitions: int) -> Any:
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = replicas, partitions
    ids = np.arange(replicas * partitions).reshape(replicas, partitions)
    options.device_assignment = xla_client.DeviceAssignment.create(ids)
    return options


def _compile(text: str, devices: list[Any], options: Any, *, load: bool) -> Any:
    client = devices[0].client
    with mlir.make_ir_context():
        # jax takes a parsed module, and before 0.8 its text as bytes.
        module = ir.Module.parse(text) if jax.__version_info__ >= (0, 8) else text.encode()
        compile_ = client.compile_and_load if load else client.compile
        return compile_(module, _jax.DeviceList(tuple(devices)), options)


def answer(executable: Any) -> dict[str, Any]:
    """What the compiler says of one core's part of a program.

    Returns:
        "memory": bytes by kind, "arguments", "outputs", "alias", "temporaries" and "code"; "cost": "flops"
        and "bytes" of a step; "hlo": the text of the program as the compiler left it.
    """
    stats, cost = executable.get_compiled_memory_stats(), executable.cost_analysis()
    memory = {
        "arguments": stats.argument_size_in_bytes,
        "outputs": stats.output_size_in_bytes,
        "alias": stats.alias_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "code": stats.generated_code_size_in_bytes,
    }
    # Without its optimal_seconds, which can be negative.
    cost = {"flops": cost.get("flops", 0.0), "bytes": cost.get("bytes accessed", 0.0)}
    text = "\n".join(module.to_string() for module in executable.hlo_modules())
    return {"memory": memory, "cost": cost, "hlo": text}


def execute(executable: Any, arguments: list[list[Any]], devices: list[Any]) -> list[list[Any]]:
    """Runs one step. `arguments` and results hold one array for each device, by argument."""
    mesh = jax.sharding.Mesh(np.array(devices), ("core",))
    # Called copies, though each core may hold another value: only the buffers count.
    copies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    whole = [
        jax.make_array_from_single_device_arrays(cores[0].shape, copies, cores)
        for cores in arguments
    ]
    return executable.execute_sharded(whole).disassemble_into_single_device_arrays()
