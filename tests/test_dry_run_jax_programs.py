"""Train steps in the idioms of Flax, NNX, Equinox, Haiku, Optax and public trainers (tests/jax_programs)."""

import importlib
import os

import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
pytest.importorskip("jax")

from frozen import rows, same
from jax_programs import PROGRAMS
from reading import findings_of
from rules.judging import in_lines, jobs  # noqa: F401

from lab_utils.dry_run import rules
from lab_utils.dry_run.compile.stage import compile_program
from lab_utils.dry_run.frontends.jax import JaxWorkload
from lab_utils.dry_run.frontends.recognise import is_jax
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.records import Stage
from lab_utils.runtime import chips

# What make setup brings; Haiku, which its authors only maintain, is tested where it is installed.
NEEDS = {
    "plain": ["optax"],
    "linen": ["flax", "optax"],
    "nnx_": ["flax", "optax"],
    "eqx_": ["equinox", "optax"],
    "haiku_": ["haiku", "jmp", "optax"],
}
LACKING = {
    name: lacking
    for name, packages in NEEDS.items()
    if (lacking := [each for each in packages if importlib.util.find_spec(each) is None])
}
for _name in NEEDS:  # in one order, as pytest's processes compare what they collect
    if _name not in LACKING:
        importlib.import_module(f"jax_programs.{_name}")

RIGHT = [pytest.param(each, id=each.name) for each in PROGRAMS]
FAULTS = [
    pytest.param(each, fault, id=f"{each.name}-{fault}")
    for each in PROGRAMS
    for fault in each.faults
]
COMPILED = [each for each in FAULTS if rules.rule(each.values[1]).stage == Stage.COMPILE]
READ = [each for each in FAULTS if each not in COMPILED or each.values[1] == "TPU343"]


@pytest.mark.parametrize("name", NEEDS)
def test_the_frameworks_are_here(name):
    if name in LACKING:
        pytest.skip(f"not installed: pip install {' '.join(LACKING[name])}")


def judged(made, compiled=False):
    """The findings of reading and lowering a step, and of compiling it."""
    cores = chips.cores(made.topology)
    assert is_jax(made.step, made.data)
    workload = JaxWorkload(made.step, made.data, made.topology, made.mesh_axes)
    try:
        found = findings_of(workload, cores)
        program = workload.lower(cores)
    except CannotLower as error:
        return [error.finding()], None
    if compiled:
        found += compile_program(program, made.topology).findings
    return found, program


def answer(found, lowered):
    return {"findings": rows(found), "mode": lowered and lowered.mode}


@pytest.mark.parametrize("program", RIGHT)
def test_a_right_step_has_no_finding(program):
    found, lowered = judged(program.make(""))
    same("jax_programs", f"{program.name} read", answer(found, lowered))
    assert not found, in_lines(found)
    assert lowered.mode == "train", "its state was not recognised"


@pytest.mark.parametrize(("program", "fault"), READ)
def test_a_planted_fault_is_named_at_its_line(program, fault):
    found, lowered = judged(program.make(fault))
    same("jax_programs", f"{program.name} {fault} read", answer(found, lowered))
    assert {each.rule for each in found} == {fault}, in_lines(found)
    (line,) = program.lines(fault)
    assert found[0].place.position.split(",")[0].endswith(line), in_lines(found)


@pytest.mark.slow
@pytest.mark.parametrize("program", RIGHT)
def test_a_right_step_compiles_without_a_warning(program, jobs):  # noqa: F811
    pytest.importorskip("libtpu")
    found, lowered = judged(program.make(""), compiled=True)
    same("jax_programs", f"{program.name} compiled", answer(found, lowered))
    assert not [each for each in found if each.severity != "note"], in_lines(found)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "fault"), COMPILED)
def test_a_fault_of_the_compiled_step_is_named(program, fault, jobs):  # noqa: F811
    pytest.importorskip("libtpu")
    found, lowered = judged(program.make(fault), compiled=True)
    same("jax_programs", f"{program.name} {fault} compiled", answer(found, lowered))
    # A note is enough for a batch that is donated: nothing is lost but the batch.
    told = [each for each in found if each.severity != "note" or each.rule == fault]
    assert {each.rule for each in told} == {fault}, in_lines(found)
    if lines := program.lines(fault):
        assert told[0].place.position.split(",")[0].endswith(lines[0]), in_lines(told)
