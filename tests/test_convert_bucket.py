"""The converter and its readers on gs:// by the real protocol, with a bucket that is slow and fails."""

import pytest
from convert_data import Data, contents

pytest.importorskip("google.cloud.storage", reason="the client of gs:// is not installed")
pytest.importorskip("gcp_storage_emulator", reason="the emulator of gs:// is not installed")

from bucket_server import FAILURES, use_bucket

from lab_utils.convert import convert, read_manifest, storage
from lab_utils.convert.publishing import unfinished

PLACE = "gs://bucket/flowers"


@pytest.fixture
def box(monkeypatch):
    with use_bucket(monkeypatch) as box:
        yield box


@pytest.fixture
def data(tmp_path, box) -> Data:
    """The small set, cut to 20 images, here and in the bucket."""
    data = Data(tmp_path)
    data.write("train", [f"{n}.jpg,roses".encode() for n in range(16)])
    data.write("eval", [f"{n}.jpg,roses".encode() for n in range(16, 20)])
    for name in ["train.csv", "eval.csv", "labels.txt", *(f"{n}.jpg" for n in range(20))]:
        with storage.open_to_write(f"{PLACE}/{name}") as file:
            file.write((data.folder / name).read_bytes())
    return data


def convert_there(**options):
    lists = (f"{PLACE}/{name}" for name in ("train.csv", "eval.csv", "labels.txt"))
    return convert(*lists, f"{PLACE}/out", train_shards=3, **options)


def there() -> dict[str, bytes]:
    manifest = read_manifest(f"{PLACE}/out")
    found = {}
    for split in manifest.splits:
        for path in manifest.paths(split):
            with storage.open_to_read(path) as file:
                found[path.rpartition("/")[2]] = file.read()
    return found


@pytest.mark.slow
def test_a_slow_bucket_that_fails_loses_nothing(data, box):
    data.convert(train_shards=3)
    box.latency, box.failing = 0.003, 0.1
    convert_there()
    assert there() == contents(data.out)
    box.failing = 0
    assert unfinished(f"{PLACE}/out") == []
    assert all(box.count[kind] for kind in FAILURES), box.count
    assert storage.list_names(f"{PLACE}/out") == {path.name for path in data.out.iterdir()}


def test_an_image_that_is_absent_from_the_bucket_is_set_aside(data, box):
    with storage.open_to_write(f"{PLACE}/train.csv") as file:
        file.write(b"".join(b"%d.jpg,roses\n" % n for n in range(3)) + b"absent.jpg,roses\n")
    manifest = convert_there(max_reject_share=0.3)
    assert (manifest.splits["train"].examples, manifest.splits["train"].rejected) == (3, 1)
