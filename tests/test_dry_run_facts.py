"""Facts and rules of trace and read: what a fact's absence leaves out, and that a fact is computed once."""

import re

import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader

from lab_utils.dry_run import dry_run, rules
from lab_utils.dry_run.engine import RULES, Facts, Unavailable, apply_rules, fact, rule
from lab_utils.dry_run.facts import EstimatorFacts
from lab_utils.dry_run.read import stage as read  # noqa: F401  registers the rules
from lab_utils.dry_run.records import Mode, Stage
from lab_utils.dry_run.trace import stage as trace  # noqa: F401

INPUT = reader((ROWS, CLASSES))
FACTS = sorted(name for name, value in vars(EstimatorFacts).items() if isinstance(value, fact))
# Which facts are computed of which: whoever loses the one loses the others.
FOLLOWS = {
    "graph": ("program", "every_op", "ops", "flow"),
    "program": ("every_op", "ops", "flow"),
    "pipeline": (
        *("twice", "batches", "functions_of_input", "mapped", "links", "last_batch", "asked"),
        *("place_of_batches", "missing_files"),
    ),
}


def left_out():
    """The rules under NOT CHECKED of a right port with all its input functions, by mode, with the reason."""
    report = dry_run(
        make(dense),
        INPUT,
        stages=["trace", "read"],
        eval_input_fn=INPUT,
        predict_input_fn=lambda params: INPUT(params).map(lambda features, labels: features),
        progress=False,
    )
    assert "failed" not in {result.status for result in report.stages}, str(report)
    found = re.findall(r"((?:TPU\d+, )+)of (\w+): (.*)\.", "\n".join(report.not_checked))
    return {(id, mode): why for ids, mode, why in found for id in re.findall(r"TPU\d+", ids)}


def test_all_rules_of_a_right_port_can_be_asked():
    assert left_out() == {}


@pytest.mark.parametrize("name", FACTS)
def test_without_a_fact_exactly_the_rules_that_need_it_are_named(name, monkeypatch):
    def absent(facts):
        raise Unavailable(f"no {name} today")

    monkeypatch.setattr(EstimatorFacts, name, property(absent))
    lost = {name, *FOLLOWS.get(name, ())}
    wanted = {
        (id, mode.activity)
        for item in RULES
        if lost & set(item.needs)
        for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT)
        if mode in item.modes
        for id in item.ids
    }
    assert wanted, f"no rule needs {name}"
    said = left_out()
    assert set(said) == wanted
    assert set(said.values()) == {f"no {name} today"}


def test_every_rule_of_the_stages_is_registered_or_of_another_kind_of_program():
    registered = {id for item in RULES for id in item.ids}
    pages = {
        id for id, page in rules.catalogue().items() if page.stage in (Stage.TRACE, Stage.READ)
    }
    assert registered <= pages
    of_others = {id for id in pages - registered if id < "TPU240"}
    found_elsewhere = {"TPU109", "TPU230", "TPU234", "TPU235"}
    assert of_others == found_elsewhere, "which recognise.py and the frontends of steps find"


def test_a_rule_takes_as_many_facts_as_it_needs():
    for item in RULES:
        assert item.function.__code__.co_argcount == len(item.needs), item


class Counted(Facts):
    def __init__(self):
        super().__init__(Mode.TRAIN)
        self.computed = []

    @fact
    def number(self):
        """Counts how often it is computed."""
        self.computed.append("number")
        return 7

    @fact
    def absent(self):
        """So does this one."""
        self.computed.append("absent")
        raise Unavailable("it rains")


def test_a_fact_is_computed_once_and_so_is_its_absence(monkeypatch):
    monkeypatch.setattr("lab_utils.dry_run.engine.RULES", [])
    asked = []
    for id in ("TPU201", "TPU202"):
        rule(id, needs=("number",))(lambda number: asked.append(number) or [])
    for id in ("TPU203", "TPU204"):
        rule(id, needs=("absent", "number"))(lambda absent, number: asked.append(absent) or [])
    facts = Counted()
    assert apply_rules(facts, Stage.TRACE) == ([], {})
    findings, left_out = apply_rules(facts, Stage.READ)
    assert (findings, asked, facts.computed) == ([], [7, 7], ["number", "absent"])
    assert left_out == {"it rains": {"TPU203", "TPU204"}}
