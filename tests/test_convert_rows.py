"""The input lists, in the forms that editors leave them in, and what is said of those that cannot serve."""

import pytest
from convert_data import LABELS, Data

from lab_utils.convert import ConversionError
from lab_utils.convert.__main__ import main
from lab_utils.convert.errors import RejectError
from lab_utils.convert.plan import SplitPlan, plan_split, read_rows, write_rows
from lab_utils.convert.rows import parse_row, read_labels, read_lines


@pytest.fixture
def data(tmp_path) -> Data:
    return Data(tmp_path)


def write(folder, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def error_of(data: Data, capsys, *flags: str) -> str:
    """Run a conversion that is to be refused; return the one line that it says."""
    assert main([*data.flags, *flags]) == 1
    errors = capsys.readouterr().err
    line = errors.splitlines()[-1]
    assert line.startswith("error: ") and line.isprintable()
    assert "Traceback" not in errors
    return line


def test_lines_keep_their_numbers_and_lose_their_ends(tmp_path):
    path = write(tmp_path, "a.csv", b"\xef\xbb\xbfa.jpg,x\r\n\r\n\xef\xbb\xbfb.jpg,y\n")
    assert list(read_lines(path)) == [(1, b"a.jpg,x"), (3, b"b.jpg,y")]


@pytest.mark.parametrize(
    "content", ["a.jpg,x\n".encode("utf-16"), b"PK\x03\x04\x14\0", b"x" * 2**20]
)
@pytest.mark.parametrize("name", ["train.csv", "labels.txt"])
def test_what_is_no_text_is_refused_before_the_work(data, name, content):
    (data.folder / name).write_bytes(content)
    with pytest.raises(ConversionError, match=f"{name} is not text in UTF-8"):
        data.convert()


def test_labels_keep_their_order_and_are_told_by_line_where_they_cannot_serve(tmp_path):
    path = write(tmp_path, "labels.txt", "\ufeffroses\r\ndaisy\r\nA\u0308pfel\r\n\r\n".encode())
    assert read_labels(path) == ["roses", "daisy", "\u00c4pfel"]
    for content, message in (
        (b"a\nb\na\n", "line 3: class 'a' is already on line 1"),
        ("a\n\u00c4pfel\n".encode("latin-1"), "line 2: not text in UTF-8"),
        (b"a\rb\rc\r", "line 1: there is a carriage return"),
        (b"\n", "contains no classes"),
    ):
        with pytest.raises(ConversionError, match=message):
            read_labels(write(tmp_path, "wrong.txt", content))


@pytest.mark.parametrize(
    ("line", "path", "label"),
    [
        (b"a.jpg,rose", "/data/a.jpg", "rose"),
        (b" a.jpg ,\t rose ", "/data/a.jpg", "rose"),
        (b"/else/a.jpg,rose", "/else/a.jpg", "rose"),
        (b"gs://bucket/a.jpg,rose", "gs://bucket/a.jpg", "rose"),
        (b'"a, b.jpg", "rose, ""red"""', "/data/a, b.jpg", 'rose, "red"'),
        ("blüte.jpg,Röschen".encode(), "/data/blüte.jpg", "Röschen"),
    ],
)
def test_rows(line, path, label):
    row = parse_row(line, "/data/train.csv", [label])
    assert (row.path, row.label) == (path, label)
    row = parse_row(b"x/a.jpg,rose", "gs://b/lists/train.csv", ["rose"])
    assert row.path == "gs://b/lists/x/a.jpg"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a.jpg", "1 column where 2 are expected: path,label$"),
        (b"a.jpg,rose,red", "3 columns where 2"),
        (b"a.jpg;rose", "they seem to be separated by ';'"),
        (b",rose", "no path"),
        (b"a.jpg,", "no label"),
        (b'"a.jpg,rose', "quote"),
    ],
)
def test_bad_rows_get_a_reason(line, reason):
    with pytest.raises(RejectError, match=reason):
        parse_row(line, "/data/train.csv", ["rose"])


@pytest.mark.parametrize(
    ("row", "known", "hint"),
    [
        (
            "path,label",
            LABELS,
            "without a header, and the labels file has 'roses', 'daisy', 'tulips'$",
        ),
        ("a.jpg,lily", ["a", "b", "c", "d"], r"'a', 'b', 'c', ... \(4 in all\)"),
    ],
)
def test_an_unknown_label_is_set_beside_the_known_ones(row, known, hint):
    with pytest.raises(RejectError, match=hint):
        parse_row(row.encode(), "/data/train.csv", known)


