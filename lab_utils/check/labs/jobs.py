"""What a learner's training loop drives in its check: a stand-in for a job, and a real job of some steps."""

import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.tools import expect
from lab_utils.convert.logs import quiet
from lab_utils.estimator import tf, tpu, v1

EVAL_STEPS = 3
_MOST = 12  # calls of train; a loop that makes more does not end
_HOOK = v1.train.SessionRunHook()


class Job:
    """Stands for a TPUEstimator and its data: it trains nothing, but writes checkpoints as one does.

    Attributes:
        model_dir: a folder with the checkpoints.
        calls: what was called, in words: "train 0 to 100", "evaluate 100".
        data: train_from, evaluate and eval_steps, as `lab_utils.flowers.task.Inputs` has them.
        hooks: to be passed to each `train`.
    """

    def __init__(self, steps: Sequence[int], damaged: Sequence[int], every: int) -> None:
        self.model_dir = tempfile.mkdtemp(prefix="job-")
        self.calls: list[str] = []
        self.hooks = [_HOOK]
        self.config = SimpleNamespace(model_dir=self.model_dir, save_checkpoints_steps=every)
        self._every, self._fed = every, None
        self.data = SimpleNamespace(
            train_from=self._train_from, evaluate=self._evaluation, eval_steps=EVAL_STEPS
        )
        self._save(steps)
        for step in damaged:
            file = Path(self.model_dir, f"model.ckpt-{step}.data-00000-of-00001")
            file.write_bytes(file.read_bytes()[:-2])

    def train(
        self,
        input_fn: Callable,
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> "Job":
        """Writes the checkpoints on the way, and notes from where to where, on which data."""
        expect(
            (steps is None) != (max_steps is None),
            "train takes either max_steps, the step at which it stops, or steps, a number from here on. Give one of them.",
        )
        expect(len(self.calls) < 2 * _MOST, "The loop does not end. What changes its condition?")
        start = self._newest()
        end = max_steps if steps is None else start + steps
        if end <= start:  # as TPUEstimator: it says so, and returns
            return self
        self._feed(input_fn, "train")
        notes = [f"train {start} to {end}"]
        if self._fed != start:
            notes.append(f"on the data from step {self._fed} on")
        if list(hooks or ()) != self.hooks:
            notes.append("without the hooks")
        self.calls.append(" ".join(notes))
        between = range(start - start % self._every + self._every, end, self._every)
        self._save([*([] if start else [0]), *between, end])
        return self

    def evaluate(
        self,
        input_fn: Callable,
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, float]:
        """The accuracy of the newest checkpoint, which is a thousandth of its step."""
        expect(
            steps == EVAL_STEPS,
            f"evaluate needs steps=data.eval_steps: the padding never ends. Yours has steps={steps}.",
        )
        self._feed(input_fn, "evaluate")
        expect(self._fed == "evaluation", "evaluate gets the training data: pass data.evaluate.")
        step = int(checkpoint_path.rpartition("-")[2]) if checkpoint_path else self._newest()
        self.calls.append(f"evaluate {step}")
        return {"accuracy": step / 1000, "loss": 1.0, "global_step": step}

    def latest_checkpoint(self) -> str | None:
        """The path of the checkpoint that the folder's `checkpoint` file names."""
        return tf.train.latest_checkpoint(self.model_dir)

    def get_variable_value(self, name: str) -> Any:
        """A variable of that checkpoint."""
        return tf.train.load_variable(self.model_dir, name)

    def _train_from(self, step: int) -> Callable:
        def input_fn(params: dict | None = None) -> None:
            self._fed = int(step)

        return input_fn

    def _evaluation(self, params: dict | None = None) -> None:
        self._fed = "evaluation"

    def _feed(self, input_fn: Any, function: str) -> None:
        self._fed = None
        if callable(input_fn):
            input_fn({"batch_size": 8})
        expect(
            self._fed is not None,
            f"{function} gets something else than an input_fn: data.train_from(step) makes one for training, and data.evaluate is one.",
        )

    def _newest(self) -> int:
        path = self.latest_checkpoint()
        if path is None:
            return 0
        try:
            return int(tf.train.load_variable(path, "global_step"))
        except (tf.errors.OpError, ValueError, IndexError):
            raise Wrong(
                "The loop starts from the newest checkpoint, which is damaged here, and TensorFlow stops with an "
                "error. resume_point finds the newest checkpoint that can be read."
            ) from None

    def _save(self, steps: Sequence[int]) -> None:
        if not steps:
            return
        with tf.Graph().as_default(), v1.Session() as session:
            step = v1.train.get_or_create_global_step()
            saver = v1.train.Saver(max_to_keep=100)  # the checkpoint file names those that are kept
            session.run(v1.global_variables_initializer())
            before = v1.train.get_checkpoint_state(self.model_dir)
            if before:
                saver.recover_last_checkpoints(before.all_model_checkpoint_paths)
            for number in steps:
                session.run(step.assign(number))
                saver.save(session, f"{self.model_dir}/model.ckpt", global_step=number)


class Killed(Exception):
    """Raised in the middle of a real job."""


class Kill(v1.train.SessionRunHook):
    """Ends a job after some steps, before the next checkpoint is written."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Counts the steps."""
        self._left -= 1
        if not self._left:
            raise Killed


@contextmanager
def real_job(every: int) -> Iterator[tuple[Any, SimpleNamespace]]:
    """Context manager: a TPUEstimator of one weight, and its data; meanwhile TensorFlow logs nothing.

    The weight after each step depends on the data of all steps before, so it tells a step that is left out.
    """

    def model_fn(features: tf.Tensor, labels: Any, mode: str, params: dict) -> Any:
        weight = v1.get_variable("weight", [], initializer=v1.zeros_initializer())
        loss = tf.reduce_mean((features - weight) ** 2)
        if mode == "eval":
            metrics = (lambda values: {"accuracy": v1.metrics.mean(values)}, [features])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        step = v1.train.get_global_step()
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_from(step: int) -> Callable:
        def input_fn(params: dict) -> tf.data.Dataset:
            numbers = tf.data.Dataset.range(step, step + 100).repeat()
            batches = numbers.map(lambda number: tf.fill([4], tf.cast(number, tf.float32)))
            return batches.map(lambda values: (values, values))

        return input_fn

    config = tpu.RunConfig(
        model_dir=tempfile.mkdtemp(prefix="job-"),
        save_checkpoints_steps=every,
        save_summary_steps=None,
        log_step_count_steps=None,
    )
    estimator = tpu.TPUEstimator(
        model_fn, config=config, use_tpu=False, train_batch_size=4, eval_batch_size=4
    )
    with quiet(logging.CRITICAL):
        yield (
            estimator,
            SimpleNamespace(train_from=input_from, evaluate=input_from(0), eval_steps=1),
        )
