"""Lists, paths and files of other programs and systems: taken where they are clear, else explained."""

import io
import os

import pytest
from convert_data import LABELS, Data, features, records, rejects
from PIL import Image

from lab_utils.convert import ConversionError, habits
from lab_utils.convert.__main__ import main
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.convert.rows import parse_row, read_labels
from lab_utils.convert.sources import read_first


@pytest.fixture
def data(tmp_path) -> Data:
    return Data(tmp_path)


ROWS = [f"{n}.jpg,{LABELS[n // 30]}" for n in range(90)]


@pytest.mark.parametrize(
    "content",
    [
        "\n\n".join(ROWS) + "\n\n",
        "\ufeff" + "\r\n".join(ROWS) + "\r\n\r\n",
        "\n".join('"{}", "{}"'.format(*row.split(",")) for row in ROWS),
        "\n".join(ROWS).replace(",", " ,\t"),
        "\r\n".join([*ROWS[:45], f"\ufeff{ROWS[45]}", *ROWS[46:]]) + "\r\n\x1a",
    ],
    ids=["blank lines", "Windows", "quotes after spaces", "spaces", "joined by Windows"],
)
def test_a_list_that_is_clear_is_taken(data, content):
    (data.folder / "train.csv").write_bytes(content.encode())
    split = data.convert().splits["train"]
    assert (split.examples, split.rejected) == (90, 0)


@pytest.mark.parametrize(
    ("row", "hint"),
    [
        ("a.jpg;roses", "semicolons seem to separate them"),
        ("a.jpg\troses", "tabs seem to separate them"),
        ("a.jpg|roses", "bars seem to separate them"),
        ("a.jpg\uff0croses", "full-width commas seem to separate them"),
        ("a.jpg 0", "1 column where 2 are expected: path,label; a space seems to separate them"),
        ("a.jpg", "1 column where 2 are expected: path,label$"),
        (
            "a.jpg,roses,,",
            "4 columns where 2 are expected: path,label; the last ones are empty",
        ),
        ("0,a.jpg,roses", "the first seems to count the rows: .*index=False"),
        (",path,label", "the first seems to count the rows"),
        ("a\0.\0j\0p\0g\0,\0r\0", "a zero byte stands in this line"),
    ],
)
def test_a_row_of_another_dialect_is_explained(row, hint):
    with pytest.raises(RejectError, match=hint):
        parse_row(row.encode(), "/data/train.csv")


@pytest.mark.parametrize(
    ("label", "known", "hint"),
    [
        ("Roses", LABELS, "the labels file has 'roses': upper and lower case differ"),
        ("label", LABELS, "if this row is a header, remove it"),
        ("0", LABELS, "has names: write the class's name in each row"),
        ("1.0", ["0", "1"], "has '1': pandas writes whole numbers like this"),
        ("1", ["01", "02"], "has '01': Excel removes zeros at the start"),
        ("3", ["0", "1"], "which has '0', '1'"),
        ("²", LABELS, "which has 'roses'"),
        ("'roses'", LABELS, "has 'roses': take the quotes away"),
        ("\u201croses\u201d", LABELS, "has 'roses': take the quotes away"),
        ("ro\u00adses", LABELS, r"has 'roses': signs that cannot be seen stand in 'ro\xadses'"),
        ("roses", ["0,roses", "1,daisy"], "has '0,roses': it should have one class on each line"),
        ("roses", ['"roses"', '"daisy"'], "one class on each line"),
        ("roses", ["1 roses", "2 daisy"], "one class on each line"),
        ("x.jpg", LABELS, "'roses', 'daisy', 'tulips'"),
        ("lily", ["a", "b", "c", "d"], "'a', 'b', 'c', ... (4 in all)"),
    ],
)
def test_an_unknown_label_is_set_beside_the_known_ones(label, known, hint):
    assert hint in habits.of_label(label, "a.jpg", known)


def test_columns_in_the_other_order_are_told(data):
    """As ImageFolder-like lists have them: label, path."""
    data.write("train", [f"{LABELS[n // 30]},{n}.jpg".encode() for n in range(90)])
    with pytest.raises(ConversionError, match="'roses' is one: the path comes first"):
        data.convert()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"PAR1\x15\x04", "Parquet"),
        (b"PK\x03\x04\x14\0", "Excel, or a zip archive"),
        (b"\x1f\x8b\x08\0", "gzip"),
        (b"SQLite format 3\0", "SQLite"),
        (b'{"path": "a.jpg", "label": "roses"}\n', "JSON lines"),
        (b'[["a.jpg", "roses"]]', "JSON"),
        (b"<!DOCTYPE html><html>", "HTML: was a page to sign in"),
        ("a.jpg,roses\n".encode("utf-16-le"), "UTF-16"),
        ("a.jpg,roses\n".encode("utf-16-be"), "UTF-16"),
    ],
)
@pytest.mark.parametrize("name", ["train.csv", "labels.txt"])
def test_a_list_in_another_format_is_named_before_the_work(data, name, content, kind):
    (data.folder / name).write_bytes(content)
    with pytest.raises(ConversionError, match=f"{name} is not text in UTF-8 but {kind}"):
        data.convert()


