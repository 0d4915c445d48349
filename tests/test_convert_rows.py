"""The input lists, in all the forms that people's editors leave them in."""

import re
from collections import Counter

import pytest

from lab_utils.convert import accounting, repeats
from lab_utils.convert.errors import ConversionError, RejectError
from lab_utils.convert.plan import SplitPlan, check_sample, plan_split
from lab_utils.convert.rows import deal, parse_row, read_labels, read_lines


def write(folder, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def test_lines_keep_their_numbers_and_lose_their_ends(tmp_path):
    path = write(tmp_path, "a.csv", b"\xef\xbb\xbfa.jpg,x\r\n\r\nb.jpg,y\n")
    assert list(read_lines(path)) == [(1, b"a.jpg,x"), (3, b"b.jpg,y")]


def test_utf16_and_absence_are_told(tmp_path):
    with pytest.raises(ConversionError, match="UTF-16"):
        list(read_lines(write(tmp_path, "a.csv", "a.jpg,x\n".encode("utf-16"))))
    with pytest.raises(ConversionError, match="cannot read .*absent.csv: No such file"):
        list(read_lines(str(tmp_path / "absent.csv")))


def test_labels_keep_their_order(tmp_path):
    path = write(tmp_path, "labels.txt", "\ufeffroses\r\ndaisy\r\nÄpfel\r\n\r\n".encode())
    assert read_labels(path) == ["roses", "daisy", "Äpfel"]
    assert read_labels(write(tmp_path, "latin.txt", "Äpfel\n".encode("latin-1"))) == ["Äpfel"]


def test_labels_that_cannot_serve_are_told_by_line(tmp_path):
    with pytest.raises(ConversionError, match="line 3: class 'a' stands on line 1 already"):
        read_labels(write(tmp_path, "labels.txt", b"a\nb\na\n"))
    with pytest.raises(ConversionError, match="holds no classes"):
        read_labels(write(tmp_path, "empty.txt", b"\n"))


@pytest.mark.parametrize(
    ("line", "path", "label"),
    [
        (b"a.jpg,rose", "/data/a.jpg", "rose"),
        (b" a.jpg , rose ", "/data/a.jpg", "rose"),
        (b"/else/a.jpg,rose", "/else/a.jpg", "rose"),
        (b"gs://bucket/a.jpg,rose", "gs://bucket/a.jpg", "rose"),
        (b'"a, b.jpg","rose, ""red"""', "/data/a, b.jpg", 'rose, "red"'),
        ("blüte.jpg,Röschen".encode(), "/data/blüte.jpg", "Röschen"),
    ],
)
def test_rows(line, path, label):
    row = parse_row(line, "/data/train.csv")
    assert row.paths == (path,)
    assert row.label == label


def test_a_latin_1_row_is_looked_for_by_its_bytes_and_by_its_letters():
    row = parse_row("blüte.jpg,Röschen".encode("latin-1"), "/data/train.csv")
    assert row.paths == ("/data/bl\udcfcte.jpg", "/data/blüte.jpg")
    assert row.label == "Röschen"
    assert row.filename == "blüte.jpg".encode("latin-1")


def test_rows_of_a_list_in_a_bucket_are_taken_from_there():
    assert parse_row(b"x/a.jpg,rose", "gs://bucket/lists/train.csv").paths == (
        "gs://bucket/lists/x/a.jpg",
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a.jpg", "1 column where 2"),
        (b"a.jpg,rose,red", "3 columns where 2"),
        (b",rose", "no path"),
        (b"a.jpg,", "no label"),
        (b'"a.jpg,rose', "quote"),
    ],
)
def test_bad_rows_get_a_reason(line, reason):
    with pytest.raises(RejectError, match=reason):
        parse_row(line, "/data/train.csv")


def test_dealing_spreads_a_sorted_list_evenly():
    rows = [(number, b"") for number in range(1, 1001)]
    dealt = list(deal(rows, 7, seed="train"))
    assert [row for _, row in dealt] == rows
    assert set(Counter(shard for shard, _ in dealt).values()) == {142, 143}
    # The first 100 rows stand for one class: each shard gets its share of it.
    assert set(Counter(shard for shard, _ in dealt[:100]).values()) <= {14, 15}
    assert [shard for shard, _ in dealt] == [shard for shard, _ in deal(rows, 7, seed="train")]
    # Nor is it plain turn-taking, which would put every seventh row of a patterned list in one shard.
    assert len({shard for shard, (number, _) in dealt if number % 7 == 1}) == 7


