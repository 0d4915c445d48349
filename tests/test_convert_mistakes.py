"""What people give the converter by mistake, and what they are told."""

import os

import pytest
from convert_data import LABELS, Data, jpeg, rejects

from lab_utils.convert import ConversionError, read_manifest
from lab_utils.convert.__main__ import main


@pytest.fixture
def data(tmp_path) -> Data:
    return Data(tmp_path)


def told(data: Data, capsys, *flags: str) -> str:
    """Run a conversion that is to be refused; return the one line that it says."""
    assert main([*data.flags, *flags]) == 1
    errors = capsys.readouterr().err
    line = errors.splitlines()[-1]
    assert line.startswith("error: ")
    assert "Traceback" not in errors
    return line


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no_such_flag=1"], "--no_such_flag: neither a flag of the converter nor one of Beam's"),
        (["--no_such_flag", "1"], "--no_such_flag: neither a flag"),
        (["photos"], "photos: belongs to no flag"),
        (["--direct_num_workers=2", "a b"], "a b: belongs to no flag"),
        (["--direct_num_workers=two"], "argument --direct_num_workers: invalid int value: 'two'"),
        (["--train_shards=1000"], "--train_shards 1000: must be from 1 to the number of rows, 90"),
        (["--labels_file=absent"], "cannot read absent: No such file or directory"),
        (["--shard_mb=0"], "--shard_mb must be above 0"),
        (["--shard_mb=nan"], "--shard_mb must be above 0, not nan"),
        (["--stall_minutes=nan"], "--stall_minutes must be above 0, not nan"),
        (["--max_reject_share=5"], "--max_reject_share must be from 0 to 1"),
        (["--max_reject_share=nan"], "--max_reject_share must be from 0 to 1"),
        (["--workers=-1"], "--workers must be 0 or more"),
        (["--runner=DirectRunner", "--workers=2"], "--workers is for FnApiRunner only"),
        (["--runner=Nonsense"], "--runner Nonsense: no runner of Beam's has this name; there are"),
        (["--runner=no.such.Runner"], "--runner no.such.Runner cannot be used here: No module"),
        (["--runner=os.Runner"], "--runner os.Runner cannot be used here: module 'os' has no"),
        (["--runner=DaskRunner"], "needs a running cluster: --dask_client_address"),
        ([r"--output_dir=C:\records"], r"C:\records is a path of Windows, and this is"),
        (
            ["--train_csv=gs:///train.csv"],
            "gs:///train.csv names no bucket (is a shell variable unset",
        ),
        (["--output_dir=gs://"], "gs:// names no bucket"),
        (["--train_csv=~nobody.here/a.csv"], "there is no home folder ~nobody.here"),
        (["--output_dir=absent://bucket/out"], "cannot reach absent://bucket/out"),
        (["--output_dir=file:///out"], "Beam has no file system for file://; give a local path"),
    ],
)
def test_mistakes_are_told_in_one_line(data, capsys, flags, message):
    assert message in told(data, capsys, *flags)
    assert not data.out.exists()


@pytest.mark.parametrize("flag", ["train_csv", "eval_csv", "labels_file", "output_dir"])
@pytest.mark.parametrize("path", ["", " "])
def test_an_empty_path_is_refused(data, capsys, monkeypatch, flag, path):
    monkeypatch.chdir(data.folder)
    before = set(os.listdir())
    assert f"--{flag} is empty" in told(data, capsys, f"--{flag}={path}", "--overwrite")
    assert set(os.listdir()) == before


def test_a_zero_byte_in_a_path_is_refused(data):
    data.out = "a\0b"
    with pytest.raises(ConversionError, match="--output_dir holds a zero byte"):
        data.convert()


@pytest.mark.parametrize("name", ["train.csv", "eval.csv", "labels.txt"])
def test_a_pipe_as_a_list_is_refused(data, capsys, name):
    os.remove(data.folder / name)
    os.mkfifo(data.folder / name)
    assert f"{name} is a pipe or a device" in told(data, capsys)
    assert not data.out.exists()


