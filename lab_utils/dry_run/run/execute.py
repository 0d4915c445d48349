"""Executes lowered programs on virtual cores, in the child process that imports JAX."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

from lab_utils.dry_run import cache
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import Progress
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.run.findings import Batch


@contextmanager
def executing(
    programs: list[tuple[Program, list[Batch]]],
) -> Iterator[Callable[[Progress | None], tuple[list[dict[str, Any]], bool]]]:
    """Context manager: each program runs on virtual cores, a step for each of its batches.

    All start from the values of the first one.

    Yields:
        what waits for them: for each program {"steps": [{"losses": [...], "variables": {...}}, ...]} as
        child.py has it; and whether that was computed by an earlier dry run, of the same programs from the
        same values on the same batches.

    Raises:
        CompilerMissing: jax is not installed here.
        ChildFailed: the child ended without a result (what waits raises it).
    """
    files = {"values.npz": _npz(programs[0][0].origin.values)}
    runs = []
    for each, batches in programs:
        name = f"{each.cores}_cores"
        files[f"{name}.hlo"] = each.hlo
        names = [f"{name}_{number}.npz" for number in range(len(batches))]
        for file, batch in zip(names, batches, strict=True):
            arrays = zip(each.fed, batch, strict=True)
            files[file] = _npz({str(number): array for number, array in arrays})
        runs.append(
            {
                "hlo": f"{name}.hlo",
                "cores": each.cores,
                "inputs": [asdict(input_) for input_ in each.inputs],
                "outputs": [asdict(output) for output in each.outputs],
                "batches": names,
            }
        )
    contents = [part for name in sorted(files) for part in (name, files[name])]
    key = cache.key(runs, *contents, process.versions(), cache.code())
    if (entry := cache.read(key)) is not None:
        yield lambda progress: (entry["runs"], True)
        return
    process.require("jax")

    def wait(progress: Progress | None) -> tuple[list[dict[str, Any]], bool]:
        answer, _ = running.result(progress)
        cache.write(key, answer)
        return answer["runs"], False

    with process.started("run", {"runs": runs}, files, cores=programs[0][0].cores) as running:
        yield wait


def _npz(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays as their bytes: numpy's own format has no bfloat16."""
    file = io.BytesIO()
    flat = {name: np.frombuffer(a.tobytes(), np.uint8) for name, a in arrays.items()}
    np.savez(file, **flat)
    return file.getvalue()
