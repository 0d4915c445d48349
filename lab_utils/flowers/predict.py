"""Predict from image files with an exported model, and draw what it says.

python -m lab_utils.flowers.predict --saved_model out/.../export/NUMBER --output page.png *.jpg
"""

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab_utils import runtime
from lab_utils.common import command, files
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.flowers.records import plain

_OURS = rb"\x89PNG.*Matplotlib"  # a figure, and no photograph
_OUTPUTS = ("class_id", "class", "probabilities")


@dataclass(frozen=True)
class Prediction:
    """What the model says of one image file; probabilities are float32 [classes]."""

    path: Path
    class_id: int
    class_name: str
    probabilities: np.ndarray


class Model:
    """An exported flowers model, loaded."""

    def __init__(self, saved_model: str | Path) -> None:
        """Raises RuntimeError where it cannot be loaded, or is not an export of the flowers model."""
        from lab_utils.estimator import tf

        try:
            self._loaded = tf.saved_model.load(str(saved_model))
        except (tf.errors.OpError, OSError, ValueError, RuntimeError) as error:
            raise RuntimeError(
                f"{saved_model} cannot be loaded ({plain(str(error))}), so it may be damaged. "
                "Export the model again"
            ) from error
        self._serve = self._loaded.signatures.get("serving_default")
        if not self._serve or not set(_OUTPUTS) <= set(self._serve.structured_outputs):
            raise RuntimeError(
                f"{saved_model} is not an export of the flowers model, which gives {', '.join(_OUTPUTS)}: "
                f"saved_model_cli show --all --dir {saved_model} lists what it has"
            )

    def answers(self, images: Sequence[bytes]) -> dict[str, Any]:
        """What the model says of images [B] that `to_rgb_jpeg` prepared.

        Returns:
            "class_id", int32 [B]; "class", a list of B names; "probabilities", float32 [B, classes].

        Raises:
            RuntimeError: one of them cannot be decoded.
        """
        from lab_utils.estimator import tf

        try:
            outputs = self._serve(image_bytes=tf.constant(list(images)))
        except tf.errors.InvalidArgumentError as error:
            raise RuntimeError(f"cannot be decoded: {plain(error.message)}") from error
        answers = {name: outputs[name].numpy() for name in _OUTPUTS}
        return answers | {"class": [name.decode() for name in answers["class"]]}


def predict(
    saved_model: str | Path, paths: Sequence[str | Path], batch_size: int = 32
) -> tuple[list[Prediction], dict[Path, str]]:
    """Runs the SavedModel's `serving_default` on image files, in batches.

    Each file is prepared by the converter's own function, so that the model sees what it was trained on:
    upright whatever the EXIF data say, in RGB, transparency laid on white.

    Returns:
        The predictions, in the order of `paths`, and what was wrong with each file left out: one that
        is missing or cannot be decoded does not stop the others.

    Raises:
        RuntimeError: the SavedModel cannot be loaded, or is not an export of the flowers model.
    """
    model = Model(saved_model)
    paths = list(map(Path, paths))
    predictions: list[Prediction] = []
    left_out: dict[Path, str] = {}
    for start in range(0, len(paths), batch_size):
        images: list[tuple[Path, bytes]] = []
        for path in paths[start : start + batch_size]:
            try:
                images.append((path, to_rgb_jpeg(path.read_bytes()).data))
            except OSError as error:
                left_out[path] = error.strerror or str(error)
            except RejectError as error:
                left_out[path] = str(error)
        if images:
            columns = model.answers([jpeg for _, jpeg in images]).values()
            for (path, _), class_id, name, shares in zip(images, *columns, strict=True):
                predictions.append(Prediction(path, int(class_id), name, shares))
    return predictions, left_out


def labels(saved_model: Path) -> list[str]:
    """The class names, in the order of the probabilities. Raises RuntimeError where there are none."""
    path = saved_model / "assets.extra" / "labels.txt"
    try:
        return path.read_text("utf-8").splitlines()
    except OSError as error:
        raise RuntimeError(f"{path}: {error.strerror}. Export the model again") from error
    except UnicodeDecodeError as error:
        raise RuntimeError(f"{path} is not UTF-8. Export the model again") from error


def draw(
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    truth: Mapping[Path, str] | None = None,
) -> Any:
    """Draws photographs with their probabilities; `truth` gives the true class where it is known.

    Returns:
        matplotlib Figure.
    """
    from PIL import Image

    from lab_utils.notebook import plots

    def small(path: Path) -> Image.Image:
        return Image.open(io.BytesIO(to_rgb_jpeg(path.read_bytes(), shorter_side=320).data))

    truth = truth or {}
    return plots.predictions(
        [small(prediction.path) for prediction in predictions],
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
        "--saved_model", type=files.path_argument, required=True, help="the folder of an export"
    )
    parser.add_argument(
        "--output",
        type=files.output(_OURS),
        help="PNG file for the photographs with their probabilities",
    )
    parser.add_argument(
        "files", nargs="+", type=files.path_argument, help="JPEG, PNG, GIF, BMP or WebP files"
    )
    arguments = parser.parse_args()
    if not (arguments.saved_model / "saved_model.pb").is_file():
        parser.error(f"{arguments.saved_model} holds no saved_model.pb")
    if arguments.output and arguments.output.suffix.lower() != ".png":
        parser.error(f"--output {arguments.output}: the name of a PNG file ends in .png")
    runtime.quiet()
    from lab_utils.notebook import plots

    try:
        names = labels(arguments.saved_model) if arguments.output else []
        predictions, left_out = predict(arguments.saved_model, arguments.files)
    except RuntimeError as error:
        print(f"predict: {error}", file=sys.stderr)
        return 1
    for prediction in predictions:
        share = prediction.probabilities[prediction.class_id]
        print(f"{prediction.path}: {prediction.class_name} ({share:.1%})")
    for path, reason in left_out.items():
        print(f"{path}: left out, {reason}", file=sys.stderr)
    if names and predictions and len(names) != len(predictions[0].probabilities):
        classes = len(predictions[0].probabilities)
        print(
            f"predict: the model has {classes} classes, but its labels.txt has {len(names)}. "
            "Export the model again",
            file=sys.stderr,
        )
        return 1
    if names and predictions:
        plots.save(draw(predictions, names), arguments.output)
        print(f"Drawn in {arguments.output}")
    return 1 if left_out else 0


if __name__ == "__main__":
    command.run(main)
