"""Summaries on the host: TODO 4c, the host function, and 4d, the spec with its host_call."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, other_names, translated
from lab_utils.estimator import tf, v1


@todo(
    "4c",
    hints=(
        "step, loss and rate have one entry a core. Which of them has to be averaged, and which"
        " is the same everywhere?",
        "All of it inside host_fn, the writer too: two contexts, and in them two scalars.",
        "A step is due where its remainder by every is 0. Ask for the ops when both contexts "
        "are closed.",
    ),
    why="The host calls host_fn in a graph of its own, so the writer is made in it; every and "
    "directory are Python values and may be captured.",
)
def host_function(make_host_fn: Callable) -> str:
    """Seven steps of four cores, and what stands in the event files after them."""
    every, cores, steps = 3, 4, 7
    losses = np.arange(steps * cores, dtype=np.float32).reshape(steps, cores) ** 2
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        directory = str(Path(scratch) / "of this run")
        with tf.Graph().as_default():  # model_fn's; the host calls host_fn in another
            host_fn = make_host_fn(directory, every)
        expect(callable(host_fn), f"Return the function host_fn; yours returns {a(host_fn)}.")
        with tf.Graph().as_default() as graph, v1.Session() as session:
            step = v1.placeholder(tf.int64, [cores])
            loss = v1.placeholder(tf.float32, [cores])
            rate = v1.placeholder(tf.float32, [cores])
            with (
                translated(
                    "same graph|different graph|not an element|out of scope",
                    "host_fn uses something that was made outside of it, in the graph of model_fn. Make the "
                    "writer inside host_fn, too: the host calls it in a graph of its own.",
                ),
                translated(
                    r"int\(\)|__index__|as a Python|using a (symbolic )?`?tf.Tensor",
                    "step is a tensor, and Python cannot know its value here: test it in the graph, "
                    "with tf.equal and tf.summary.record_if.",
                    (TypeError, tf.errors.OperatorNotAllowedInGraphError),
                ),
            ):
                ops = host_fn(step, loss, rate)
            expect(
                ops is not None,
                "host_fn returns None, so the host runs nothing: return v1.summary.all_v2_summary_ops().",
            )
            kinds = {op.type for op in graph.get_operations()}
            expect(
                "ScalarSummary" not in kinds,
                "v1.summary.scalar makes a summary that no writer takes up: tf.summary.scalar writes to the "
                "writer that is the default.",
            )
            expect(
                not isinstance(ops, list | tuple) or len(ops) > 0,
                "There is nothing among the ops: summaries are made only within `with writer.as_default()`.",
            )
            made = [op for op in graph.get_operations() if op.type == "CreateSummaryFileWriter"]
            expect(
                bool(made),
                "host_fn makes no writer: tf.summary.create_file_writer(directory), inside host_fn.",
            )
            session.run(made)
            for number in range(steps):
                given = {step: [number] * cores, loss: losses[number], rate: [0.5**number] * cores}
                session.run(ops, given)
            session.run([tf.raw_ops.FlushSummaryWriter(writer=op.inputs[0]) for op in made])
        events = _events(Path(directory))
    for tag in ("loss", "learning_rate"):
        expect(
            bool(events),
            "Nothing is written. In an Estimator's graph `==` asks whether two tensors are the same object: "
            "let tf.equal compare. And the writer should be that of directory.",
        )
        expect(
            any(name == tag for name, _ in events),
            f'Nothing is written under "{tag}"; there are {sorted({name for name, _ in events})}.',
        )
        at = sorted(number for name, number in events if name == tag)
        expect(
            at != list(range(steps)),
            f"{tag} is written at every step: let record_if test whether the step is a multiple of every.",
        )
        expect(
            at == list(range(0, steps, every)),
            f"With every={every}, of steps 0 to {steps - 1} the steps {list(range(0, steps, every))} should "
            f"be written; under {tag} there are {at}. step has one entry a core, and all entries are equal.",
        )
    for number in range(0, steps, every):
        for tag, right, told in (
            ("loss", losses[number].mean(), "the mean over the cores"),
            ("learning_rate", 0.5**number, "the rate of any core"),
        ):
            value = events[tag, number]
            expect(
                value.shape == (), f"{tag} should be a scalar; yours has the shape {value.shape}."
            )
            expect(
                abs(value - right) < 1e-4 * max(1, right),
                f"{tag} at step {number} should be {told}, {right:.4g}; yours is {value:.4g}.",
            )
    return "Every third of seven steps is written: the mean loss of four cores, and the rate."


def _events(directory: Path) -> dict[tuple[str, int], np.ndarray]:
    """The summaries in the event files of a folder, by tag and step."""
    return {
        (value.tag, event.step): tf.make_ndarray(value.tensor)
        for file in directory.glob("**/*tfevents*")
        for event in v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }


@todo(
    "4d",
    hints=(
        "make_host_fn returns the function that the host calls: what has it to be told?",
        "A scalar has no axis along which the cores' parts could be joined: tf.reshape gives it"
        " one.",
        "The tensors come in the order of host_fn's arguments.",
    ),
    why="All that host_fn uses of the core is listed as a tensor, [1] on each core and [N] on the "
    "host.",
)
def training(train_spec: Callable) -> str:
    """A host_call with its three tensors, one entry a core."""
    made: list[tuple] = []
    received: dict[str, Any] = {}

    def make_host_fn(directory, every):
        made.append((directory, every))

        def host_fn(step, loss, rate):
            received.update(step=step, loss=loss, rate=rate)

        return host_fn

    params = {"use_tpu": False, "learning_rate": 0.5, "summary_dir": "here", "summary_steps": 7}
    with other_names(train_spec, make_host_fn=make_host_fn):
        function, names, values = _run_core(train_spec, params)
        with tf.Graph().as_default(), v1.Session() as session:  # the host has a graph of its own
            arrived = [tf.constant(value) for value in values]
            closes = (
                "The function closes over a tensor of train_spec, which stays on the cores: it may use nothing "
                "but its own arguments."
            )
            with (
                translated("same graph|different graph|out of scope", closes),
                translated(
                    "missing .* argument|takes .* argument|unexpected keyword",
                    "The function's arguments are not the tensors that come: host_fn takes step, loss and rate.",
                ),
            ):
                function(**dict(zip(names, arrived, strict=True))) if names else function(*arrived)
            expect(
                made == [("here", 7)],
                'make_host_fn should get params["summary_dir"] and params["summary_steps"], here "here" and 7; '
                f"yours gets {made}.",
            )
            expect(
                bool(received), "The function in host_call should be what make_host_fn returned."
            )
            expect(
                all(getattr(each, "graph", None) is session.graph for each in received.values()),
                closes,
            )
            got = {name: np.ravel(value) for name, value in session.run(received).items()}
    for name, right in (("step", 100), ("loss", 9.0), ("rate", 0.25)):
        expect(
            abs(got[name][0] - right) < 1e-4,
            f"At step 100, with a loss of 9 and a rate halved once to 0.25, host_fn gets {got[name][0]:.4g} "
            f"as its {name}. Is the order step, loss, rate, and is it the rate of this step?",
        )
    return "Step, loss and rate reach the host, one entry a core."


def _run_core(train_spec: Callable, params: dict) -> tuple[Callable, list[str], list[np.ndarray]]:
    """The function of host_call, the names of its tensors if they have any, and what a core brings at step 100."""
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        loss = tf.square(v1.get_variable("variable", initializer=3.0))
        with (
            translated(
                "length of tensors",
                "host_call does not fit together: the function is what make_host_fn returns for the folder and "
                "the number of steps, and takes three tensors: step, loss and rate.",
                (RuntimeError,),
            ),
            translated(
                "two elements",
                "host_call should be a pair: the function, and a list or dict of its tensors.",
            ),
            translated(
                "callable", "The first part of host_call should be the function itself, not called."
            ),
        ):
            spec = train_spec("train", loss, params)
        expect(bool(spec.host_call), "There is no host_call in the spec: nothing reaches the host.")
        function, tensors = spec.host_call
        names = list(tensors) if isinstance(tensors, dict) else []
        tensors = list(tensors.values()) if names else list(tensors)
        for each in tensors:
            expect(
                tf.is_tensor(each) or isinstance(each, tf.Variable),
                f"What a core brings are tensors; {each!r} is {a(each)}.",
            )
            expect(
                each.shape.rank != 0,
                f"{each.name} is a scalar, and what leaves the cores is joined along axis 0: give it that axis, "
                "[1].",
            )
            expect(
                each.shape.as_list() == [1],
                f"{each.name} has the shape {each.shape}. One entry a core is [1]; joined, they are [N], as "
                "host_fn takes them.",
            )
        session.run(v1.global_variables_initializer())
        session.run(step.assign(100))
        return function, names, session.run(tensors)
