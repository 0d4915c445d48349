"""What the converter's tests share: a small set of images, and readers of what the converter writes."""

import csv
import io
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import google_crc32c
from PIL import Image

from lab_utils.convert import convert
from lab_utils.convert.records import Example

LABELS = ["roses", "daisy", "tulips"]
COMMAND = [sys.executable, "-m", "lab_utils.convert"]


def jpeg(seed: int, size=(16, 12)) -> bytes:
    colour = tuple(random.Random(seed).choices(range(256), k=3))
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "JPEG")
    return file.getvalue()


class Data:
    """A small set of images in a folder of its own: 90 rows to train, sorted by class, and 10 to evaluate."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.out = folder / "out"
        for number in range(100):
            (folder / f"{number}.jpg").write_bytes(jpeg(number))
        (folder / "labels.txt").write_text("\n".join(LABELS) + "\n")
        self.write("train", [f"{n}.jpg,{LABELS[n // 30]}".encode() for n in range(90)])
        self.write("eval", [f"{n}.jpg,{LABELS[n % 3]}".encode() for n in range(90, 100)])

    def write(self, split: str, lines: list[bytes]) -> None:
        (self.folder / f"{split}.csv").write_bytes(b"".join(line + b"\n" for line in lines))

    @property
    def inputs(self) -> dict[str, Path]:
        return {
            "train_csv": self.folder / "train.csv",
            "eval_csv": self.folder / "eval.csv",
            "labels_file": self.folder / "labels.txt",
            "output_dir": self.out,
        }

    def convert(self, **options):
        return convert(**self.inputs, **options)

    @property
    def flags(self) -> list[str]:
        return [f"--{name}={value}" for name, value in self.inputs.items()]


def records(path: str | Path) -> list[bytes]:
    """Read a TFRecord file and check its checksums, after the format's description."""

    def unmask(masked: int) -> int:
        rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
        return ((rotated >> 17) | (rotated << 15)) & 0xFFFFFFFF

    content = memoryview(Path(path).read_bytes())
    found = []
    while content:
        length = int.from_bytes(content[:8], "little")
        record = bytes(content[12 : 12 + length])
        assert unmask(int.from_bytes(content[8:12], "little")) == google_crc32c.value(
            bytes(content[:8])
        )
        checksum = int.from_bytes(content[12 + length : 16 + length], "little")
        assert unmask(checksum) == google_crc32c.value(record)
        found.append(record)
        content = content[16 + length :]
    return found


def features(record: bytes) -> dict[str, bytes | int]:
    values = {}
    for name, feature in Example.FromString(record).features.feature.items():
        (values[name],) = getattr(feature, feature.WhichOneof("kind")).value
    return values


def rejects(folder: Path, name: str = "rejects.csv") -> list[list[str]]:
    with open(folder / name, newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["split", "row", "text", "reason"]
    return rows


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.tfrecord")}


def start_and_wait_for_the_first_shard(data: Data, *flags: str) -> subprocess.Popen:
    """Start a conversion in a process group of its own, and return once a shard is being written."""
    process = subprocess.Popen(
        [*COMMAND, *data.flags, *flags],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell that runs the tests in the background has its children ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    while process.poll() is None and not list(data.out.glob(".in-progress-*/*/*.tfrecord")):
        time.sleep(0.01)
    assert process.poll() is None, "it ended before it could be struck"
    return process
