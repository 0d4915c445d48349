"""Stage 3: the step, compiled by libtpu for a topology that need not be here."""

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from lab_utils.dry_run import cache, chips
from lab_utils.dry_run.chips import BadTopology, Chip
from lab_utils.dry_run.compile.findings import findings_of, out_of_memory, refused
from lab_utils.dry_run.compile.hlo import summary as hlo
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import ChildFailed, CompilerMissing, Progress
from lab_utils.dry_run.program import Program
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.report.outcome import MEMORY_PARTS
from lab_utils.figures import Figure, Kind

__all__ = [
    "BadTopology",
    "ChildFailed",
    "Compiled",
    "CompilerMissing",
    "compile_program",
    "largest_batch",
]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = r"([\d.]+)([KMGT]?)"
_OUT_OF_MEMORY = (
    re.compile(rf"total memory required for [\w ]+ \({_SIZE}\) exceeds available HBM \({_SIZE}\)"),
    re.compile(rf"Used {_SIZE} of {_SIZE} hbm"),  # of older runtimes
)


@dataclass
class Compiled:
    """What the TPU's compiler says of one core's step.

    Attributes:
        memory: bytes by kind: "arguments" (variables and input), "temporaries", "outputs" (those that
            are no variable's new value, which takes its old one's place), "code"; "available", what
            the compiler lets a program use; and "needed" where it does not fit.
        cost: "flops", "bytes", "peak_flops", "peak_bandwidth", "step_seconds" (the roofline's bound),
            "examples_per_second" (of a core, at that bound), "bf16_share", "bf16_operand_share",
            "all_reduce_bytes"; empty where it does not fit or was refused.
        summary: what the optimised program holds; None where there is none.
        cached: taken from an earlier dry run.
    """

    topology: str
    chip: Chip
    program: Program
    memory: dict[str, Figure] = field(default_factory=dict)
    cost: dict[str, Figure] = field(default_factory=dict)
    summary: hlo.Summary | None = None
    findings: list[Finding] = field(default_factory=list)
    cached: bool = False

    @property
    def fits(self) -> bool:
        """Whether the compiler took the program, and it fits in a core's memory."""
        return bool(self.cost) and "needed" not in self.memory

    @property
    def used(self) -> float | None:
        """Bytes that the program needs of a core's memory; None where the compiler did not say."""
        if "needed" in self.memory:
            return self.memory["needed"].value
        return sum(self.memory[part].value for part in MEMORY_PARTS) if self.cost else None


def compile_program(
    program: Program, topology: str, *, progress: Progress | None = None
) -> Compiled:
    """Compiles a program for all cores of `topology`.

    Too little memory, or an op that the compiler refuses, is a finding of the result.

    Raises:
        CompilerMissing: jax or libtpu is not installed here.
        BadTopology: libtpu does not know the topology, or it has not the program's number of cores.
        ChildFailed: the compiler's process ended without an answer.
    """
    chip, cores = chips.parse(topology)
    if cores != program.cores:
        raise BadTopology(
            f"{topology} has {cores} cores, and the program was lowered for {program.cores}"
        )
    answer, cached = _ask(program.hlo, topology, cores, progress)
    if answer.get("refused") == "topology":
        raise BadTopology(f"{topology}: {answer['message']}. Accepted: {chips.ACCEPTED}")
    compiled = Compiled(topology, chip, program, cached=cached)
    compiled.memory["available"] = Figure(
        "memory that a program may use", chip.limit, "bytes", Kind.QUOTED, chips.LIBTPU
    )
    if answer.get("refused") == "program":
        _explain_refusal(compiled, answer["message"], progress)
        return compiled
    compiled.summary = hlo.Summary.from_dict(answer["summary"])
    _take_figures(compiled, answer)
    compiled.findings = findings_of(compiled)
    return compiled


def largest_batch(
    lower: Callable[[int], Program],
    topology: str,
    *,
    known: Compiled,
    upto: int,
    progress: Progress | None = None,
) -> int:
    """The largest batch a core that fits, a multiple of 8; 0 if none does.

    Memory grows about linearly with the batch: the next batch to try is where the line through what is
    known so far meets the limit, and each third time the middle of what is left, as the line may mislead.

    Args:
        lower: gives the program for a batch a core.
        known: the step as it was compiled for some batch.
        upto: batches above it are not tried.

    Raises:
        as compile_program.
    """
    fit, too_large, tried = 0, upto // 8 + 1, 0
    constant = sum(each.bytes for each in known.program.inputs if each.role == "variable")
    below, above = (0.0, float(constant)), None  # points of the line: batch / 8, bytes
    batch, compiled = known.program.per_core_batch / 8, known
    while True:
        if compiled.fits:
            fit, below = max(fit, int(batch)), (batch, compiled.used)
        else:
            too_large = min(too_large, math.ceil(batch))
            above = (batch, compiled.used) if compiled.used else None
        if too_large - fit <= 1:
            return 8 * fit
        tried += 1
        if tried % 3 == 0 or (above is None and not compiled.fits):
            batch = (fit + too_large) // 2
        else:
            (low, less), (high, more) = below, above or (0.0, float(constant))
            limit = compiled.memory["available"].value
            slope = (more - less) / (high - low) if high != low else 0.0
            batch = int(low + (limit - less) / slope) if slope > 0 else 2 * fit
        batch = min(max(batch, fit + 1), too_large - 1)
        compiled = compile_program(lower(8 * batch), topology, progress=progress)


