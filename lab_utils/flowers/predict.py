"""Predict from image files with an exported model, and draw what it says.

python -m lab_utils.flowers.predict --saved_model out/.../export/NUMBER --output page.png *.jpg
"""

import argparse
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab_utils import runtime
from lab_utils.common import command, files
from lab_utils.common.figures import counted
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.convert.sources import check_size
from lab_utils.flowers.records import plain
from lab_utils.flowers.run_folder import split_labels

_OURS = rb"\x89PNG.*Matplotlib"  # a figure, and no photograph
_OUTPUTS = {"class_id", "class", "probabilities"}


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

    Each file is prepared by the converter's own function, so that the model sees what it was trained on:
    upright whatever the EXIF data say, in RGB, transparency laid on white.

    Returns:
        The predictions, in the order of `paths`, and what was wrong with each file left out: one that
        is missing or cannot be decoded does not stop the others.

    Raises:
        RuntimeError: the SavedModel cannot be loaded, or is not an export of the flowers model.
    """
    from lab_utils.estimator import tf

    serve = _load(saved_model)
    left_out: dict[Path, str] = {}

    def answers(batch: list[tuple[Path, bytes]]) -> Iterator[Prediction]:
        if not batch:
            return
        try:
            answer = serve(image_bytes=tf.constant([jpeg for _, jpeg in batch]))
        except tf.errors.InvalidArgumentError as error:
            if len(batch) == 1:
                left_out[batch[0][0]] = f"cannot be decoded: {plain(error.message)}"
            else:  # one of them cannot be decoded
                for one in batch:
                    yield from answers([one])
            return
        parts = (answer[name].numpy() for name in ("class_id", "class", "probabilities"))
        for (path, _), class_id, name, shares in zip(batch, *parts, strict=True):
            yield Prediction(path, int(class_id), name.decode(), shares)

    predictions: list[Prediction] = []
    batch: list[tuple[Path, bytes]] = []
    for path in map(Path, paths):
        if path.exists() and not (path.is_file() or path.is_dir()):
            left_out[path] = "a pipe or a device, not a file"
            continue
        try:
            check_size(path.stat().st_size)
            batch.append((path, to_rgb_jpeg(path.read_bytes()).data))
        except OSError as error:
            left_out[path] = error.strerror or str(error)
        except RejectError as error:
            left_out[path] = str(error)
        if len(batch) == batch_size:
            predictions += answers(batch)
            batch = []
    predictions += answers(batch)
    return predictions, {path: left_out[path] for path in map(Path, paths) if path in left_out}


def _load(saved_model: str | Path):
    """Loads what a SavedModel serves; raises RuntimeError where it is not the flowers model's."""
    from lab_utils.estimator import tf

    try:
        signatures = tf.saved_model.load(str(saved_model)).signatures
    except (tf.errors.OpError, OSError, ValueError, RuntimeError) as error:
        raise RuntimeError(
            f"{saved_model} cannot be loaded ({plain(str(error))}): is it whole? Export again"
        ) from error
    serve = signatures.get("serving_default")
    takes = serve and set(serve.structured_input_signature[1])
    gives = serve and set(serve.structured_outputs)
    if not serve or takes != {"image_bytes"} or not gives >= _OUTPUTS:
        raise RuntimeError(
            f"{saved_model} is not an export of the flowers model: it should take image_bytes and give "
            f"{', '.join(sorted(_OUTPUTS))}; saved_model_cli show --all --dir {saved_model} lists what it has"
        )
    return serve


def labels(saved_model: Path) -> list[str]:
    """The class names, in the order of the probabilities, as the export keeps them.

    Raises:
        RuntimeError: the export does not hold them.
    """
    path = saved_model / "assets.extra" / "labels.txt"
    try:
        return split_labels(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError) as error:
        raise RuntimeError(f"{path} cannot be read ({error}): export again") from error


def draw(
    predictions: Sequence[Prediction],
    labels: Sequence[str],
    truth: Mapping[Path, str] | None = None,
):
    """Draws photographs with their probabilities; `truth` gives the true class where it is known.

    Returns:
        matplotlib Figure.
    """
    from lab_utils.notebook import plots

    truth = truth or {}
    return plots.predictions(
        [_thumbnail(prediction.path) for prediction in predictions],
        np.stack([prediction.probabilities for prediction in predictions]),
        labels,
        [labels.index(truth[p.path]) if p.path in truth else None for p in predictions],
    )


def _thumbnail(path: Path):
    """The photograph as the model saw it, small: a PIL image; grey where it is too large to be drawn."""
    from PIL import Image

    try:
        return Image.open(io.BytesIO(to_rgb_jpeg(path.read_bytes(), shorter_side=320).data))
    except (
        RejectError
    ):  # such as Pillow's limit of 179 million pixels, which TensorFlow does not have
        return Image.new("RGB", (320, 240), "#c9ced6")


def _check_output(parser: argparse.ArgumentParser, output: Path | None, given: list[Path]) -> None:
    """Refuses what cannot be written, before the work, and a photograph: `--output *.jpg` names the first."""
    if output is None:
        return
    if output.suffix.lower() != ".png":
        parser.error(f"--output {output}: the figure is a PNG file; give a name that ends in .png")
    if output.exists() and any(path.exists() and output.samefile(path) for path in given):
        parser.error(f"--output {output} is one of the files to predict from: give another name")


def main() -> int:
    """Runs the command line; returns 1 where a file could not be used."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.flowers.predict",
        description="Predict from image files with an exported model.",
    )
    parser.add_argument(
        "--saved_model",
        type=files.path_argument,
        required=True,
        help="folder with saved_model.pb",
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
        parser.error(
            f"{arguments.saved_model} holds no saved_model.pb: name an export's own folder"
        )
    _check_output(parser, arguments.output, arguments.files)
    runtime.quiet()
    from lab_utils.notebook import plots

    try:
        names = labels(arguments.saved_model) if arguments.output else []
        predictions, left_out = predict(arguments.saved_model, arguments.files)
        if names and predictions and len(names) != len(predictions[0].probabilities):
            raise RuntimeError(
                f"{arguments.saved_model} names {counted(len(names), 'class')} and knows "
                f"{len(predictions[0].probabilities)}: export again"
            )
    except RuntimeError as error:
        print(f"predict: {error}", file=sys.stderr)
        return 1
    for prediction in predictions:
        share = prediction.probabilities[prediction.class_id]
        print(f"{prediction.path}: {prediction.class_name} ({share:.1%})")
    for path, problem in left_out.items():
        print(f"{path}: left out, {problem}", file=sys.stderr)
    if arguments.output and predictions:
        try:
            plots.save(draw(predictions, names), arguments.output)
        except OSError as error:
            print(f"{arguments.output}: {error.strerror or error}", file=sys.stderr)
            return 1
        print(f"Drawn in {arguments.output}")
    return 1 if left_out else 0


if __name__ == "__main__":
    command.run(main)
