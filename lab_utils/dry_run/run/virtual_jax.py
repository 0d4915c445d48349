"""A step of JAX on virtual cores: whether its loss is finite, and its updates are those of one core.

Some steps of it run on as many virtual devices as it has, and on one device with the same examples. Where
gradients are summed that should be averaged, the update is as many times too large as there are cores.
"""

import math
from typing import Any

from lab_utils.common.figures import Figure, Kind, counted
from lab_utils.dry_run.private import process
from lab_utils.dry_run.private.process import ChildFailed, NoRoom
from lab_utils.dry_run.program import Api, Comparison, Program
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.run import jax_numerics
from lab_utils.dry_run.run.jax_numerics import Rounding
from lab_utils.dry_run.run.verdicts import (
    Ran,
    depends_on_cores,
    least_ratio,
    no_change,
    not_finite,
)
from lab_utils.dry_run.run.virtual import npz
from lab_utils.dry_run.session import Session
from lab_utils.dry_run.unavailable import Unavailable


def carry_out(session: Session, program: Program, comparison: Comparison) -> str:
    """Runs the step and judges it; returns the detail of stage "run"."""
    steps = 1 if comparison.is_loop else session.steps
    asked = None
    if session.on_tpu:
        asked = jax_numerics.rounding(session, program, comparison, steps)
    try:
        answer, cached = _executed(comparison, steps, asked, session)
    except NoRoom as error:
        raise Unavailable(str(error)) from error
    except ChildFailed as error:
        raise Unavailable(process.exception_line(error)) from error
    runs = answer["runs"]
    many = runs[0]
    if comparison.has_values:
        lost = not_finite(map(_ran, many), program.where, lambda name: program.where)
        session.add(lost or _unchanged(program, comparison, many, steps))
        session.result.figures += _loss_figures(many)
    if len(runs) > 1:
        session.add(_compared(program, comparison, many, runs[1]))
    before = " (from the cache: the same program and values)" if cached else ""
    cores = counted(comparison.many.cores, "virtual core")
    summary = f"{counted(len(many), 'step')} on {cores}{before}"
    said = [f"{summary}; {_said(session, comparison)}"]
    if asked is not None:
        said += jax_numerics.judged(session, asked, answer["rounding"])
    return ". ".join(said)


def _said(session: Session, comparison: Comparison) -> str:
    """What was compared, and with what."""
    if comparison.one is not None:
        made_up = "" if comparison.has_values else " with made-up values, as there are no examples"
        return f"updates compared with one core's{made_up}"
    if comparison.maps:
        session.not_checked.append(
            "The update against one core's: here, the step is mapped over a single device. "
            'To get N devices, call jax.config.update("jax_num_cpu_devices", N) before JAX starts.'
        )
        return "nothing to compare it with"
    return (
        "it computes the same on any number of cores, since XLA splits the arrays and the step "
        "does not map cores itself"
    )


def _executed(
    comparison: Comparison, steps: int, asked: Rounding | None, session: Session
) -> tuple[dict[str, Any], bool]:
    exported = [each for each in (comparison.many, comparison.one) if each is not None]
    rounding, files = asked.requested() if asked else (None, {})
    runs = []
    for number, each in enumerate(exported):
        files[f"{number}.npz"] = npz({str(n): array for n, array in enumerate(each.values)})
        specs = [{"shape": list(a.shape), "dtype": str(a.dtype)} for a in each.values]
        names = {"values": f"{number}.npz", "blob": f"{number}.bin"}
        files[names["blob"]] = bytes(each.blob)
        runs.append(names | {"cores": each.cores, "mesh": each.mesh, "specs": specs})
    kinds = {str(array.dtype) for array in comparison.many.values}
    request = {
        "runs": runs,
        "steps": steps,
        "slots": [
            {"name": slot.name, "argument": slot.argument, "result": slot.result}
            for slot in comparison.slots
        ],
        "losses": comparison.losses,
        "is_mapped": comparison.is_mapped,
        "x64": any("64" in kind for kind in kinds),
        "rounding": rounding,
    }
    cores = comparison.many.cores
    with process.answering("run_jax", request, files, "jax", cores=cores) as wait:
        return wait(session.say)


def _loss_figures(steps: list[dict[str, Any]]) -> list[Figure]:
    return [
        Figure(f"loss, step {number}", sum(values) / len(values), "", Kind.MEASURED)
        for number, step in enumerate(steps, 1)
        for values in list(step["losses"].values())[:1]
    ]


def _ran(step: dict[str, Any]) -> Ran:
    lost = [name for name, entry in step["state"].items() if not entry["finite"]]
    return Ran([value for values in step["losses"].values() for value in values], lost)


def _unchanged(
    program: Program, comparison: Comparison, steps: list[dict[str, Any]], asked: int
) -> list[Finding]:
    """TPU408 where no trained array changes in several steps, nor any other of the state."""
    trained = {slot.name for slot in comparison.slots if slot.is_trained}
    changes = [
        entry["change"]
        for step in steps
        for name, entry in step["state"].items()
        if name in trained
    ]
    if asked < 2 or not changes or any(changes):
        return []
    kinds = (
        (slot.name, str(comparison.many.values[slot.argument].dtype))
        for slot in comparison.slots
        if slot.is_trained
    )
    return [no_change(program.where, len(steps), Api.JAX, kinds)]


def _compared(
    program: Program,
    comparison: Comparison,
    many: list[dict[str, Any]],
    one: list[dict[str, Any]],
) -> list[Finding]:
    """TPU403 where an update is about as many times too large, or too small, as there are cores."""
    cores = comparison.many.cores
    limit = least_ratio(cores, roughly=True)
    rows = []
    for slot in comparison.slots:
        if slot.differs or not slot.is_trained:  # TPU245 and TPU246 say it
            continue
        for number, (a, b) in enumerate(zip(many, one, strict=False), 1):
            changes = [run["state"].get(slot.name, {}).get("change", 0.0) for run in (a, b)]
            if all(changes):  # the first step in which it changes at all
                off = math.log(changes[0] / changes[1])
                if abs(off) > math.log(limit):
                    rows.append((abs(abs(off) - math.log(cores)), number, slot, changes))
                break
    if rows:
        _, number, slot, changes = min(rows, key=lambda row: row[:2])
        case = Api.JAX if changes[0] > changes[1] else "loss"
        what = f"the size of the update of {slot.name} on {counted(cores, 'core')}"
        return [depends_on_cores(slot.joined_at or program.where, number, what, changes, case)]
    for name, values in many[0]["losses"].items():
        other = one[0]["losses"].get(name, [0.0])[0]
        mean = sum(values) / len(values)
        if mean and other and abs(math.log(abs(mean / other))) > math.log(limit):
            what = f"the loss (result {name})" if name else "the loss"
            return [depends_on_cores(program.where, 1, what, [mean, other], "loss")]
    return []