def test_headers_are_not_images_in_both_lists(data, capsys):
    for split in ("train", "eval"):
        content = (data.folder / f"{split}.csv").read_bytes()
        (data.folder / f"{split}.csv").write_bytes(b"path,label\n" + content)
    assert main([*data.flags, "--max_reject_share=1"]) == 0
    assert "are in --train_csv" not in capsys.readouterr().err


def test_a_label_in_the_encoding_of_windows_is_the_same_class(data):
    (data.folder / "labels.txt").write_text("5\u20ac\ndaisy\n", encoding="utf-8")
    data.write("train", ["0.jpg,5\u20ac".encode("cp1252"), b"1.jpg,daisy"])
    data.write("eval", ["2.jpg,5\u20ac".encode(), b"3.jpg,daisy"])
    assert data.convert().splits["train"].per_class == {"5\u20ac": 1, "daisy": 1}


@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-8", ""), ("shift-jis", "gives the class '‹e'"), ("cp1251", "gives the class")],
)
def test_classes_in_another_encoding_than_utf8_are_shown_as_they_were_taken(
    data, capsys, encoding, said
):
    name = "мак" if encoding == "cp1251" else "菊"
    (data.folder / "labels.txt").write_bytes(f"daisy\n{name}\n".encode(encoding))
    for split in ("train", "eval"):
        data.write(split, [f"0.jpg,{name}".encode(encoding), b"1.jpg,daisy"])
    assert main(data.flags) == 0
    told = capsys.readouterr().err
    assert ("not text in UTF-8" in told) == bool(said) and said in told


def test_of_a_thousand_classes_thirty_are_printed(data, capsys):
    (data.folder / "labels.txt").write_text("\n".join([*LABELS, *map(str, range(997))]))
    assert main(data.flags) == 0
    said = capsys.readouterr().out
    assert "and 970 classes more" in said and said.count("\n") < 80


def test_accents_are_the_same_class_and_the_same_file_in_both_forms_of_unicode(data):
    composed, apart = "Ro\N{LATIN SMALL LETTER O WITH DIAERESIS}schen", "Roo\u0308schen"
    (data.folder / "labels.txt").write_text(f"{composed}\ndaisy\n", encoding="utf-8")
    os.rename(data.folder / "0.jpg", data.folder / f"{apart}.jpg")
    os.rename(data.folder / "1.jpg", data.folder / f"1{composed}.jpg")
    data.write("train", [f"{composed}.jpg,{apart}".encode(), f"1{apart}.jpg,daisy".encode()])
    data.write("eval", [b"2.jpg,daisy"])
    assert data.convert().splits["train"].per_class == {composed: 1, "daisy": 1}
    (path,) = data.out.glob("train-*")
    assert {features(each)["image/class/label"] for each in records(path)} == {1, 2}


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (r"photos\a.jpg", "not by backslashes"),
        ("~/a.jpg", "only a shell replaces"),
        ("$HOME/a.jpg", "only a shell replaces"),
        ("0.JPG", "there is 0.jpg: upper and lower case differ"),
        ("sub/img_1.jpg", "there is Sub/IMG_1.JPG: upper and lower case differ"),
        ("\u200b0.jpg", "signs that cannot be seen"),
        ("\u201c0.jpg\u201d", "curly quotes"),
        ("absent.jpg", "absent.jpg$"),
        ("0", "there is 0.jpg: the list needs the whole name"),
        ("C:/photos/a.jpg", "a path of Windows"),
        ("PosixPath('a.jpg')", "Python's notation of a path"),
        ("b'a.jpg'", "Python's notation of a path"),
        ("%30.jpg", "with %20 and the like decoded"),
    ],
)
def test_a_path_of_another_system_is_explained(data, path, hint):
    (data.folder / "Sub").mkdir()
    (data.folder / "Sub" / "IMG_1.JPG").touch()
    with pytest.raises(RejectError, match=hint):
        read_first((f"{data.folder}/{path}",))


def test_a_file_of_gigabytes_is_not_read(tmp_path):
    with (tmp_path / "video.jpg").open("wb") as file:
        file.truncate(6 * 10**9)  # takes no room
    with pytest.raises(RejectError, match="larger than 1 GB"):
        read_first((str(tmp_path / "video.jpg"),))


def test_a_list_without_an_end_of_its_first_line_is_not_read(tmp_path):
    with (tmp_path / "labels.txt").open("wb") as file:
        file.write(b"x" * 2**20)
        file.truncate(6 * 10**9)
    with pytest.raises(ConversionError, match="its first line has more than 1,048,576 bytes"):
        read_labels(str(tmp_path / "labels.txt"))


def test_ctrl_z_at_the_end_of_a_labels_file_is_no_class(tmp_path):
    (tmp_path / "labels.txt").write_bytes(b"roses\r\ndaisy\r\n\x1a")
    assert read_labels(str(tmp_path / "labels.txt")) == ["roses", "daisy"]