def _ask(
    program: bytes, topology: str, cores: int, progress: Progress | None
) -> tuple[dict[str, Any], bool]:
    """The compiler's answer, and whether it is an earlier one."""
    code = cache.code(hlo.__name__, process.CHILD)
    name = cache.key(program, topology, process.versions(), code)
    if (kept := cache.read(name)) is not None:
        return kept, True
    process.require("jax", "libtpu")
    request = {"topology": topology, "cores": cores}
    with process.child("compile", request, {"program.hlo": program}, progress=progress) as (
        answer,
        files,
    ):
        optimised = files / "optimised.txt"
        if optimised.exists():
            answer["summary"] = asdict(hlo.summarise(optimised.read_text(encoding="utf-8")))
    if answer.get("refused") != "topology":
        cache.write(name, answer)
    return answer, False


def _take_figures(compiled: Compiled, answer: dict[str, Any]) -> None:
    """Memory and cost from the compiler's answer, and the roofline that follows."""
    memory, summary, chip = answer["memory"], compiled.summary, compiled.chip
    parts = {
        "arguments": memory["arguments"],
        "temporaries": memory["temporaries"],
        "outputs": memory["outputs"] - memory["alias"],
        "code": memory["code"],
    }
    compiled.memory |= {
        name: Figure(name, float(size), "bytes", Kind.COMPILER) for name, size in parts.items()
    }
    total = sum(parts.values())
    if total > chip.limit:
        compiled.memory["needed"] = Figure("memory needed", float(total), "bytes", Kind.COMPILER)
    # The compiler counts one round of each loop; the rounds after it are counted from the program.
    flops = answer["cost"]["flops"] + summary.loop_flops
    bytes_ = answer["cost"]["bytes"] + summary.loop_bytes
    kind = Kind.DERIVED if summary.loop_bytes else Kind.COMPILER
    program = compiled.program
    bound = chips.roofline(
        flops, bytes_, chip, cores=program.cores, per_core_batch=program.per_core_batch
    )
    rate = bound.examples_per_second / program.cores
    figures = {
        "flops": Figure("arithmetic a step", flops, "FLOP", kind),
        "bytes": Figure("memory traffic a step", bytes_, "B", kind),
        "peak_flops": Figure(
            "peak of a core, bfloat16", chip.flops_per_core, "FLOP/s", Kind.QUOTED, chip.source
        ),
        "peak_bandwidth": Figure(
            "memory bandwidth of a core", chip.bandwidth_per_core, "B/s", Kind.QUOTED, chip.source
        ),
        "step_seconds": Figure("least time a step", bound.seconds, "s", Kind.DERIVED),
        "examples_per_second": Figure("most examples, a core", rate, "examples/s", Kind.DERIVED),
        "bf16_share": Figure(
            "matrix products done in bfloat16", summary.bfloat16_share, "share", Kind.DERIVED
        ),
        "bf16_operand_share": Figure(
            "matrix products with bfloat16 operands",
            summary.bfloat16_operand_share,
            "share",
            Kind.DERIVED,
        ),
        "all_reduce_bytes": Figure(
            "summed over the cores a step", float(summary.collective_bytes), "B", Kind.COMPILER
        ),
    }
    compiled.cost |= figures


def _explain_refusal(compiled: Compiled, message: str, progress: Progress | None) -> None:
    """Out of memory with the largest tensors, or the compiler's own words."""
    found = next((match for p in _OUT_OF_MEMORY if (match := p.search(message))), None)
    if found is None:
        compiled.findings.append(refused(compiled, message))
        return
    # The message speaks of temporaries, and its figure holds the arguments too.
    needed = float(found[1]) * _UNITS[found[2]]
    arguments = float(sum(each.bytes for each in compiled.program.inputs))
    limit = float(found[3]) * _UNITS[found[4]]
    others = max(0.0, needed - arguments)
    compiled.memory |= {
        "arguments": Figure("arguments, unpadded", arguments, "bytes", Kind.DERIVED),
        "temporaries": Figure("temporaries, and padding", others, "bytes", Kind.DERIVED),
        "available": Figure("memory that a program may use", limit, "bytes", Kind.COMPILER),
        "needed": Figure("memory needed", needed, "bytes", Kind.COMPILER),
    }
    compiled.findings.append(out_of_memory(compiled, _roomy(compiled, progress), message))


def _roomy(compiled: Compiled, progress: Progress | None) -> hlo.Summary | None:
    """The same program compiled for the chip with the most memory, to see its largest tensors."""
    cores = compiled.program.cores
    chips_, spare = divmod(cores, 2)
    if spare or chips_ & (chips_ - 1) or chips_ < 4:
        return None
    sizes = [1, 1, 1]
    while chips_ > 1:
        sizes[sizes.index(min(sizes))] *= 2
        chips_ //= 2
    topology = "tpu7x:" + "x".join(str(size) for size in sorted(sizes, reverse=True))
    answer, _ = _ask(compiled.program.hlo, topology, cores, progress)
    return hlo.Summary.from_dict(answer["summary"]) if "summary" in answer else None
