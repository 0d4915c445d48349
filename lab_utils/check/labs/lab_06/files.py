"""Files: TODO 6a, reading them, and 6d, a host's share."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from lab_utils.check.labs.calls import recorded
from lab_utils.check.labs.lab_06.images import jpeg
from lab_utils.check.outcome import Wrong
from lab_utils.check.todos import todo
from lab_utils.check.tools import a, expect, expect_dataset
from lab_utils.estimator import tf

FILES, EACH = 4, 6


class Context:
    """Stands for TPUEstimator's params["context"]."""

    def __init__(self, host: int, hosts: int) -> None:
        self._deployment = ("/cpu:0", host, hosts, 8)

    def current_input_fn_deployment(self) -> tuple:
        """(device, host, hosts, cores of the host), as the genuine one."""
        return self._deployment


@contextlib.contextmanager
def files_of_records() -> Iterator[list[str]]:
    """Four files of six records; each record has a class of its own, from 1 to 24."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"train-{n:05d}-of-{FILES:05d}")) for n in range(FILES)]
        encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg()]))
        label = 0
        for path in paths:
            with tf.io.TFRecordWriter(path) as writer:
                for _ in range(EACH):
                    label += 1
                    number = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
                    features = {"image/encoded": encoded, "image/class/label": number}
                    example = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(example.SerializeToString())
        yield paths


@todo(
    "6a",
    hints=(
        'from_tensor_slices makes a dataset of paths; interleave makes a dataset of records of each.',
        'How many files may be open at once, who reads them, and does their order matter? Three arguments of interleave.',
    ),
    why='While one reader waits for a bucket, others have their record.',
)
def reading(read: Callable) -> str:
    """All records once, several files open and read at the same time."""
    with files_of_records() as files:
        with recorded() as calls:
            dataset = read(files)
        expect_dataset(dataset, "read")
        expect(
            dataset.element_spec == tf.TensorSpec([], tf.string),
            f"Each element should be one record, a scalar string; yours is {dataset.element_spec}.",
        )
        interleaves = [call for call in calls if call.name == "interleave"]
        elements = list(dataset.take(100).as_numpy_iterator())
        records = set(tf.data.TFRecordDataset(files).as_numpy_iterator())
        expect(
            not any(element.decode("latin-1") in files for element in elements),
            "The elements are the paths of the files, not the records in them: interleave with "
            "tf.data.TFRecordDataset.",
        )
        expect(
            set(elements) <= records,
            "The elements are not the records of the files: tf.data.TFRecordDataset reads those.",
        )
        expect(
            len(elements) <= len(records),
            f"{FILES} files of {EACH} records give more than {FILES * EACH}: each record once, without repeat.",
        )
        expect(bool(interleaves), "This reads one file after another: use interleave.")
        settings = interleaves[0].arguments
        expect(
            settings.get("num_parallel_calls") is not None,
            "interleave without num_parallel_calls opens several files and reads them by turns, in one "
            "thread.",
        )
        expect(
            settings.get("cycle_length") != 1,
            "With cycle_length=1 only one file is open at a time.",
        )
        expect(
            settings.get("deterministic") is False
            or dataset.options().deterministic is False
            or any("map_func" not in call.arguments for call in interleaves),  # num_parallel_reads
            "As it is, the order of the records is fixed, and a reader that has its record waits for one "
            "that has not: deterministic=False.",
        )
    expect(
        len(elements) == len(set(elements)) == FILES * EACH,
        f"{FILES} files of {EACH} records should give {FILES * EACH} records, once each; yours give "
        f"{len(elements)}.",
    )
    return "All records, once each, from several files at a time."


@todo(
    "6d",
    hints=(
        'Look for the context in params first: without one there is one host.',
        'Which of the four things that the deployment holds do you need? Compare the count of files with one of them.',
        'A slice with a step deals files out like cards.',
    ),
    why='Dealt out one by one, files differ by at most one between hosts, and no host is without.',
)
def sharing(share: Callable) -> str:
    """Every file for one host, once; an error where a host would have none."""
    files = [f"train-{n:05d}-of-00010" for n in range(10)]
    try:
        alone = share(list(files), {"batch_size": 8})
    except (KeyError, AttributeError):
        raise Wrong(
            'Without a TPU there is no "context" in params; one host then reads all files.'
        ) from None
    expect(alone is not None, "share returns None (is a return missing?)")
    expect(
        list(alone) == files,
        'Without a "context" in params there is one host: share should return all the files, and yours does not.',
    )
    for hosts in (1, 2, 4, 7, 10):
        shares = []
        for host in range(hosts):
            try:
                mine = share(list(files), {"batch_size": 8, "context": Context(host, hosts)})
            except (ValueError, AssertionError, TypeError) as error:
                raise Wrong(
                    f"For host {host} of {hosts}, with 10 files, share raises {type(error).__name__}: {error}. "
                    "The deployment is (device, host, hosts, cores)."
                ) from None
            expect(
                isinstance(mine, list | tuple),
                f"share should return a list of files; yours returns {a(mine)}.",
            )
            expect(
                len(mine) > 0,
                f"With 10 files and {hosts} hosts, host {host} has none: it would have nothing to do, and the "
                "others would wait for it. Deal the files out one by one.",
            )
            shares += mine
        told = f"With 10 files and {hosts} hosts"
        lost = sorted(set(files) - set(shares))
        expect(not lost, f"{told}, nobody reads {', '.join(lost)}.")
        expect(len(shares) == len(files), f"{told}, some files are read twice.")
    for host in (0, 5):
        _refused(share, host)
    return "Every file has one host, and every host has a file."


def _refused(share: Callable, host: int) -> None:
    """Raises Wrong unless 3 files are too few for 6 hosts."""
    told = "3 files for 6 hosts leave some with nothing to read: raise a ValueError"
    try:
        share(["train-a", "train-b", "train-c"], {"batch_size": 8, "context": Context(host, 6)})
    except (NotImplementedError, Wrong):
        raise
    except ValueError as error:
        numbers = set(re.findall(r"\d+", str(error)))
        expect(
            {"3", "6"} <= numbers,
            f"3 files for 6 hosts: the error should say how many there are of both, and reads {str(error)!r}.",
        )
    except Exception as error:
        raise Wrong(f"{told}; yours raises {type(error).__name__}: {error}") from None
    else:
        raise Wrong(f"{told}.")
