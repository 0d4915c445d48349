"""Facts and rules of trace and read: what a fact's absence leaves out, and that a fact is computed once."""

import importlib.util
import inspect
import re
from unittest import mock

import pytest
from dry_run_models import CLASSES, ROWS, dense, make, reader

from lab_utils.common.source import Place
from lab_utils.dry_run import api, dry_run, rules
from lab_utils.dry_run.engine import RULES, Silent, apply_rules, rule, rules_of
from lab_utils.dry_run.facts.base import Facts, fact
from lab_utils.dry_run.facts.jax import JaxFacts, KerasJaxFacts
from lab_utils.dry_run.facts.tensorflow import DatasetFacts, EstimatorFacts, GraphFacts, StepFacts
from lab_utils.dry_run.records import Mode, Stage
from lab_utils.dry_run.rules import settings
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.dry_run.workload import Observed
from lab_utils.estimator import tf

INPUT = reader((ROWS, CLASSES))


def facts_of(*kinds):
    """By name the class, of these, that has the fact: the last of several."""
    items = [
        (name, kind)
        for kind in kinds
        for name, value in vars(kind).items()
        if isinstance(value, fact)
    ]
    return dict(sorted(dict(items).items()))


def asked(kind, mode, *stages):
    """The rules that are asked of a mode of such a program."""
    known = mock.Mock(spec=[], modules=kind.modules, mode=mode)
    return [item for stage in stages for item in rules_of(known, stage)]


FACTS = facts_of(GraphFacts, EstimatorFacts)
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


@pytest.mark.parametrize("kind", [EstimatorFacts, JaxFacts, KerasJaxFacts])
def test_all_rules_of_a_kind_of_program_find_their_facts_there(kind):
    """Only for steps of Keras and of loops some are not asked: they share modules with an Estimator."""
    for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT):
        for item in asked(kind, mode, Stage.TRACE, Stage.READ):
            set_when_made = {name for name in item.needs if not hasattr(kind, name)}
            source = "".join(map(inspect.getsource, kind.__mro__[:2]))
            assert all(f"self.{name}" in source for name in set_when_made), item


@pytest.mark.parametrize("name", FACTS)
def test_without_a_fact_exactly_the_rules_that_need_it_are_named(name, monkeypatch):
    def absent(facts):
        raise Unavailable(f"no {name} today")

    monkeypatch.setattr(EstimatorFacts, name, property(absent))
    lost = {name, *FOLLOWS.get(name, ())}
    wanted = {
        (id, mode.activity)
        for mode in (Mode.TRAIN, Mode.EVAL, Mode.PREDICT)
        for item in asked(EstimatorFacts, mode, Stage.TRACE, Stage.READ)
        if lost & set(item.needs)
        for id in item.ids
    }
    assert wanted, f"no rule needs {name}"
    said = left_out()
    assert set(said) == wanted
    assert set(said.values()) == {f"no {name} today"}


# The same of a step and its dataset, as Keras and loops have them.
OF_A_STEP = facts_of(GraphFacts, DatasetFacts, StepFacts)
ONLY_OF_EVALUATION = {"mapped", "last_batch"}
ALSO_OF_ESTIMATORS = {"local_files"}  # TPU237 also looks at their model_dir
FOLLOWS_OF_A_STEP = {
    "distributed": ("refused_batches", "shared", "graph", "on_host", "program", "every_op", "ops"),
    "refused_batches": ("shared", "graph", "on_host", "program", "every_op", "ops"),
    "graph": ("on_host", "program", "every_op", "ops"),
    "program": ("every_op", "ops"),
    "dataset": (
        *("functions_of_input", "mapped", "links", "last_batch", "unsized", "batches"),
        *("missing_files", "local_files"),
    ),
}


@pytest.fixture(scope="module")
def left_out_of_a_step():
    """Says which rules of trace and read are left out for a step and its dataset, and which not asked."""
    weights = tf.Variable(tf.ones([3, 1]))
    rows = tf.data.Dataset.from_tensor_slices((tf.ones([48, 3]), tf.ones([48, 1])))
    rows = rows.batch(16, drop_remainder=True)

    def step(features, labels):
        loss = tf.reduce_mean(tf.square(features @ weights - labels))
        weights.assign_sub(0.1 * tf.gradients(loss, [weights])[0])
        return loss

    def left_out():
        """From the session, by mode and with the whole reason."""
        sessions, original = [], api.not_checked

        def seen(session):
            sessions.append(session)
            return original(session)

        with mock.patch.object(api, "not_checked", seen):
            named(dry_run(step, rows, stages=["trace", "read"], progress=False))
        reasons = sessions[0].silent.left_out.items()
        others = sessions[0].silent.not_asked.items()
        not_asked = {(id, mode.activity) for mode, ids in others for id in ids}
        return {(id, mode.activity): why for (mode, why), ids in reasons for id in ids}, not_asked

    return left_out


