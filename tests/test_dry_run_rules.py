"""The catalogue of rules and its pages."""

import json
import pathlib
import re

import pytest

from lab_utils.dry_run import rules
from lab_utils.dry_run.records import Stage

STAGE_OF_NUMBER = {
    "1": Stage.TRACE,
    "2": Stage.READ,
    "3": Stage.COMPILE,
    "4": Stage.RUN,
    "5": Stage.FEED,
}


def labs_by_heading():
    """Number and title of each lab, as its notebook has them."""
    headings = []
    for path in sorted((pathlib.Path(__file__).parents[1] / "labs").glob("*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        headings.append(first.splitlines()[0].removeprefix("# ").replace(" · ", " "))
        assert headings[-1].startswith(path.name[:2])
    return headings


@pytest.mark.parametrize("rule", rules.catalogue().values(), ids=lambda rule: rule.id)
def test_page_is_whole(rule):
    assert re.fullmatch(r"TPU[1-5]\d\d", rule.id)
    assert rule.stage == STAGE_OF_NUMBER[rule.id[3]]
    assert not rule.title.endswith(".")
    for sentence in (*rule.why.values(), *rule.fix.values()):
        assert sentence.endswith((".", "}")), sentence
    assert rule.lab in labs_by_heading()
    assert rule.body.startswith("## What happens on a TPU\n")
    assert rule.body.count("```") % 2 == 0
    assert rule.body.count("```python\n") >= 2, "one wrong example and one right"


CASES = [(rule, case) for rule in rules.catalogue().values() for case in rule.cases]


@pytest.mark.parametrize(
    ("rule", "case"), CASES, ids=lambda each: each if isinstance(each, str) else each.id
)
def test_finding_is_filled_from_facts(rule, case):
    facts = {name: f"<{name}>" for name in rule.facts(case)}
    found = rules.finding(rule.id, "model.py:1", message="its words", case=case, **facts)
    assert (found.rule, found.stage, found.lab) == (rule.id, rule.stage, rule.lab)
    assert found.message == "its words"
    for name in rule.facts(case):
        assert f"<{name}>" in found.why + found.fix
    assert "{" not in re.sub(r"\{'name'.*?\}", "", found.why + found.fix)


def test_one_step_is_no_steps():
    assert "After 1 step, no" in rules.finding("TPU408", "", steps=1, case="JAX").why
    assert "After 40 steps, no" in rules.finding("TPU408", "", steps=40, case="JAX").why
    assert "gave 1 batch per core" in rules.finding("TPU407", "", have=1, need=3).why


def test_each_rule_has_an_emitter_and_a_wrong_port():
    package = pathlib.Path(rules.__file__).parents[2]
    code = "".join(path.read_text(encoding="utf-8") for path in package.rglob("dry_run/**/*.py"))
    emitted = set(re.findall(r'"(TPU\d+)"', code))
    assert emitted == set(rules.catalogue())
    corpus = pathlib.Path(__file__).parent / "rules"
    ports = "".join(path.read_text(encoding="utf-8") for path in corpus.glob("wrong_*.py"))
    assert set(re.findall(r'^@wrong\("(TPU\d+)"', ports, re.M)) == set(rules.catalogue())


def test_missing_and_needless_facts_are_errors():
    with pytest.raises(TypeError, match="batch.*cores.*suggestion.*what"):
        rules.finding("TPU106", "", cores=8)
    with pytest.raises(TypeError, match="needs the facts"):
        rules.finding("TPU101", "", cores=8)


def test_a_case_that_the_page_does_not_have_is_an_error():
    assert "pmean" in rules.finding("TPU403", "", case="JAX", **SUMMED).fix
    assert "mean of the loss" in rules.finding("TPU403", "", case="loss", **SUMMED).fix
    for rule, case, facts in (("TPU403", "", SUMMED), ("TPU219", "JAX", {})):
        with pytest.raises(KeyError, match="has the cases"):
            rules.finding(rule, "", case=case, **facts)


SUMMED = {"step": 1, "what": "the mean loss over the cores", "many": "8", "one": "1"}
