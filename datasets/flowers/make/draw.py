"""Five kinds of flower, drawn: pictures to train on without a download, any number of them.

The kinds differ in shape and bear the same colours, so that a model must look at petals to tell them apart.
Picture i of a class depends on the seed, the class and i alone.
"""

import functools
import multiprocessing
import os
from pathlib import Path

from heads import HEADS
from scenes import render
from tqdm import tqdm

__all__ = ["CLASSES", "render", "write"]

CLASSES = tuple(sorted(HEADS))


def write(folder: Path, per_class: int, seed: int, num_workers: int = 1) -> None:
    """Draws `folder`/CLASS/CLASS_00000.jpg and so on.

    Args:
        folder: made where it is missing; files of these names in it are overwritten.
        per_class: pictures of each class.
        seed: another seed, other pictures.
        num_workers: processes; 0 for one on each core.
    """
    for label in CLASSES:
        (folder / label).mkdir(parents=True, exist_ok=True)
    jobs = [(label, index) for index in range(per_class) for label in CLASSES]
    task = functools.partial(_write_one, folder, seed)
    bar = functools.partial(tqdm, total=len(jobs), desc="drawing", unit="picture")
    workers = min(num_workers or os.cpu_count() or 1, len(jobs))
    if workers > 1:
        # Not forked: a notebook's process may hold threads of TensorFlow.
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            for _ in bar(pool.imap_unordered(task, jobs, chunksize=4)):
                pass
    else:
        for job in bar(jobs):
            task(job)


def _write_one(folder: Path, seed: int, job: tuple[str, int]) -> None:
    label, index = job
    (folder / label / f"{label}_{index:05d}.jpg").write_bytes(render(label, index, seed))
