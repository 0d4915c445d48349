"""Photographs that are drawn."""

import os
from pathlib import Path

from lab_utils import scratch
from lab_utils.datasets.photos import DatasetError, Photos, write_split


def synthetic(
    output_dir: str | os.PathLike[str],
    per_class: int,
    seed: int,
    eval_fraction: float = 0.2,
    num_workers: int = 1,
) -> Photos:
    """Draws flowers of five classes and splits them; `output_dir` appears only when all of it is there.

    Args:
        output_dir: a folder that does not exist yet, or is empty.
        per_class: pictures of each class.
        seed: another seed, other pictures.
        eval_fraction: as for `from_folder`.
        num_workers: processes that draw; 0 for one on each core.

    Raises:
        DatasetError: `output_dir` holds something, too few pictures were asked for, or this package was
            installed from its wheel, which does not draw.
    """
    output_dir = Path(output_dir).resolve()
    if per_class < 2:
        raise DatasetError(
            f"per_class is {per_class}; at least 2 are needed, to train and to evaluate."
        )
    if num_workers < 0:
        raise DatasetError(
            f"num_workers is {num_workers}; it should be 0 (one on each core) or more."
        )
    if output_dir.exists() and (not output_dir.is_dir() or any(output_dir.iterdir())):
        raise DatasetError(
            f"{output_dir} is there already and not an empty folder: choose another output_dir."
        )
    try:
        from lab_utils import synthetic_flowers
    except ImportError:
        raise DatasetError(
            "What draws the flowers is not in the installed package: run this in a checkout of the course. "
            "datasets.bundled() has 300 drawn flowers."
        ) from None

    output_dir.parent.mkdir(parents=True, exist_ok=True)
    with scratch.folder(f"{output_dir.name}.partial-", output_dir.parent) as partial:
        drawn = Path(partial) / "flowers"
        synthetic_flowers.write(drawn, per_class, seed, num_workers)
        write_split(drawn, drawn, eval_fraction)
        if output_dir.exists():
            output_dir.rmdir()
        drawn.rename(output_dir)
    return Photos.at(output_dir, output_dir)