def test_the_number_of_shards_follows_from_the_size_of_the_images(tmp_path):
    for number in range(20):
        write(tmp_path, f"{number}.jpg", bytes(10_000))
    csv_path = write(
        tmp_path, "train.csv", b"absent.jpg,x\n" + b"".join(b"%d.jpg,x\n" % n for n in range(20))
    )
    assert plan_split("train", csv_path, None, shard_mb=0.1).shards == 2
    assert plan_split("train", csv_path, None, shard_mb=100).shards == 1
    assert plan_split("train", csv_path, None, shard_mb=1e-6).shards == 21  # no more than rows
    assert plan_split("train", csv_path, 5, shard_mb=100).shards == 5
    assert plan_split("train", csv_path, 5, shard_mb=100).rows == 21
    for wrong in (0, 22):
        with pytest.raises(ConversionError, match=f"--train_shards {wrong}"):
            plan_split("train", csv_path, wrong, shard_mb=100)
    with pytest.raises(ConversionError, match="is empty"):
        plan_split("train", write(tmp_path, "empty.csv", b""), None, shard_mb=100)


TORN = "1 of the images of {} have two classes, one of them wrong: see lines "
AGAIN = "1 of the images of {} are listed more than once, and count as often: see lines "


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", []),
        ("p/0.jpg,a", [AGAIN + "1 and 11"]),
        ("./p/0.jpg,b", [TORN + "1 and 11 ('a' and 'b')"]),
        ('"{}/p/1.jpg","Gänse"', [TORN + "2 and 11 ('b' and 'Gänse')"]),
        ("p/x/../2.jpg,b\np/2.jpg,a", [TORN + "3 and 11 ('a' and 'b')", AGAIN + "3 and 12"]),
        ("no comma\nno comma", []),
    ],
)
def test_images_that_are_listed_twice_are_told(more, told, tmp_path):
    path = tmp_path / "train.csv"
    lines = [f"p/{n}.jpg,{'ab'[n % 2]}" for n in range(10)]
    path.write_bytes("\n".join([*lines, more.format(tmp_path)]).encode("cp1252"))
    assert list(repeats.notes(made_plan(path, 12))) == [each.format(path) for each in told]


def test_of_a_long_list_a_part_of_the_images_is_compared(tmp_path, monkeypatch):
    monkeypatch.setattr(repeats, "_COMPARED", 100)
    path = tmp_path / "train.csv"
    # Whole paths: which of them are compared must not hang on the folder of this run.
    path.write_text("".join(f"/p/{n}.jpg,{label}\n" for label in "ab" for n in range(500)))
    (told,) = repeats.notes(made_plan(path, 1000))
    number, line, other = map(int, re.findall(r"\d+", told.replace(str(path), "")))
    assert told.startswith("about ") and 350 < number < 650 and other == line + 500


def made_plan(path, rows):
    return SplitPlan("train", str(path), rows, 1, [])


def test_a_failure_that_a_full_disk_left_without_words_is_told(tmp_path):
    (tmp_path / "train-00000-of-00001.failure").touch()
    plans = [made_plan("train.csv", 1)]
    assert accounting.failures(plans, str(tmp_path)) == [
        "shard train-00000-of-00001 failed: No space left on device"
    ]


def test_a_long_list_that_can_give_nothing_is_told_before_the_work(tmp_path):
    """As one with numbers for names: a million rows would be an hour's work for the same answer."""
    path = tmp_path / "train.csv"
    path.write_text("".join(f"{n}.jpg,{n % 3}\n" for n in range(1_200)))
    with pytest.raises(ConversionError, match="none of 1,000 rows.*write the class's name"):
        check_sample(plan_split("train", str(path), 1, 100), ["roses", "daisy"])
    with path.open("a") as file:
        file.writelines(f"{n}.jpg,daisy\n" for n in range(60))
    check_sample(plan_split("train", str(path), 1, 100), ["roses", "daisy"])
    path.write_text("".join(f"{n}.jpg;daisy\n" for n in range(1_200)))
    with pytest.raises(ConversionError, match="semicolons seem to separate them"):
        check_sample(plan_split("train", str(path), 1, 100), ["daisy"])
    path.write_text("a.jpg;daisy\n")  # the run itself gives each row its reason
    check_sample(plan_split("train", str(path), 1, 100), ["daisy"])