def test_an_output_folder_that_cannot_be_one(data, capsys):
    data.out.write_text("a thesis")
    assert "out is a file, or below one: give a new or empty folder" in told(data, capsys)
    assert "out is a file" in told(data, capsys, "--overwrite")
    assert "below is a file, or below one" in told(data, capsys, f"--output_dir={data.out}/below")
    assert data.out.read_text() == "a thesis"
    data.out.unlink()
    data.out.symlink_to(data.folder / "elsewhere")
    assert "is a link to a folder that is not there" in told(data, capsys)


def test_the_smallest_size_of_a_shard_gives_one_a_row(data):
    assert len(data.convert(shard_mb=1e-320).splits["eval"].shards) == 10


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("https://example.org/a.jpg", "Beam has no file system for https://; give a local path"),
        ("file:///a.jpg", "Beam has no file system for file://; give a local path"),
        ("s3://bucket/a.jpg", "install apache-beam[aws] for s3://"),
        ("hdfs://host/a.jpg", "install apache-beam[hdfs] for hdfs://"),
    ],
)
def test_a_row_that_cannot_be_reached_is_set_aside(data, path, reason):
    data.write("train", [f"{n}.jpg,roses".encode() for n in range(90)] + [f"{path},roses".encode()])
    manifest = data.convert(max_reject_share=0.1)
    assert manifest.splits["train"].examples == 90
    (reject,) = rejects(data.out)
    assert reject[:3] == ["train", "91", f"{path},roses"]
    assert reason in reject[3]


def test_what_goes_wrong_in_a_row_names_the_list_and_the_row(data, monkeypatch):
    def broken(*_):
        raise RuntimeError("out of order")

    monkeypatch.setattr("lab_utils.convert.records.encode_example", broken)
    with pytest.raises(
        ConversionError,
        match=r"shard (train|eval)-\S+ failed 3 times on \S+, the last time for this: "
        r".*\.csv, row \d+ \(\d+\.jpg,\w+\): RuntimeError: out of order.*nothing was published",
    ):
        data.convert(train_shards=1)
    assert list(data.out.iterdir()) == []


def test_control_characters_do_not_reach_the_terminal(data, capsys):
    data.write("eval", [b"\x1b[2J\x1b]0;title\x07absent.jpg,roses"])
    assert r"row 1 (\x1b[2J\x1b]0;title\x07absent.jpg,roses)" in told(data, capsys)
    data.out = data.folder / "two\nlines\x1b"
    (data.folder / "labels.txt").write_text("\n".join([*LABELS, "\x1b[31mred"]))
    data.write("eval", [b"0.jpg,roses"])
    assert main(data.flags) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"two\nlines\x1b" in shown and r"\x1b[31mred: 0" in shown


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"0.jpg,roses\r1.jpg,roses\r", "contains a carriage return"),
        (jpeg(0) * 300, "a zero byte stands in this line"),
        (b"a" * 200_000 + b",roses\n", "not a row of a list: field larger than"),
    ],
)
def test_a_list_that_is_none_is_told_briefly(data, capsys, content, reason):
    (data.folder / "eval.csv").write_bytes(content)
    line = told(data, capsys, "--max_reject_share=1")
    assert "none of " in line and reason in line
    assert line.isprintable() and len(line) < 1500


def test_folders_of_any_encoding(tmp_path, capfd):
    folder = tmp_path / os.fsdecode(b"photos \xff")
    folder.mkdir()
    data = Data(folder)
    names = [b"absent \xfc.jpg", *(b"%d.jpg" % n for n in range(90))]
    data.write("train", [name + b",roses" for name in names])
    assert main([*data.flags, "--max_reject_share=0.1"]) == 0
    assert r"photos \udcff" in capfd.readouterr().out
    assert read_manifest(str(data.out)).splits["train"].examples == 90
    assert b"photos \xff/absent \xc3\xbc.jpg" in (data.out / "rejects.csv").read_bytes()
