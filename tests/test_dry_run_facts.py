"""Facts and rules of trace and read: what a fact's absence leaves out, and that a fact is computed once."""

import re
from unittest import mock

import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader

from lab_utils.dry_run import api, dry_run, rules
from lab_utils.dry_run.engine import RULES, Facts, apply_rules, fact, rule
from lab_utils.dry_run.facts import DatasetFacts, EstimatorFacts, StepFacts
from lab_utils.dry_run.read import settings, unsupported  # noqa: F401  register their rules
from lab_utils.dry_run.records import Mode, Stage
from lab_utils.dry_run.trace import calls, hooks  # noqa: F401
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.estimator import tf

INPUT = reader((ROWS, CLASSES))
FACTS = sorted(name for name, value in vars(EstimatorFacts).items() if isinstance(value, fact))
# Which facts are computed of which: whoever loses the one loses the others.
FOLLOWS = {
    "graph": ("program", "every_op", "ops", "flow", "host_ops"),
    "program": ("every_op", "ops", "flow", "host_ops"),
    "pipeline": (
        *("twice", "batches", "functions_of_input", "mapped", "links", "last_batch", "asked"),
        *("place_of_batches", "missing_files", "local_files"),
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
    return named(report)


def named(report):
    """The rules under NOT CHECKED of a report, by mode, with the reason."""
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


# The same of a step and its dataset, as Keras and loops have them.
OF_A_STEP = {
    name: kind
    for kind in (DatasetFacts, StepFacts)
    for name, value in vars(kind).items()
    if isinstance(value, fact)
}
ONLY_OF_EVALUATION = {"mapped", "last_batch"}
ALSO_OF_ESTIMATORS = {"local_files"}  # TPU237 also looks at their model_dir
FOLLOWS_OF_A_STEP = {
    "program": ("every_op", "ops"),
    "dataset": (
        *("functions_of_input", "mapped", "links", "last_batch", "unsized", "batches"),
        *("missing_files", "local_files"),
    ),
}


@pytest.fixture(scope="module")
def left_out_of_a_step():
    """Says which rules of trace and read are left out for a step and its dataset, by mode."""
    weights = tf.Variable(tf.ones([3, 1]))
    rows = tf.data.Dataset.from_tensor_slices((tf.ones([48, 3]), tf.ones([48, 1])))
    rows = rows.batch(16, drop_remainder=True)

    def step(features, labels):
        loss = tf.reduce_mean(tf.square(features @ weights - labels))
        weights.assign_sub(0.1 * tf.gradients(loss, [weights])[0])
        return loss

    def left_out():
        """From the session: a report counts the rules of an Estimator only, and names the others."""
        sessions, original = [], api.not_checked

        def seen(session):
            sessions.append(session)
            return original(session)

        with mock.patch.object(api, "not_checked", seen):
            named(dry_run(step, rows, stages=["trace", "read"], progress=False))
        reasons = sessions[0].left_out.items()
        return {(id, mode.activity): why for (mode, why), ids in reasons for id in ids}

    return left_out


@pytest.mark.parametrize("name", OF_A_STEP)
def test_so_it_is_for_a_step_and_its_dataset(name, left_out_of_a_step, monkeypatch):
    def absent(facts):
        raise Unavailable(f"no {name} today")

    before = left_out_of_a_step()
    monkeypatch.setattr(OF_A_STEP[name], name, property(absent))
    lost = {name, *FOLLOWS_OF_A_STEP.get(name, ())}
    asked = [item for item in RULES if Mode.TRAIN in item.modes and lost & set(item.needs)]
    wanted = {(id, Mode.TRAIN.activity) for item in asked for id in item.ids} - before.keys()
    elsewhere = ONLY_OF_EVALUATION | ALSO_OF_ESTIMATORS
    assert wanted or name in elsewhere, f"no rule of a step needs {name}"
    now = left_out_of_a_step()
    assert now.keys() == before.keys() | wanted
    assert {now[key].rstrip(".") for key in wanted} <= {f"no {name} today"}


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
