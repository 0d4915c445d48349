"""Files and hosts: TODO 6a, reading them, 6d, a host's share, and 6e, who asks for which batch."""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from numbers import Integral
from pathlib import Path
from typing import Any

from lab_utils.check.labs.calls import recorded
from lab_utils.check.labs.lab_06.images import jpeg
from lab_utils.check.todos import Cases, todo
from lab_utils.check.tools import expect, expect_dataset, returns
from lab_utils.estimator import tf


class Context:
    """Stands for TPUEstimator's params["context"]."""

    def __init__(self, host: int, hosts: int) -> None:
        self._deployment = ("/cpu:0", host, hosts, 8)

    def current_input_fn_deployment(self) -> tuple:
        """(device, host, hosts, cores of the host), as the genuine one."""
        return self._deployment


@contextlib.contextmanager
def files_of_records(count: int = 4) -> Iterator[list[str]]:
    """Files of six records; each record has a class of its own, from 1 on."""
    encoded = tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg()]))
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"train-{n:05d}-of-{count:05d}")) for n in range(count)]
        for number, path in enumerate(paths):
            with tf.io.TFRecordWriter(path) as writer:
                for label in range(6 * number + 1, 6 * number + 7):
                    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
                    features = {"image/encoded": encoded, "image/class/label": label}
                    example = tf.train.Example(features=tf.train.Features(feature=features))
                    writer.write(example.SerializeToString())
        yield paths


@todo(
    "6a",
    hints=(
        "from_tensor_slices makes a dataset of paths; interleave makes a dataset of records of each.",
        "How many files may be open at once, who reads them, and does their order matter? Three arguments of interleave.",
    ),
    why="While one reader waits for a bucket, others have their record.",
)
def reading(read: Callable) -> str:
    """All records once, several files open and read at the same time."""
    with files_of_records(9) as files:
        with recorded() as calls:
            dataset = read(files)
        expect_dataset(dataset, "read")
        spec = dataset.element_spec
        expect(
            spec == tf.TensorSpec([], tf.string),
            f"Each element should be one record, a scalar string; yours is {spec}.",
        )
        elements = list(dataset.take(100).as_numpy_iterator())
        records = set(tf.data.TFRecordDataset(files).as_numpy_iterator())
    expect(
        not any(element.decode("latin-1") in files for element in elements),
        "The elements are the paths of the files, not the records in them: interleave with tf.data.TFRecordDataset.",
    )
    strange = "The elements are not the records of the files: tf.data.TFRecordDataset reads those."
    expect(set(elements) <= records, strange)
    expect(
        len(elements) == len(set(elements)) == 54,
        f"9 files of 6 records should give 54 records, each record once, without repeat; yours give {len(elements)}, "
        f"{len(set(elements))} of them different.",
    )
    interleaves = [call for call in calls if call.name == "interleave"]
    expect(bool(interleaves), "This reads one file after another: use interleave.")
    settings = interleaves[0].arguments
    expect(
        settings.get("num_parallel_calls") is not None,
        "interleave without num_parallel_calls opens several files and reads them by turns, in one thread.",
    )
    expect(
        settings.get("cycle_length") != 1, "With cycle_length=1 only one file is open at a time."
    )
    in_any_order = (
        settings.get("deterministic") is False or dataset.options().deterministic is False
    )
    expect(
        in_any_order
        or any("map_func" not in call.arguments for call in interleaves),  # num_parallel_reads
        "As it is, the order of the records is fixed, and a reader that has its record waits for one that has not: "
        "deterministic=False.",
    )
    return "All records, once each, from several files at a time."


@todo(
    "6d",
    hints=(
        "Look for the context in params first: without one there is one host.",
        "Which of the four things that the deployment holds do you need? Compare the count of files with one of them.",
        "A slice with a step deals files out like cards.",
    ),
    why="Dealt out one by one, files differ by at most one between hosts, and no host is without.",
)
def sharing(share: Callable) -> Cases:
    """Every file for one host, once; an error where a host would have none."""
    files = [f"train-{n:05d}-of-00010" for n in range(10)]
    try:
        alone = share(list(files), {"batch_size": 8})
    except (KeyError, AttributeError) as error:
        alone = f"{type(error).__name__}: {error}"
    yield 'Where there is no "context" in params there is one host, which reads all files', alone
    for hosts in (1, 2, 4, 7, 10):
        shares = []
        for host in range(hosts):
            mine = share(list(files), {"batch_size": 8, "context": Context(host, hosts)})
            returns(mine, (list, tuple), "share", "a list of files")
            told = f"With 10 files and {hosts} hosts"
            expect(
                len(mine) > 0,
                f"{told}, host {host} has none: it would have nothing to do, and the others would wait for it. Deal "
                "the files out one by one.",
            )
            shares += mine
        lost = sorted(set(files) - set(shares))
        expect(not lost, f"{told}, nobody reads {', '.join(lost)}.")
        expect(len(shares) == len(files), f"{told}, some files are read twice.")
    for host in (0, 5):
        try:
            few: Any = share(files[:3], {"batch_size": 8, "context": Context(host, 6)})
        except ValueError as error:
            few = f"ValueError: {error}"
            if {"3", "6"} <= set(re.findall(r"\d+", str(error))):
                few = "ValueError"
        yield (
            f"3 files for 6 hosts, on host {host} (raise a ValueError that says both numbers)",
            few,
        )
    return "Every file has one host, and every host has a file."


_CORE = "its batch is for one core, the global batch over all cores"


@todo(
    "6e",
    hints=(
        "Read the second column of the table for the calls, and the third for the batch.",
        "In which modes is a batch for one core alone? There the global batch is divided by all cores.",
    ),
    why="The mode decides who asks; the global batch is divided by those who share it.",
)
def modes(input_calls: Callable) -> Cases:
    """Calls and batch sizes of the four input modes, on 4 hosts with 32 cores."""
    for mode, told in (
        (
            "PER_HOST_V1",
            "once for each host; its batch is a host's share, for all cores of that host",
        ),
        ("PER_HOST_V2", f"once for each host; {_CORE}"),
        ("PER_SHARD_V1", f"once for each core; {_CORE}"),
        (
            "BROADCAST",
            "once, on host 0, however many hosts there are; every core gets the whole batch",
        ),
    ):
        found = input_calls(mode, 960, 4, 32)
        yield f"{mode}, 4 hosts, 32 cores, a global batch of 960 (it is called {told})", found
        whole = all(isinstance(each, Integral) for each in found)
        expect(
            whole,
            f"A batch size is a whole number; yours gives {found} for {mode}: divide with //.",
        )
    return "Once for each host, core or job, and the batch of those who share it."