@pytest.mark.parametrize("name", OF_A_STEP)
def test_so_it_is_for_a_step_and_its_dataset(name, left_out_of_a_step, monkeypatch):
    def absent(facts):
        raise Unavailable(f"no {name} today")

    before, not_asked = left_out_of_a_step()
    monkeypatch.setattr(OF_A_STEP[name], name, property(absent))
    lost = {name, *FOLLOWS_OF_A_STEP.get(name, ())}
    modes = (Mode.TRAIN,) if OF_A_STEP[name] is StepFacts else (Mode.TRAIN, Mode.EVAL)
    wanted = {
        (id, mode.activity)
        for mode in modes
        for item in asked(StepFacts, mode, Stage.READ)
        if lost & set(item.needs)
        for id in item.ids
    }
    wanted -= not_asked | before.keys()
    elsewhere = ONLY_OF_EVALUATION | ALSO_OF_ESTIMATORS
    assert wanted or name in elsewhere, f"no rule of a step needs {name}"
    now, _ = left_out_of_a_step()
    assert now.keys() == before.keys() | wanted
    assert {now[key].rstrip(".") for key in wanted} <= {f"no {name} today"}


FOLLOWS_OF_JAX = {
    "step": ("traced", "jaxpr", "state", "followed"),
    "traced": ("jaxpr", "followed"),
    "jaxpr": ("followed",),
}


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed here")
@pytest.mark.parametrize("name", facts_of(JaxFacts))
def test_so_it_is_for_a_step_of_jax(name, monkeypatch):
    import jax

    def loss(weights, rows):
        return ((rows @ weights) ** 2).mean()

    @jax.jit
    def step(weights, rows):
        return weights - 0.1 * jax.grad(loss)(weights, rows)

    def left_out():
        batch = jax.numpy.ones([4, 3]), jax.numpy.ones([8, 4])
        return named(dry_run(step, batch, stages=["read"], progress=False))

    def absent(facts):
        raise Unavailable(f"no {name} today")

    assert left_out() == {}
    monkeypatch.setattr(JaxFacts, name, property(absent))
    lost = {name, *FOLLOWS_OF_JAX.get(name, ())}
    need = [item for item in asked(JaxFacts, Mode.TRAIN, Stage.READ) if lost & set(item.needs)]
    wanted = {(id, Mode.TRAIN.activity) for item in need for id in item.ids}
    assert wanted, f"no rule needs {name}"
    assert left_out() == dict.fromkeys(wanted, f"no {name} today")


def test_where_a_step_of_jax_cannot_be_traced_its_rules_are_named():
    jax = pytest.importorskip("jax")

    @jax.jit
    def step(weights, rows):
        return weights if rows.sum() > 0 else -weights

    batch = jax.numpy.ones(3), jax.numpy.ones(3)
    report = dry_run(step, batch, stages=["read"], progress=False)
    need = {id for item in asked(JaxFacts, Mode.TRAIN, Stage.READ) for id in item.ids}
    assert [item.rule for item in report.findings] == ["TPU343"]
    sentence = ", ".join(sorted(need - {"TPU408"}))
    assert f"{sentence}, TPU408, of training: its step could not be built: fix TPU343 first." in (
        report.not_checked
    )


# What keeps the step of a loop from being built: the examples that it is given, and the rule that says so.
OF_A_GRAPH = {f"TPU{number}" for number in (202, 203, 204, 205, 206, 207, 208, 222)}
UNFIT = {"strings": (["a"] * 16, "TPU119"), "a step that raises": ([1.0] * 16, "TPU199")}


@pytest.mark.parametrize("kind", UNFIT)
def test_where_no_step_can_be_built_the_rules_on_it_are_named_and_the_others_asked(kind):
    examples, cause = UNFIT[kind]
    data = tf.data.Dataset.from_tensor_slices(examples).batch(8, drop_remainder=True)

    def step(batch):
        raise ValueError("not today")

    observed = Observed(outside=Place("train.py", 3), is_compiled=False)
    report = dry_run(step, data, stages=["read"], progress=False, observed=observed)
    said = re.findall(r"((?:TPU\d+, )+)of training: (.*)\.", "\n".join(report.not_checked))
    [(ids, why)] = [(ids, why) for ids, why in said if "step" in why]
    assert f"fix {cause} first" in why
    assert set(re.findall(r"TPU\d+", ids)) == OF_A_GRAPH | (
        {"TPU106"} if kind == "strings" else set()
    )
    assert {"TPU230", "TPU234", cause} == {item.rule for item in report.findings}


def test_every_rule_of_the_stages_is_registered():
    for kind in (EstimatorFacts, StepFacts, KerasJaxFacts):
        for mode in (Mode.TRAIN, Mode.EVAL):
            asked(kind, mode, Stage.TRACE, Stage.READ)  # imports their modules
    registered = {id for item in RULES for id in item.ids}
    pages = {
        id for id, page in rules.catalogue().items() if page.stage in (Stage.TRACE, Stage.READ)
    }
    assert pages - registered == {"TPU109"}, "which recognise.py finds: there is nothing to trace"


def test_a_rule_takes_as_many_facts_as_it_needs():
    for item in RULES:
        assert item.function.__code__.co_argcount == len(item.needs), item


class Counted(Facts):
    modules = ("settings",)  # its own rules are not registered here

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

    def ask(*given):
        asked.append(given[-1])
        return []

    ask.__module__ = settings.__name__
    for id in ("TPU201", "TPU202"):
        rule(id, needs=("number",))(ask)
    for id in ("TPU203", "TPU204"):
        rule(id, needs=("absent", "number"))(ask)
    facts = Counted()
    silent = Silent()
    assert apply_rules(facts, Stage.TRACE, silent) == []
    assert not silent.left_out and not any(silent.not_asked.values())
    findings = apply_rules(facts, Stage.READ, silent)
    assert (findings, asked, facts.computed) == ([], [7, 7], ["number", "absent"])
    assert silent.left_out == {(facts.mode, "it rains"): {"TPU203", "TPU204"}}