@pytest.mark.parametrize("content", ["a\rb\rc\r", "a\0\nb\0\n"])
def test_a_labels_file_that_is_no_list_of_lines_is_refused(tmp_path, content):
    (tmp_path / "labels.txt").write_bytes(content.encode())
    with pytest.raises(ConversionError, match="line 1: a carriage return or a zero byte stands in"):
        read_labels(str(tmp_path / "labels.txt"))


def _saved(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (_saved("TIFF"), "it is a TIFF: save it as PNG"),
        (b"\0\0\0\x18ftypheic", "HEIC, AVIF or a video: save it as JPEG"),
        (b"version https://git-lfs.github.com/spec/v1\n", "run git lfs pull"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"\n\n<html>", "a web page"),
        (b'{"error": "rate limit"}', 'it is text: \'{"error": "rate limit"}\''),
        (b"\r\n\xff\xd8\xff\xe0", "a JPEG begins at its byte 2"),
        ("\xff\xd8\xff\xe0".encode(), "a JPEG that was saved as text"),
        (bytes(128) + b"DICM", "it is DICOM"),
        (b"\0\x05\x16\x07\0\x02", "AppleDouble"),
        (b"\x93NUMPY\x01", "NumPy array"),
        (b"/9j/4AAQSkZJRg==", "base64 text"),
        (b"MZ\x90\0", "it begins with b'MZ"),
    ],
)
def test_a_file_of_another_kind_is_named(content, hint):
    with pytest.raises(RejectError, match=hint):
        to_rgb_jpeg(content)


def test_an_image_longer_than_any_jpeg_is_set_aside():
    file = io.BytesIO()
    Image.new("L", (1, 65_501)).save(file, "PNG")
    with pytest.raises(
        RejectError, match="too large: 1 x 65,501 pixels, and a JPEG holds at most 65,500"
    ):
        to_rgb_jpeg(file.getvalue())


def test_a_tilde_is_the_home_folder_and_no_folder_of_that_name(data, monkeypatch):
    monkeypatch.setenv("HOME", str(data.folder))
    monkeypatch.chdir(data.folder)
    assert main([*data.flags, "--train_csv=~/train.csv", "--output_dir=~/records"]) == 0
    assert (data.folder / "records" / "manifest.json").exists()
    assert not os.path.exists("~")


@pytest.mark.parametrize(
    ("shared", "share"),
    [([], None), (["./3.jpg,daisy"], "9.1%"), ([f'"{n}.jpg",roses' for n in range(90)], "90.0%")],
    ids=["none", "one", "all of the training's"],
)
def test_images_in_both_lists_are_told(data, capsys, shared, share):
    rows = [f"{n}.jpg,{LABELS[n % 3]}" for n in range(90, 100)]
    data.write("eval", [row.encode() for row in [*shared, *rows]])
    assert main(data.flags) == 0
    said = capsys.readouterr().err
    assert f"note: {share} of the images of --eval_csv are in --train_csv" in said or not share
    assert share or "are in --train_csv" not in said


def test_lists_of_equal_rows_in_two_folders_are_different_images(data, capsys):
    other = data.folder / "other"
    other.mkdir()
    for number in range(90):
        os.link(data.folder / f"{number}.jpg", other / f"{number}.jpg")
    (other / "eval.csv").write_bytes((data.folder / "train.csv").read_bytes())
    assert main([*data.flags, f"--eval_csv={other / 'eval.csv'}"]) == 0
    assert "are in --train_csv" not in capsys.readouterr().err


def test_a_class_without_a_training_example_is_told(data, capsys):
    (data.folder / "labels.txt").write_text("\n".join(["label", "Roses", *LABELS]))
    assert main(data.flags) == 0
    said = capsys.readouterr().err
    assert "note: no training example of 'label', 'Roses': is that a class" in said
    assert "note: the classes 'Roses' and 'roses' differ in upper and lower case alone" in said


def test_what_a_bucket_raises_is_told_in_one_line(data, capsys, monkeypatch):
    from google.api_core.exceptions import Forbidden

    def refuses(_path):
        raise Forbidden("no access\nto this bucket")

    monkeypatch.setattr("lab_utils.convert.storage.open_to_read", refuses)
    assert main(data.flags) == 1
    said = capsys.readouterr().err
    assert "error: a bucket did not answer as it should: 403 no access to this bucket;" in said


def test_too_few_workers_are_refused(data, capsys):
    assert main([*data.flags, "--direct_num_workers=-1"]) == 1
    assert "error: --direct_num_workers must be 0 or more" in capsys.readouterr().err
    assert not data.out.exists()


def test_a_header_is_named_among_the_rejects(data):
    data.write("train", [b"path,label", *(row.encode() for row in ROWS)])
    data.convert(max_reject_share=0.1)
    assert "if this row is a header, remove it" in rejects(data.out)[0][3]
