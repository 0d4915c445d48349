"""The checks of lab 15, the host: summaries, a hook, start values, whose files, and who calls input_fn."""

import re
import tempfile
import types
from collections.abc import Callable, Mapping
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import Cases, Slip, todo
from lab_utils.check.tools import a, as_wrong, expect, returns
from lab_utils.estimator import tf, v1


@todo(
    "15a",
    hints=(
        "Which of the three arguments has to be averaged, and which have the same value in all entries?",
        "You need two contexts, that of the writer and that of record_if: put them into one `with`, or nest them.",
        "It is time to write when the step modulo `every` is 0.",
    ),
    why="The host calls host_fn in another graph than model_fn's, so host_fn creates the writer itself. It may use `every` "
    "and `directory`, because these are Python values.",
    slips=(
        Slip(
            "tf.reduce_mean(loss)",
            "loss[0]",
            "Yours writes the loss of one core: write the mean over the cores.",
        ),
        Slip(
            "tf.reduce_mean(loss)",
            "tf.reduce_sum(loss)",
            "Yours writes the sum over the cores: write their mean.",
        ),
        Slip(
            "tf.equal(step[0] % every, 0)",
            "step[0] % every == 0",
            "In an Estimator's graph, `==` asks whether two tensors are the same object. Use tf.equal instead.",
        ),
        Slip(
            ", tf.summary.record_if(tf.equal(step[0] % every, 0))",
            "",
            "Yours writes at every step: let record_if test whether the step is a multiple of `every`.",
        ),
        Slip(
            '            tf.summary.scalar("learning_rate", rate[0], step=step[0])\n',
            "",
            'Your host_fn writes nothing under "learning_rate".',
        ),
    ),
)
def host_function(make_host_fn: Callable) -> Cases:
    """What the event files contain after seven steps of four cores."""
    outside = (
        "host_fn uses something that was made outside of it, in the graph of model_fn. But the host calls host_fn in "
        "another graph."
    )
    python = (
        "step is a tensor, so Python cannot know its value here. Test it in the graph, with tf.equal and "
        "tf.summary.record_if.",
        (TypeError, tf.errors.OperatorNotAllowedInGraphError),
    )
    every, cores, steps = 3, 4, 7
    losses = np.arange(steps * cores, dtype=np.float32).reshape(steps, cores) ** 2
    with tempfile.TemporaryDirectory() as directory:
        with tf.Graph().as_default():  # model_fn's; the host calls host_fn in another
            host_fn = make_host_fn(directory, every)
        expect(callable(host_fn), f"Return the function host_fn; yours returns {a(host_fn)}.")
        with tf.Graph().as_default() as graph, v1.Session() as session:
            step = v1.placeholder(tf.int64, [cores])
            loss, rate = (v1.placeholder(tf.float32, [cores]) for _ in range(2))
            with (
                as_wrong("same graph|different graph|not an element|out of scope", outside),
                as_wrong(r"int\(\)|__index__|as a Python|using a (symbolic )?`?tf.Tensor", *python),
            ):
                ops = host_fn(step, loss, rate)
            expect(
                all(op.type != "ScalarSummary" for op in graph.get_operations()),
                "No writer records a summary from v1.summary.scalar: use tf.summary.scalar.",
            )
            expect(
                not isinstance(ops, list | tuple) or len(ops) > 0,
                "host_fn returns no ops: summaries are recorded only within `with writer.as_default()`.",
            )
            writers = [op for op in graph.get_operations() if op.type == "CreateSummaryFileWriter"]
            session.run(writers)
            for number in range(steps):
                values = {step: [number] * cores, loss: losses[number], rate: [0.5**number] * cores}
                session.run(ops, values)
            session.run([tf.raw_ops.FlushSummaryWriter(writer=op.inputs[0]) for op in writers])
        events = _events(Path(directory))
    for tag in ("loss", "learning_rate"):
        at = sorted(step for name, step in events if name == tag)
        yield f"With every=3 and steps 0 to 6, the steps at which host_fn writes {tag}", at
        values = [events[tag, step] for step in at]
        yield f"The values that host_fn writes under {tag}, one for all four cores", values, 1e-4
    return "At every third step, host_fn writes the mean loss of the cores and the learning rate."


def _events(directory: Path) -> dict[tuple[str, int], Any]:
    """The summaries in the event files of a folder, by tag and step."""
    return {
        (value.tag, event.step): tf.make_ndarray(value.tensor).tolist()
        for file in directory.glob("**/*tfevents*")
        for event in v1.train.summary_iterator(str(file))
        for value in event.summary.value
    }


_OFTEN = "Your hook acts too often: store the step at which it last acted."
_SOON = "Once, your hook acts too soon. Count from the step at which it last acted, not from a multiple of 50."


