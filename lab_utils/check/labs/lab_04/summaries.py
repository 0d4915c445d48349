"""Summaries on the host: TODO 4c, the host function, and 4d, the spec with its host_call."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, with_names
from lab_utils.estimator import tf, v1


@todo(
    "4c",
    hints=(
        "step, loss and rate have one entry a core: step[0], rate[0], tf.reduce_mean(loss).",
        "with writer.as_default(), tf.summary.record_if(tf.equal(step[0] % every, 0)): and in it the two "
        "scalars.",
        'tf.summary.scalar("loss", tf.reduce_mean(loss), step=step[0]); at the end, outside of the with, '
        "return v1.summary.all_v2_summary_ops().",
    ),
)  # fmt: skip
def host_function(make_host_fn: Callable) -> str:
    """Seven steps of four cores, and what stands in the event files after them."""
    every, cores, steps = 3, 4, 7
    losses = np.arange(steps * cores, dtype=np.float32).reshape(steps, cores) ** 2
    with tempfile.TemporaryDirectory() as directory:
        with tf.Graph().as_default() as graph, v1.Session() as session:
            host_fn = make_host_fn(directory, every)
            expect(callable(host_fn), f"Return the function host_fn; yours returns {a(host_fn)}.")
            step = v1.placeholder(tf.int64, [cores])
            loss = v1.placeholder(tf.float32, [cores])
            rate = v1.placeholder(tf.float32, [cores])
            ops = host_fn(step, loss, rate)
            expect(
                ops is not None,
                "host_fn returns None, so the host runs nothing: return v1.summary.all_v2_summary_ops().",
            )
            expect(
                not isinstance(ops, list | tuple) or len(ops) > 0,
                "There is nothing among the ops: summaries are made only within `with writer.as_default()`.",
            )
            made = [op for op in graph.get_operations() if op.type == "CreateSummaryFileWriter"]
            expect(bool(made), "There is no writer: tf.summary.create_file_writer(directory).")
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
            f"{tag} is written at every step: let record_if ask whether every divides the step.",
        )
        expect(
            at == list(range(0, steps, every)),
            f"With every={every}, of steps 0 to {steps - 1} the steps {list(range(0, steps, every))} should "
            f"be written; under {tag} there are {at}. step has one entry a core, all the same.",
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
        'host_fn = make_host_fn(params["summary_dir"], params["summary_steps"])',
        "host_call = (host_fn, [tf.reshape(step, [1]), ...]), in the order of host_fn's arguments: step, "
        "loss, rate.",
    ),
)  # fmt: skip
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
    with tf.Graph().as_default(), v1.Session() as session:
        step = v1.train.create_global_step()
        loss = tf.square(v1.get_variable("variable", initializer=3.0))
        try:
            spec = with_names(train_spec, make_host_fn=make_host_fn)("train", loss, params)
        except RuntimeError as error:
            if "length of tensors" not in str(error):
                raise
            raise Wrong(
                f"{error} The host's function is what make_host_fn returns: call it with the folder and the "
                "number of steps."
            ) from None
        expect(bool(spec.host_call), "There is no host_call in the spec: nothing reaches the host.")
        function, tensors = spec.host_call
        expect(
            made == [("here", 7)],
            'make_host_fn should get params["summary_dir"] and params["summary_steps"], here "here" and 7; '
            f"yours gets {made}.",
        )
        named = tensors if isinstance(tensors, dict) else None
        for each in named.values() if named else tensors:
            expect(
                each.shape.rank != 0,
                f"{each.name} is a scalar, and what leaves the cores is joined along axis 0: "
                "tf.reshape(tensor, [1]).",
            )
        function(**named) if named else function(*tensors)
        expect(bool(received), "The function in host_call should be what make_host_fn returned.")
        session.run(v1.global_variables_initializer())
        session.run(step.assign(100))
        got = {name: np.ravel(value) for name, value in session.run(received).items()}
    for name, right in (("step", 100), ("loss", 9.0), ("rate", 0.25)):
        expect(
            abs(got[name][0] - right) < 1e-4,
            f"At step 100, with a loss of 9 and a rate halved once to 0.25, host_fn gets {got[name][0]:.4g} "
            f"as its {name}. Is the order step, loss, rate, and is it the rate of this step?",
        )
    return "Step, loss and rate reach the host, one entry a core."
