"""The catalogue of rules and its pages."""

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


@pytest.mark.parametrize("rule", rules.catalogue().values(), ids=lambda rule: rule.id)
def test_page_is_whole(rule):
    assert re.fullmatch(r"TPU[1-5]\d\d", rule.id)
    assert rule.stage == STAGE_OF_NUMBER[rule.id[3]]
    assert not rule.title.endswith(".")
    for sentence in (rule.why, rule.fix):
        assert sentence.endswith((".", "}")), sentence
    assert re.match(r"\d\d \w", rule.lab)
    assert rule.body.startswith("## What happens on a TPU\n")
    assert rule.body.count("```") % 2 == 0
    assert rule.body.count("```python\n") >= 2, "one wrong example and one right"


@pytest.mark.parametrize("rule", rules.catalogue().values(), ids=lambda rule: rule.id)
def test_finding_is_filled_from_facts(rule):
    facts = {name: f"<{name}>" for name in rule.facts}
    found = rules.finding(rule.id, "model.py:1", message="text", **facts)
    assert (found.rule, found.stage, found.lab) == (rule.id, rule.stage, rule.lab)
    assert found.message == "text"
    for name in rule.facts:
        assert f"<{name}>" in found.why + found.fix
    assert "{" not in re.sub(r"\{'name'.*?\}", "", found.why + found.fix)


def test_missing_and_needless_facts_are_errors():
    with pytest.raises(TypeError, match="batch.*cores.*suggestion"):
        rules.finding("TPU106", "", cores=8)
    with pytest.raises(TypeError, match="needs the facts"):
        rules.finding("TPU101", "", cores=8)


def test_page_opens_with_id_and_title():
    page = rules.page("TPU201")
    assert page.startswith("# TPU201: Gradients are not summed over the cores\n")
    assert "CrossShardOptimizer" in page


def test_unknown_rule_names_those_that_exist():
    with pytest.raises(KeyError, match="TPU101"):
        rules.rule("TPU999")


def test_broken_page_is_named(tmp_path):
    path = tmp_path / "TPU101.md"
    path.write_text("---\nstage: nowhere\nseverity: error\n---\ntext\n")
    with pytest.raises(ValueError, match=r"TPU101\.md.*nowhere"):
        rules._read(path)