@todo(
    "15b",
    hints=(
        "How many steps have passed since the last action?",
        "If enough steps have passed, do two things: call the action, and store the step.",
    ),
    why="The hook counts from the step at which it last acted, so it works with loops of any length.",
    slips=(
        Slip(
            "if step - self.last >= self.steps:",
            "if step % self.steps == 0:",
            "Few loops end at a multiple of 50, so your hook misses actions. An action may be late, but it must happen.",
        ),
        Slip("            self.last = step\n", "", _OFTEN),
        Slip("self.last = step\n", "self.last += 1\n", _OFTEN),
        Slip("self.last = step", "self.last += self.steps", _SOON),
        Slip("if step - self.last >=", "if step // self.steps * self.steps - self.last >=", _SOON),
        Slip(
            "if step - self.last >= self.steps:",
            "if step - self.last == self.steps:",
            "Your hook never acts if a loop goes beyond the 50th step: act after 50 steps or more.",
        ),
        Slip(
            "self.action(step)",
            "self.action(self.steps)",
            "Your hook calls action with the wrong step: pass the current one.",
        ),
    ),
)
def hook(Every: type) -> Cases:
    """When the hook acts in loops of several lengths, and after a resume."""
    for loop in (1, 30, 64):
        actions = _acts(Every, 50, 0, loop, 200 // loop)
        label = f"With steps=50 and loops of {loop}, from step 0 to 200, the steps at which the hook acts"
        yield label, actions
    actions = _acts(Every, 50, 1000, 30, 10)
    gaps = sorted({after - before for before, after in pairwise(actions)})
    yield "The steps between two actions, in loops of 30 after a resume at step 1000", gaps
    return "Your hook acts at the end of the loop in which it is time to act, and skips no action."


def _acts(hook_class: type, steps: int, first: int, loop: int, runs: int) -> list[int]:
    """The steps at which the hook acts, in a session that does `loop` steps a run."""
    actions: list[int] = []
    with tf.Graph().as_default():
        step = v1.train.create_global_step()
        increment = step.assign_add(loop)
        hook = hook_class(steps, lambda now: actions.append(int(now)))
        scaffold = v1.train.Scaffold(init_fn=lambda _, session: step.load(first, session))
        creator = v1.train.ChiefSessionCreator(scaffold)
        with v1.train.MonitoredSession(creator, hooks=[hook]) as session:
            for _ in range(runs):
                session.run(increment)
    return actions


@todo(
    "15c",
    hints=(
        "v1.train.init_from_checkpoint(checkpoint, mapping) changes variables' initial values, and returns nothing.",
        "The mapping is a dict, from a name in the checkpoint to a name here. A name that ends in / stands for all "
        "variables whose names begin with it.",
        "The Scaffold needs no arguments, since it uses the initial values that you have set before.",
    ),
    why="TPUEstimator calls scaffold_fn when the variables exist. The function changes their initial values, then makes the Scaffold.",
    slips=(
        Slip(
            '{"conv2d/": "conv2d/"}',
            '{"/": "/"}',
            "All variables start from the checkpoint, but only conv2d/... should.",
        ),
        Slip(
            '        v1.train.init_from_checkpoint(checkpoint, {"conv2d/": "conv2d/"})\n',
            "",
            "Nothing starts from the "
            "checkpoint: init_from_checkpoint belongs inside scaffold_fn, which is called when the variables exist.",
        ),
    ),
)
def start_values(make_scaffold_fn: Callable) -> Cases:
    """conv2d starts from a checkpoint, and dense starts as it would without one."""
    early = (
        "make_scaffold_fn runs before there is a model, so set initial values only inside scaffold_fn. make_scaffold_fn "
        "should return the function scaffold_fn."
    )
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = str(Path(folder) / "model.ckpt")
        with tf.Graph().as_default(), v1.Session() as session:
            _variables(5.0)
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, checkpoint)
        with (
            tf.Graph().as_default(),  # the model's graph comes later, and scaffold_fn is called in it
            as_wrong("", early, (ValueError, RuntimeError, LookupError)),
        ):
            scaffold_fn = make_scaffold_fn(checkpoint)
        returns(scaffold_fn, callable(scaffold_fn), "make_scaffold_fn", "the function scaffold_fn")
        with tf.Graph().as_default(), v1.Session() as session:
            variables = _variables(1.0)
            scaffold = scaffold_fn()
            returns(scaffold, v1.train.Scaffold, "scaffold_fn", "a v1.train.Scaffold")
            scaffold.finalize()
            session.run(scaffold.init_op, scaffold.init_feed_dict)
            if scaffold.init_fn:
                scaffold.init_fn(session)
            values = {name: value.mean() for name, value in session.run(variables).items()}
    for name, value in values.items():
        yield f"The initial value of {name} (5 in the checkpoint, 1 by its initializer)", value
    return "The convolution starts from the checkpoint, and the dense layer from its initializer."


