"""Every private name of JAX and jaxlib that the dry run uses. Imported in the child process alone.

process.py says with which versions of JAX.
"""

from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib import xla_client
from jax._src.lib.mlir import ir
from jax.experimental import topologies
from jaxlib import _jax


def tpu_devices(topology: str) -> list[Any]:
    """The devices of a TPU topology that need not be here, such as "v2:2x2".

    Raises:
        Exception: whatever libtpu says of a name that it does not know.
    """
    sizes = [int(size) for size in topology.rpartition(":")[2].split("_")[0].split("x")]
    # Hosts have 2x2x1 chips by default; a topology that this does not divide is one host's.
    odd = any(size % 2 for size in sizes[:2])
    options = {"chips_per_host_bounds": (*sizes, 1, 1)[:3]} if odd else {}
    return list(topologies.get_topology_desc(topology, "tpu", **options).devices)


def compile_hlo(hlo: bytes, devices: list[Any], *, load: bool) -> Any:
    """Compiles a serialized HloModuleProto as one replica on each device; `load` to execute it here."""
    text = xla_client._xla.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(hlo))
    # The one op of the old dialect that the parser refuses; the barrier does the same: nothing.
    text = text.replace("mhlo.copy", "stablehlo.optimization_barrier")
    return _compile(text, devices, _options(len(devices), 1), load=load)


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
    with jax_mlir.make_ir_context():
        # jax takes a parsed module, and before 0.8 its text as bytes.
        module = ir.Module.parse(text) if jax.__version_info__ >= (0, 8) else text.encode()
        compile_ = client.compile_and_load if load else client.compile
        return compile_(module, _jax.DeviceList(tuple(devices)), options)


def memory(executable: Any) -> dict[str, int]:
    """Bytes of one core's memory by kind: arguments, outputs, alias, temporaries, code."""
    stats = executable.get_compiled_memory_stats()
    return {
        "arguments": stats.argument_size_in_bytes,
        "outputs": stats.output_size_in_bytes,
        "alias": stats.alias_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "code": stats.generated_code_size_in_bytes,
    }


def cost(executable: Any) -> dict[str, float]:
    """FLOP and bytes of one core's step. (optimal_seconds is left out: it can be negative.)"""
    analysis = executable.cost_analysis()
    return {"flops": analysis.get("flops", 0.0), "bytes": analysis.get("bytes accessed", 0.0)}


def optimised_hlo(executable: Any) -> str:
    """The text of the program as the TPU's compiler left it."""
    return "\n".join(module.to_string() for module in executable.hlo_modules())


def execute(executable: Any, arguments: list[list[Any]], devices: list[Any]) -> list[list[Any]]:
    """Runs one step. `arguments` and results hold one array for each device, by argument."""
    mesh = jax.sharding.Mesh(np.array(devices), ("core",))
    # Called copies, though each core may hold another value: only the buffers count.
    copies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    joined = [
        jax.make_array_from_single_device_arrays(cores[0].shape, copies, cores)
        for cores in arguments
    ]
    return executable.execute_sharded(joined).disassemble_into_single_device_arrays()
