"""Beside the step: TODO 4e, a hook that sees some steps only, and 4f, start values."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, returns, translated
from lab_utils.estimator import tf, v1


@todo(
    "4e",
    hints=(
        "How many steps have been taken since the last call?",
        "Where they are enough, two things happen: the action, and a note of the step at which "
        "it was.",
    ),
    why="It compares with the step at which it last acted, so it is right whatever steps it gets to"
    " see.",
    slips={
        (
            "if step - self.last >= self.steps:",
            "if step % self.steps == 0:",
        ): "A loop seldom ends at a "
        "step that 50 divides, so yours misses some. It may come late, not never.",
        (
            "            self.last = step\n",
            "",
        ): "It acts again and again: keep the step at which it last acted.",
        (
            "self.last = step\n",
            "self.last += 1\n",
        ): "It acts again and again: keep the step at which it last acted.",
        (
            "self.last = step",
            "self.last += self.steps",
        ): "Once it acts too soon after it last acted. "
        "Count from the step at which it acted, rather than from a multiple of 50.",
        (
            "if step - self.last >= self.steps:",
            "if step // self.steps > self.last // self.steps:",
        ): "Once "
        "it acts too soon after it last acted. Count from the step at which it acted, rather than from a multiple "
        "of 50.",
        (
            "if step - self.last >= self.steps:",
            "if step - self.last == self.steps:",
        ): "It never acts where "
        "a loop goes past the step that is due: 50 steps or more have to be taken.",
        (
            "self.action(step)",
            "self.action(self.steps)",
        ): "action gets another step: give it the step as it is then.",
    },
)
def hook(Every: type) -> Cases:
    """When it acts, in loops of several lengths, and resumed."""
    for loop in (1, 30, 64):
        acted = _acts(Every, 50, 0, loop, 200 // loop)
        yield (
            f"The steps that action gets, with 50 steps in loops of {loop}, from step 0 to 200",
            acted,
        )
    acted = _acts(Every, 50, 1000, 30, 10)
    gaps = sorted({after - before for before, after in zip(acted, acted[1:], strict=False)})
    yield (
        "The steps from one action to the next, with 50 steps in loops of 30, resumed at step 1000",
        gaps,
    )
    return "It acts at the end of the loop in which its time comes, and is never left out."


def _acts(hook_class: type, steps: int, first: int, loop: int, runs: int) -> list[int]:
    """The steps at which the hook acts, in a session that takes `loop` steps a run."""
    acted: list[int] = []
    with tf.Graph().as_default():
        step = v1.train.create_global_step()
        taken = step.assign_add(loop)
        hook = hook_class(steps, lambda now: acted.append(int(now)))
        scaffold = v1.train.Scaffold(init_fn=lambda _, session: step.load(first, session))
        creator = v1.train.ChiefSessionCreator(scaffold)
        with v1.train.MonitoredSession(creator, hooks=[hook]) as session:
            for _ in range(runs):
                session.run(taken)
    return acted


@todo(
    "4f",
    hints=(
        "v1.train.init_from_checkpoint(checkpoint, mapping) changes how variables start, and "
        "returns nothing.",
        "The mapping is a dict, from a name in the checkpoint to a name here. One that ends in "
        "/ stands for all variables below it.",
        "The Scaffold needs no arguments: it takes the variables as they start by now.",
    ),
    why="scaffold_fn is called when the variables are there; the Scaffold is made after their start"
    " has been changed.",
)
def start_values(make_scaffold_fn: Callable) -> str:
    """conv2d from a checkpoint, dense as it would have started."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = str(Path(folder) / "model.ckpt")
        with tf.Graph().as_default(), v1.Session() as session:
            _variables(5.0)
            session.run(v1.global_variables_initializer())
            v1.train.Saver().save(session, checkpoint)
        with (
            tf.Graph().as_default(),  # the model's graph comes later, and scaffold_fn is called in it
            translated(
                "",
                "make_scaffold_fn runs before there is a model: say inside scaffold_fn how variables start. It "
                "should return the function scaffold_fn.",
                (ValueError, RuntimeError, LookupError),
            ),
        ):
            scaffold_fn = make_scaffold_fn(checkpoint)
        returns(scaffold_fn, callable, "make_scaffold_fn", "the function scaffold_fn")
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
        if name.startswith("conv2d"):
            expect(
                value == 5.0,
                f"{name} does not start from the checkpoint. Say it inside scaffold_fn: it is called when the "
                "variables are there.",
            )
        else:
            expect(value == 1.0, f"{name} starts from the checkpoint too; only conv2d/... should.")
    return "The convolution starts from the checkpoint, the dense layer as it would have."


def _variables(value: float) -> dict[str, tf.Variable]:
    """Variables of a small model, all of that value."""
    v1.train.create_global_step()
    names = ("conv2d/kernel", "conv2d/bias", "dense/kernel")
    start = v1.constant_initializer(value)
    return {name: v1.get_variable(name, [3], initializer=start) for name in names}
