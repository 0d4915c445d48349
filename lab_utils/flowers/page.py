"""A page of pictures about a finished run: predictions, confusion, learning curves."""

import contextlib
import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2

from lab_utils import datasets
from lab_utils.common import files
from lab_utils.common.figures import counted
from lab_utils.flowers.predict import draw, predict
from lab_utils.notebook import look

SAMPLE = 12  # photographs on the page
_PAGE = Path(__file__).with_suffix(".html")


def training_losses(run_dir: Path) -> list[tuple[int, float]]:
    """(step, training loss) pairs from the run's event files; a step trained twice counts as last written."""
    from lab_utils.estimator import tf, v1

    losses = {}
    for path in sorted(map(str, run_dir.glob("events.out.tfevents.*.host"))):
        # A run that was killed leaves half an event at its end.
        with contextlib.suppress(tf.errors.DataLossError):
            for event in v1.train.summary_iterator(path):
                for value in event.summary.value:
                    if value.tag == "train/loss":
                        losses[event.step] = float(tf.make_ndarray(value.tensor))
    return sorted(losses.items())


def curves(run_dir: Path) -> Any:
    """Draws loss and accuracy of a finished run over its steps; returns a matplotlib Figure."""
    from lab_utils.flowers.checkpoints import read_history
    from lab_utils.notebook import plots

    history = read_history(str(run_dir))
    return plots.learning_curves(
        training_losses(run_dir), history, 1 / len(_result(run_dir)["labels"])
    )


def answers(run_dir: Path, eval_csv: Path) -> Any:
    """Draws SAMPLE held-out photographs with what the export of a finished run says of them.

    A damaged one is left out.

    Args:
        run_dir: the training run's output_dir, with result.json.
        eval_csv: rows of path, label; the photographs are drawn from it, always the same ones.

    Returns:
        matplotlib Figure.

    Raises:
        OSError: the run's files or the CSV cannot be read.
        RuntimeError: no photograph can be shown, or the export cannot be loaded.
    """
    result = _result(run_dir)
    truth = datasets.classes(eval_csv)
    order = random.Random(0).sample(list(truth), min(SAMPLE, len(truth)))
    predictions, left_out = predict(result["saved_model"], order)
    if not predictions:
        raise RuntimeError(
            f"none of {counted(len(left_out), 'photograph')} of {eval_csv} can be used"
        )
    return draw(predictions, result["labels"], truth)


def _result(run_dir: Path) -> dict[str, Any]:
    return json.loads((run_dir / "result.json").read_text("utf-8"))


def make(
    run_dir: Path, eval_csv: Path, output_dir: Path, facts: Mapping[str, str], credit: str
) -> Path:
    """Draws the pictures of a finished run and writes `index.html` beside them.

    Args:
        run_dir: the training run's output_dir, with result.json and history.jsonl.
        eval_csv: rows of path, label; the photographs shown are drawn from it, always the same ones.
        output_dir: where the page goes.
        facts: what the run took, name -> figure with its unit and kind.
        credit: whose photographs these are.

    Returns:
        The page's path.

    Raises:
        OSError: the run's files, the CSV or the page's folder cannot be used.
        RuntimeError: no photograph of the evaluation can be shown, or the export cannot be loaded.
    """
    from lab_utils.notebook import plots

    result = _result(run_dir)
    labels = result["labels"]
    predictions = answers(run_dir, eval_csv)

    output_dir.mkdir(parents=True, exist_ok=True)
    plots.save(predictions, output_dir / "predictions.png")
    plots.save(plots.confusion(result["confusion"], labels), output_dir / "confusion.png")
    plots.save(curves(run_dir), output_dir / "learning_curves.png")
    text = jinja2.Template(_PAGE.read_text("utf-8"), autoescape=True).render(
        title="Flowers, from photographs to predictions",
        summary=f"After {counted(result['step'], 'step')}, the model names {result['accuracy']:.1%} of "
        f"{counted(result['images'], 'held-out photograph')} correctly (measured here). A guess would "
        f"be right for {1 / len(labels):.0%}.",
        facts=facts,
        credit=credit,
        text=look.TEXT,
        soft=look.NEUTRAL,
    )
    files.write(output_dir / "index.html", text)
    return output_dir / "index.html"