def test_dealing_spreads_a_sorted_list_evenly(tmp_path):
    rows = [(number, b"%d.jpg,x" % number) for number in range(1, 1001)]
    plan = SplitPlan("train", "", rows, 7)
    write_rows(plan, str(tmp_path))
    shards = [read_rows(str(tmp_path), name) for name in plan.shard_names]
    assert sorted(row for shard in shards for row in shard) == rows
    assert {len(shard) for shard in shards} == {142, 143}
    for shard in shards:
        # The first 100 rows stand for one class: each shard gets its share of it.
        assert sum(number <= 100 for number, _ in shard) in (14, 15)
        # Nor is it plain turn-taking, which would put every seventh row of a patterned list in one shard.
        assert len({number % 7 for number, _ in shard}) == 7


def test_the_number_of_shards_follows_from_the_number_of_rows(tmp_path):
    csv_path = write(tmp_path, "train.csv", b"a.jpg,x\n" * 2400)
    assert plan_split("train", csv_path, None).shards == 2
    assert plan_split("train", csv_path, 5).shards == 5
    for wrong in (0, 2401):
        with pytest.raises(ConversionError, match=f"--train_shards {wrong}"):
            plan_split("train", csv_path, wrong)
    assert plan_split("train", write(tmp_path, "small.csv", b"a.jpg,x\n"), None).shards == 1
    with pytest.raises(ConversionError, match="is empty"):
        plan_split("train", write(tmp_path, "empty.csv", b""), None)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--train_shard", "1"],
            "--train_shard 1: neither a flag of the converter nor one of Beam",
        ),
        (["--direct_num_workers=two"], "argument --direct_num_workers: invalid int value: 'two'"),
        (
            ["--num_workers=4"],
            "--num_workers is a flag of Dataflow; on this machine, use --workers",
        ),
        (["--train_shards=1000"], "--train_shards 1000: must be from 1 to the number of rows, 90"),
        (["--labels_file=absent"], "cannot read absent: No such file or directory"),
        (["--max_reject_share=nan"], "--max_reject_share must be from 0 to 1"),
        (["--runner=Nonsense"], "--runner Nonsense cannot be used here: "),
        (["--train_csv= "], "--train_csv is empty"),
        (["--output_dir=absent://bucket/out"], "cannot reach absent://bucket/out"),
        (["--output_dir=/dev/null"], "/dev/null: Not a directory; give a new or empty"),
    ],
)
def test_mistakes_are_told_in_one_line(data, capsys, flags, message):
    assert message in error_of(data, capsys, *flags)
    assert not data.out.exists()


def test_what_goes_wrong_in_a_row_names_the_list_and_the_row(data, monkeypatch):
    def broken(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lab_utils.convert.records.encode_example", broken)
    with pytest.raises(
        ConversionError,
        match=r"shard (train|eval)-\S+ failed 3 times on \S+, the last time for this: "
        r".*\.csv, row \d+ \(\d+\.jpg,\w+\): OSError: .*No space left on device",
    ):
        data.convert(train_shards=1)
    assert list(data.out.iterdir()) == []


def test_control_characters_do_not_reach_the_terminal(data, capsys):
    data.write("eval", [b"\x1b[2J\x1b]0;title\x07absent.jpg,roses"])
    assert r"row 1 (\x1b[2J\x1b]0;title\x07absent.jpg,roses)" in error_of(data, capsys)
    data.out = data.folder / "two\nlines\x1b"
    (data.folder / "labels.txt").write_text(
        "\n".join([*LABELS, "\x1b[31mred", *map(str, range(99))])
    )
    data.write("eval", [b"0.jpg,roses"])
    assert main(data.flags) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed and "and 73 classes more" in printed
    assert r"two\nlines\x1b" in printed and r"\x1b[31mred: 0" in printed


def test_what_a_bucket_raises_is_told_in_one_line(data, capsys, monkeypatch):
    from google.api_core.exceptions import Forbidden

    def refuses(_path):
        raise Forbidden("no access\nto this bucket")

    monkeypatch.setattr("lab_utils.convert.storage.open_to_read", refuses)
    line = error_of(data, capsys)
    assert "a bucket did not answer as it should: 403 no access to this bucket;" in line
