"""Predict from image files with an exported model, and draw what it says.

python -m lab_utils.flowers.predict --saved_model out/.../export/NUMBER --output page.png *.jpg
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab_utils import runtime


@dataclass(frozen=True)
class Prediction:
    """What the model says of one image file; probabilities are float32 [classes]."""

    path: Path
    class_id: int
    class_name: str
    probabilities: np.ndarray


def predict(
    saved_model: str | Path, paths: Sequence[str | Path], batch_size: int = 32
) -> tuple[list[Prediction], dict[Path, str]]:
    """Runs the SavedModel's `serving_default` on image files, in batches.

    Returns:
        The predictions, in the order of `paths`, and what was wrong with each file left out: one that
        is missing or cannot be decoded does not stop the others.
    """
    import tensorflow as tf

    serve = tf.saved_model.load(str(saved_model)).signatures["serving_default"]
    predictions, damaged, batch = [], {}, []

    def flush() -> None:
        if not batch:
            return
        answer = serve(image_bytes=tf.constant([encoded for _, encoded in batch]))
        for (path, _), class_id, name, probabilities in zip(
            batch,
            answer["class_id"].numpy(),
            answer["class"].numpy(),
            answer["probabilities"].numpy(),
            strict=True,
        ):
            predictions.append(Prediction(path, int(class_id), name.decode(), probabilities))
        batch.clear()

    for path in map(Path, paths):
        try:
            encoded = path.read_bytes()
            tf.io.decode_image(encoded, channels=3, expand_animations=False)
        except OSError as error:
            damaged[path] = error.strerror or str(error)
        except tf.errors.InvalidArgumentError as error:
            damaged[path] = f"not an image that can be decoded: {_plain(error.message)}"
        else:
            batch.append((path, encoded))
            if len(batch) == batch_size:
                flush()
    flush()
    return predictions, damaged


def _plain(message: str) -> str:
    """TensorFlow's message without the names of graph nodes around it."""
    return re.sub(r"\{\{.*?\}\} *| *\[Op:.*?\]", "", message.splitlines()[0])


def labels(saved_model: Path) -> list[str]:
    """The class names, in the order of the probabilities, as the export keeps them."""
    return (saved_model / "assets.extra" / "labels.txt").read_text(encoding="utf-8").splitlines()


def draw(
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    truth: Mapping[Path, str] | None = None,
):
    """Draws photographs with their probabilities; `truth` gives the true class where it is known.

    Returns:
        matplotlib Figure.
    """
    from PIL import Image

    from lab_utils import plots

    truth = truth or {}
    return plots.predictions(
        [Image.open(prediction.path) for prediction in predictions],
        np.stack([prediction.probabilities for prediction in predictions]),
        labels,
        [labels.index(truth[p.path]) if p.path in truth else None for p in predictions],
    )


def main() -> int:
    """Runs the command line; returns 1 where a file could not be used."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.predict",
        description="Predict from image files with an exported model.",
    )
    parser.add_argument(
        "--saved_model", type=Path, required=True, help="folder with saved_model.pb"
    )
    parser.add_argument(
        "--output", type=Path, help="PNG file for the photographs with their probabilities"
    )
    parser.add_argument("files", nargs="+", type=Path, help="JPEG, PNG, GIF or BMP files")
    arguments = parser.parse_args()
    if not (arguments.saved_model / "saved_model.pb").is_file():
        parser.error(
            f"{arguments.saved_model} holds no saved_model.pb: name an export's own folder"
        )
    runtime.quiet()
    predictions, damaged = predict(arguments.saved_model, arguments.files)
    for prediction in predictions:
        share = prediction.probabilities[prediction.class_id]
        print(f"{prediction.path}: {prediction.class_name} ({share:.1%})")
    for path, problem in damaged.items():
        print(f"{path}: left out, {problem}", file=sys.stderr)
    if arguments.output and predictions:
        draw(predictions, labels(arguments.saved_model)).savefig(arguments.output, dpi=110)
        print(f"Drawn in {arguments.output}")
    return 1 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