def _variables(value: float) -> dict[str, tf.Variable]:
    """Variables of a small model, all of that value."""
    v1.train.create_global_step()
    names = ("conv2d/kernel", "conv2d/bias", "dense/kernel")
    start = v1.constant_initializer(value)
    return {name: v1.get_variable(name, [3], initializer=start) for name in names}


@todo(
    "15d",
    hints=(
        "First look for the context in params: without a context, there is only one host.",
        "Which of the four values of the deployment do you need? Compare the number of files with one of them.",
        "A Python slice with a step deals the files out one by one.",
    ),
    why="If you deal the files out one by one, the hosts' numbers of files differ by at most one, and every host has a file.",
)
def sharing(share: Callable) -> Cases:
    """One host reads each file, once; an error is raised if a host would have none."""
    files = [f"train-{n:05d}-of-00010" for n in range(10)]
    label = 'Without "context" in params, there is one host, which reads all files'
    with as_wrong("", f"{label}.", (KeyError, AttributeError)):
        alone = share(list(files), {"batch_size": 8})
    yield label, alone
    for hosts in (1, 2, 4, 7, 10):
        shares = []
        what = f"With 10 files and hosts={hosts}"
        for host in range(hosts):
            mine = share(list(files), _params(host, hosts))
            returns(mine, (list, tuple), "share", "a list of files")
            expect(
                len(mine) > 0,
                f"{what}, host {host} has no file, and the others would wait for it. Deal the files out one by one.",
            )
            shares += mine
        unread = sorted(set(files) - set(shares))
        expect(not unread, f"{what}, nobody reads {', '.join(unread)}.")
        expect(len(shares) == len(files), f"{what}, some files are read twice.")
    for host in (0, 5):
        try:
            few: Any = share(files[:3], _params(host, 6))
        except ValueError as error:
            numbers = set(re.findall(r"\d+", str(error)))
            few = "ValueError" if {"3", "6"} <= numbers else f"ValueError: {error}"
        label = f"With 3 files for 6 hosts, on host {host} (raise a ValueError that states both numbers)"
        yield label, few
    return "Exactly one host reads each file, and every host has a file."


def _params(host: int, hosts: int) -> dict[str, Any]:
    """The params of a host, with what stands for TPUEstimator's context: (device, host, hosts, its cores)."""
    deployment = ("/cpu:0", host, hosts, 8)
    context = types.SimpleNamespace(current_input_fn_deployment=lambda: deployment)
    return {"batch_size": 8, "context": context}


_CALLS = {
    "PER_HOST_V1": "once for each host, and its batch is for all cores of that host",
    "PER_HOST_V2": "once for each host, but its batch is for one core",
    "PER_SHARD_V1": "once for each core, and its batch is for that core",
    "BROADCAST": "only once, on host 0, and every core of all hosts gets the whole batch",
    "SLICED": "only once, on host 0, and the whole batch is split over all cores",
}


@todo(
    "15e",
    hints=(
        "The second column of the table is about the calls, and the third is about the batch.",
        "In which modes is a batch for one core only? In these, divide the global batch by the number of all cores.",
    ),
    why="The mode determines how often input_fn is called, and whether a batch is for a core, a host or all cores.",
)
def calls_of_modes(input_calls: Callable) -> Cases:
    """Calls and batch sizes of the five input modes, on 4 hosts with 32 cores together."""
    for mode, how in _CALLS.items():
        pair = input_calls(mode, 960, 4, 32)
        yield f"{mode}, 4 hosts, 32 cores, a global batch of 960 (input_fn is called {how})", pair
        expect(
            all(isinstance(number, Integral) for number in pair),
            f"A batch size is a whole number; yours gives {pair} for {mode}: divide with //.",
        )
    return "Each mode has the right number of calls and the right batch size."


_FITS = {  # job -> its mode, and what the others miss
    "transposed": ("PER_HOST_V2", "TensorFlow must not split a batch along axis 0, and each core needs its own examples"),
    "one reader": ("SLICED", "Only one host may read the file, and each example must go to one core only"),
    "split": ("BROADCAST", "Every core needs the whole batch"),
    "old": ("PER_SHARD_V1", "The mode must accept tensors, and must not split a batch for one core further"),
}  # fmt: skip


@todo(
    "15f",
    hints=(
        "Ask for each job: which hosts may read, and may TensorFlow split the batch along axis 0?",
        "One mode is for evaluation only, and another accepts tensors only.",
    ),
    why="Which mode fits depends on the first axis, on the hosts that may read, and on which core needs which examples.",
)
def choice(modes: Mapping) -> str:
    """A mode that fits each job."""
    against = {
        f"{job} {mode}": f"{need}. With {mode}, input_fn is called {how}."
        for job, (_, need) in _FITS.items()
        for mode, how in _CALLS.items()
    }
    expect_decisions(modes, _FITS, tuple(_CALLS), against)
    return "Each job has a mode that fits its hosts and its batch."
