"""A program is put to the TPU compiler, which works in a process of its own; answers are cached."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lab_utils.dry_run import cache
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import Progress
from lab_utils.dry_run.program import Program


@contextmanager
def asked(
    program: Program, topology: str, cores: int
) -> Iterator[Callable[[Progress | None], dict[str, Any]]]:
    """Context manager: the compiler works on a program for `cores` cores of `topology`.

    Yields:
        what waits for the answer: "memory", "cost" and "hlo", the optimised text, of a program that was
        compiled; else "refused" ("topology" or "program") and "message". "cached" where it is an earlier one.

    Raises:
        CompilerMissing: jax or libtpu is not installed here.
        ChildFailed: the process ended without an answer (what waits raises it).
    """
    code = cache.code()
    parts = program.partition.cores if program.partition else 0
    name = cache.key(program.hlo, parts, topology, process.versions(), code)
    if (entry := cache.read(name)) is not None:
        yield lambda progress: entry | {"cached": True}
        return
    process.require("jax", "libtpu")
    request = {"topology": topology, "cores": cores, "partitions": parts}

    def wait(progress: Progress | None) -> dict[str, Any]:
        answer, files = running.result(progress)
        if "refused" not in answer:
            answer["hlo"] = (files / "optimised.txt").read_text(encoding="utf-8")
        if answer.get("refused") != "topology":
            cache.write(name, answer)
        return answer

    with process.started("compile", request, {"program.hlo": program.hlo}) as running:
        yield wait
