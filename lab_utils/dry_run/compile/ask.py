"""A program is put to the TPU compiler, which works in a process of its own; answers are kept."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from lab_utils.dry_run import cache
from lab_utils.dry_run.compile.hlo import summary as hlo
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import Progress
from lab_utils.dry_run.program import Program


@contextmanager
def asked(
    program: Program, topology: str, cores: int
) -> Iterator[Callable[[Progress | None], tuple[dict[str, Any], bool]]]:
    """Context manager: the compiler works on a program for `cores` cores of `topology`.

    Yields:
        what waits for the answer, with whether that is an earlier one: "memory", "cost" and "summary" of a
        program that was compiled; "refused" ("topology" or "program") and "message" otherwise.

    Raises:
        CompilerMissing: jax or libtpu is not installed here.
        ChildFailed: the process ended without an answer (what waits raises it).
    """
    code = cache.code()
    parts = program.partition.cores if program.partition else 0
    name = cache.key(program.hlo, parts, topology, process.versions(), code)
    if (kept := cache.read(name)) is not None:
        yield lambda progress: (kept, True)
        return
    process.require("jax", "libtpu")
    request = {"topology": topology, "cores": cores, "partitions": parts}

    def wait(progress: Progress | None) -> tuple[dict[str, Any], bool]:
        answer, files = running.result(progress)
        optimised = files / "optimised.txt"
        if optimised.exists():
            answer["summary"] = asdict(hlo.summarise(optimised.read_text(encoding="utf-8")))
        if answer.get("refused") != "topology":
            cache.write(name, answer)
        return answer, False

    with process.started("compile", request, {"program.hlo": program.hlo}) as running:
        yield wait
