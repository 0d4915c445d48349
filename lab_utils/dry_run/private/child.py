"""The process that imports JAX: `python -m lab_utils.dry_run.private.child FOLDER`.

It reads FOLDER/request.json, does one job ("compile", "run" or "run_jax"), writes FOLDER/result.json,
and prints a line of progress at a time. It never imports TensorFlow. See process.py for its parent.
"""

import contextlib
import functools
import hashlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.common.figures import counted

_Arrays = dict[str, np.ndarray]


def _compile(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    from lab_utils.dry_run.private import jax as _jax

    try:
        devices = _jax.tpu_devices(request["topology"])
    except Exception as error:
        return {"refused": "topology", "message": str(error)}
    kind = devices[0].device_kind
    print(f"compiling for {counted(len(devices), 'core')} of {kind}", flush=True)
    try:
        program = (folder / "program.hlo").read_bytes()
        if parts := request.get("partitions"):
            executable = _jax.compile_partitioned(program.decode(), devices[:parts])
        else:
            executable = _jax.compile_hlo(program, devices, load=False)
    except (AttributeError, TypeError):  # a name of JAX that moved: not the compiler's word
        raise
    except Exception as error:
        return {"refused": "program", "message": str(error)}
    return _jax.answer(executable)


def _run(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Executes programs.

    "moved" is the norm of what a program changes of its trained variables, and "apart" that of their
    difference from those of the first program.
    """
    import jax

    jax.config.update("jax_enable_x64", True)  # the global step is an int64
    runs, first = [], None
    for run in request["runs"]:
        steps, start, end = _run_one(run, folder, _executable(folder / run["hlo"], run["cores"]))
        first = end if first is None else first
        runs.append(
            {"steps": steps, "moved": _distance(end, start), "apart": _distance(end, first)}
        )
    return {"runs": runs}


@functools.cache
def _executable(hlo: Path, cores: int) -> Any:
    import jax

    from lab_utils.dry_run.private import jax as _jax

    print(f"compiling for {counted(cores, 'virtual core')}", flush=True)
    return _jax.compile_hlo(hlo.read_bytes(), jax.devices("cpu")[:cores], load=True)


def _run_one(
    run: dict[str, Any], folder: Path, executable: Any
) -> tuple[list[dict[str, Any]], _Arrays, _Arrays]:
    """Executes a program for each of its batches, on one virtual core for each replica.

    Returns:
        what each step did, and what the trained variables of core 0 were at first and in the end.
    """
    import jax

    from lab_utils.dry_run.private import jax as _jax

    devices = jax.devices("cpu")[: run["cores"]]
    inputs, outputs = run["inputs"], run["outputs"]
    virtual_cores = counted(len(devices), "virtual core")
    arguments: list[Any] = [None] * len(inputs)
    with np.load(folder / "values.npz") as values:
        for number, spec in enumerate(inputs):
            if spec["name"] in values:
                array = _array(values[spec["name"]], spec)
                arguments[number] = [jax.device_put(array, device) for device in devices]
    start = _trained(outputs, inputs, arguments)
    steps = []
    for step, batch in enumerate(run["batches"], 1):
        print(f"step {step} of {len(run['batches'])} on {virtual_cores}", flush=True)
        with np.load(folder / batch) as arrays:
            for key in arrays:
                number = int(key)
                cores = _array(arrays[key], inputs[number], len(devices))
                arguments[number] = [
                    jax.device_put(core, device)
                    for core, device in zip(cores, devices, strict=True)
                ]
        results = _jax.execute(executable, arguments, devices)
        steps.append(_report(outputs, results))
        for output, cores in zip(outputs, results, strict=True):
            if output["role"] == "variable":
                arguments[output["input"]] = cores
    return steps, start, _trained(outputs, inputs, arguments)


def _trained(
    outputs: list[dict[str, Any]], inputs: list[dict[str, Any]], arguments: list[list[Any]]
) -> _Arrays:
    """The trained variables that a program changes, as core 0 has them."""
    numbers = [output["input"] for output in outputs if output["role"] == "variable"]
    trained = [number for number in numbers if inputs[number]["trainable"]]
    return {inputs[number]["name"]: np.asarray(arguments[number][0]) for number in trained}


def _distance(some: _Arrays, others: _Arrays) -> float:
    """The Euclidean norm of the difference of the arrays that both have, taken together."""
    both = some.keys() & others.keys()
    differences = (some[name].astype(np.float64) - others[name] for name in sorted(both))
    return float(sum(float(np.vdot(part, part)) for part in differences) ** 0.5)


def _run_jax(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Executes steps that jax.export serialized, each for `steps` steps from its own values.

    Then the programs of "rounding", if there are any, as many steps of each.
    """
    import jax

    jax.config.update("jax_enable_x64", request["x64"])
    answer: dict[str, Any] = {
        "runs": [_run_exported(run, request, folder) for run in request["runs"]]
    }
    if rounding := request["rounding"]:
        for run in rounding["runs"]:
            del run["batches"][len(answer["runs"][0]) :]
        try:
            answer["rounding"] = _run(rounding, folder)
        except Exception as error:  # what was run before counts
            answer["rounding"] = {"failed": f"{type(error).__name__}: {error}"}
    return answer


def _run_exported(
    run: dict[str, Any], request: dict[str, Any], folder: Path
) -> list[dict[str, Any]]:
    """What each step did to the state, by name, and its losses."""
    virtual_cores = counted(run["cores"], "virtual core")
    call = _call_of_exported(run, folder)
    with np.load(folder / run["values"]) as arrays:
        arguments = [_array(arrays[str(n)], spec) for n, spec in enumerate(run["specs"])]
    reports = []
    for step in range(1, request["steps"] + 1):
        print(f"step {step} of {request['steps']} on {virtual_cores}", flush=True)
        results = list(map(np.asarray, call(*arguments)))
        reports.append(_changes(request, arguments, results))
        pairs = [(slot["argument"], slot["result"]) for slot in request["slots"]]
        if any(arguments[old].dtype != results[new].dtype for old, new in pairs):
            break  # another program takes it
        for old, new in pairs:
            arguments[old] = results[new]
    return reports


def _call_of_exported(run: dict[str, Any], folder: Path) -> Callable[..., Any]:
    import jax
    import jax.export

    exported = jax.export.deserialize(bytearray((folder / run["blob"]).read_bytes()))
    print(f"compiling for {counted(run['cores'], 'virtual core')}", flush=True)
    options = {}
    if run["cores"] > 1:
        names, sizes, types = zip(*run["mesh"], strict=True)
        devices = np.array(jax.devices("cpu")[: run["cores"]]).reshape(sizes)
        kinds = tuple(jax.sharding.AxisType[name] for name in types)
        mesh = jax.sharding.Mesh(devices, names, axis_types=kinds)
        whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
        options["in_shardings"] = tuple(each or whole for each in exported.in_shardings_jax(mesh))
    return jax.jit(exported.call, **options)


def _changes(
    request: dict[str, Any], old: list[np.ndarray], new: list[np.ndarray]
) -> dict[str, Any]:
    report: dict[str, Any] = {"losses": {}, "state": {}}
    for number, name in request["losses"]:
        report["losses"][name] = [float(value) for value in np.ravel(new[number])]
    for slot in request["slots"]:
        before, after = old[slot["argument"]], new[slot["result"]]
        if after.dtype.kind in "biu" or not after.size:
            continue
        if request["is_mapped"]:  # those of the first core
            before, after = before[:1], after[:1]
        before, after = before.astype(np.float64), after.astype(np.float64)
        change = float(np.linalg.norm(after - before))
        finite = bool(np.isfinite(after).all())
        report["state"][slot["name"]] = {"change": change if finite else 0.0, "finite": finite}
    return report


def _array(flat: np.ndarray, spec: dict[str, Any], cores: int | None = None) -> np.ndarray:
    """An array from its bytes; with `cores`, one array for each of them."""
    import ml_dtypes

    dtype = np.dtype(getattr(ml_dtypes, spec["dtype"], None) or spec["dtype"])
    shape = tuple(spec["shape"]) if cores is None else (cores, *spec["shape"])
    return np.frombuffer(flat.tobytes(), dtype).reshape(shape)


def _report(outputs: list[dict[str, Any]], results: list[list[Any]]) -> dict[str, Any]:
    """What a step did: each core's loss, and of each variable a digest by core, its norm, what stands out."""
    report: dict[str, Any] = {"losses": [], "variables": {}}
    for output, cores in zip(outputs, results, strict=True):
        arrays = [np.asarray(core) for core in cores]
        if output["role"] == "loss":
            report["losses"] = [float(np.mean(array)) for array in arrays]
        if output["role"] != "variable":
            continue
        digests = [hashlib.sha256(array.tobytes()).hexdigest()[:16] for array in arrays]
        entry: dict[str, Any] = {"digests": digests}
        if arrays[0].dtype.kind not in "biu":
            wide = [array.astype(np.float64) for array in arrays]
            entry["finite"] = all(np.isfinite(array).all() for array in wide)
            entry["norm"] = float(np.linalg.norm(wide[0]))
            if len(set(digests)) > 1:
                entry["difference"] = max(float(np.abs(array - wide[0]).max()) for array in wide)
                entry["scale"] = float(np.abs(wide[0]).max())
        report["variables"][output["name"]] = entry
    return report


def _end_with_parent(folder: Path, is_orphan: threading.Event) -> None:
    """Waits for the end of the standard input: the parent is gone, and with it who would clean up."""
    os.read(0, 1)  # unbuffered: Python's own reader would hold a lock when the job ends
    is_orphan.set()
    while folder.exists():  # the job may be writing its result there just now
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def main(folder: Path) -> None:
    """Does the job that FOLDER/request.json asks for."""
    # Where memory runs out, the system ends this process, and its parent says so in the report.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    is_orphan = threading.Event()
    cleaner = threading.Thread(target=_end_with_parent, args=(folder, is_orphan), daemon=True)
    cleaner.start()
    try:
        request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
        jobs = {"compile": _compile, "run": _run, "run_jax": _run_jax}
        result = jobs[request["job"]](request, folder)
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    finally:
        # A job that ends just now, or fails for want of its folder, must not end the process before that.
        if is_orphan.is_set():
            cleaner.join()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
