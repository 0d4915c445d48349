"""Predicting: photographs as phones and other programs write them are prepared as the converter does it."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab_utils.convert.images import to_rgb_jpeg
from lab_utils.estimator import tf
from lab_utils.flowers import predict
from lab_utils.flowers import upright as in_graph

ORIENTATION = 0x0112
WAYS_BACK = {  # EXIF's orientation -> how a camera that notes it has stored the upright picture
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@pytest.fixture(scope="module")
def saved_model(finished_run) -> Path:
    return Path(finished_run[1]["saved_model"])


@pytest.fixture(scope="module")
def upright(tiny_photos) -> Image.Image:
    with Image.open(next(tiny_photos.glob("roses/*.png"))) as image:
        return image.convert("RGB")


def jpeg(image: Image.Image, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95, **options)
    return file.getvalue()


def shares(saved_model: Path, folder: Path, **contents: bytes) -> dict[str, np.ndarray]:
    """The probabilities of files of those contents."""
    paths = [folder / name for name in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        path.write_bytes(content)
    predictions, left_out = predict.predict(saved_model, paths)
    assert not left_out
    return {each.path.name: each.probabilities for each in predictions}


def test_a_photograph_is_turned_as_its_exif_data_say(saved_model, upright, tmp_path):
    stored = {"upright": jpeg(upright)}
    for number, way in WAYS_BACK.items():
        exif = Image.Exif()
        exif[ORIENTATION] = number
        stored[f"as_{number}"] = jpeg(upright.transpose(way), exif=exif)
    stored["lying"] = jpeg(upright.transpose(Image.Transpose.ROTATE_90))
    found = shares(saved_model, tmp_path, **stored)
    lying, expected = found.pop("lying"), found.pop("upright")
    for name, probabilities in found.items():
        # Turned and compressed once more: a little else, and less than lying is.
        assert np.abs(probabilities - expected).max() < 0.3 * np.abs(lying - expected).max(), name


def test_transparency_is_laid_on_white(saved_model, upright, tmp_path):
    flower = upright.convert("RGBA")
    mask = Image.new("L", flower.size, 0)
    mask.paste(255, (0, 0, flower.width // 2, flower.height))
    flower.putalpha(mask)  # a decoder that drops the mask sees the whole flower
    white = Image.new("RGB", flower.size, "white")
    white.paste(upright, mask=mask)
    stored = {}
    for name, image in (("transparent", flower), ("white", white), ("whole", upright)):
        file = io.BytesIO()
        image.save(file, "PNG")
        stored[name] = file.getvalue()
    found = shares(saved_model, tmp_path, **stored)
    np.testing.assert_array_equal(found["transparent"], found["white"])
    assert np.abs(found["whole"] - found["white"]).max() > 1e-3


def test_a_file_gets_the_answer_that_its_record_gets(
    saved_model, tiny_csv, tiny_records, run_flags
):
    """The evaluation's own images, from the files and from the records: PNGs among them."""
    rows = [row.rsplit(",", 1)[0] for row in tiny_csv.eval_csv.read_text().splitlines()]
    records = {}
    for file in tiny_records.paths("eval"):
        for record in tf.data.TFRecordDataset(file).as_numpy_iterator():
            feature = tf.train.Example.FromString(record).features.feature
            name = feature["image/filename"].bytes_list.value[0].decode()
            records[name] = feature["image/encoded"].bytes_list.value[0]
    assert set(records) == set(rows)
    for row in rows:
        path = tiny_csv.eval_csv.parent / row
        assert to_rgb_jpeg(path.read_bytes()).data == records[row]


def encoded(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def test_odd_images_are_answered_or_named(saved_model, upright, tmp_path, capsys):
    grey16 = Image.fromarray(np.full([40, 30], 40_000, np.uint16))
    good = {
        "1 by 1.png": encoded(upright.resize((1, 1)), "PNG"),
        "1 by 3000.jpg": jpeg(upright.resize((1, 3000))),
        "grey.jpg": jpeg(upright.convert("L")),
        "cmyk.jpg": jpeg(upright.convert("CMYK")),
        "progressive.jpg": jpeg(upright, progressive=True),
        "16 bits.png": encoded(grey16, "PNG"),
        "one bit.png": encoded(upright.convert("1"), "PNG"),
        "palette.png": encoded(upright.convert("P"), "PNG", transparency=0),
        "grey and mask.png": encoded(upright.convert("LA"), "PNG"),
        "animated.gif": encoded(
            upright, "GIF", save_all=True, append_images=[upright.rotate(90)], loop=0
        ),
        "of another name.txt": encoded(upright, "BMP"),
        "photograph.webp": encoded(upright, "WEBP"),
        "umläut and ' quote.jpg": jpeg(upright),
    }
    whole = jpeg(upright.resize((200, 200)))
    noise = np.random.default_rng(0).bytes(400)
    huge = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    bad = {
        "noise inside.jpg": whole[:1500] + noise + whole[1900:],
        "no tables.jpg": b"\xff\xd8" + whole[whole.index(b"\xff\xc0") :],
        "vector.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "phone.heic": b"\0\0\0\x18ftypheic" + bytes(99),
        "scan.tiff": encoded(upright, "TIFF"),
        "30000 by 30000.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + huge + bytes(4),
        "a page.jpg": b"<html>404</html>",
    }
    paths = []
    for name, content in (good | bad).items():
        (tmp_path / name).write_bytes(content)
        paths.append(tmp_path / name)
    predictions, left_out = predict.predict(saved_model, paths, batch_size=8)
    assert [each.path.name for each in predictions] == list(good)
    assert [path.name for path in left_out] == list(bad)
    assert all(len(problem) < 200 and "\n" not in problem for problem in left_out.values())
    labels = predict.labels(saved_model)
    figure = predict.draw(predictions, labels)
    assert len(figure.axes) == 2 * len(good)
    print(f"\n{len(good)} odd images answered, {len(bad)} named and left out")


def _exif(number: int, order: str, before: int = 0) -> bytes:
    """EXIF data of one directory in this byte order, the orientation after so many other entries."""
    tags = [*range(0x100, 0x100 + before), ORIENTATION]
    entries = b"".join(struct.pack(order + "HHIHH", tag, 3, 1, number, 0) for tag in tags)
    start = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8)
    return b"Exif\0\0" + start + struct.pack(order + "H", len(tags)) + entries + bytes(4)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("number", range(10))
def test_the_graph_reads_the_orientation_that_the_converter_reads(upright, order, number):
    for stored in (
        jpeg(upright, exif=_exif(number, order)),
        jpeg(upright, exif=_exif(number, order, before=7), icc_profile=bytes(3000)),
    ):
        with Image.open(io.BytesIO(stored)) as image:
            says = image.getexif().get(ORIENTATION)
        assert says == number
        assert in_graph.orientation(tf.constant(stored)) == (says if 1 <= says <= 8 else 1)


def test_the_graph_reads_nothing_from_data_that_are_damaged_or_none(upright):
    whole = jpeg(upright, exif=_exif(6, ">"))
    start = whole.index(b"Exif")
    far = whole.replace(struct.pack(">I", 8), struct.pack(">I", 2**32 - 1), 1)
    for stored in (jpeg(upright), far, whole[: start + 6], whole[: start + 12], b"\xff\xd8", b""):
        assert in_graph.orientation(tf.constant(stored)) == 1


@pytest.mark.parametrize("number", range(1, 9))
def test_serving_turns_bytes_as_the_converter_turns_files(upright, number):
    stored = jpeg(upright, exif=_exif(number, "<"), subsampling=0)
    served, recorded = (
        in_graph.decode_upright(tf.constant(each), 32).numpy().astype(int)
        for each in (stored, to_rgb_jpeg(stored).data)
    )
    assert np.abs(served - recorded).mean() < 3  # compressed once more
    unturned = np.abs(np.rot90(served) - recorded).mean()
    assert unturned > 6


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_serving_lays_bytes_on_white(upright, mode):
    image = upright.convert(mode)
    options = {"transparency": 0} if mode == "P" else {}
    if mode != "P":
        image.putalpha(Image.linear_gradient("L").resize(upright.size))
    stored = encoded(image, "PNG", **options)
    with Image.open(io.BytesIO(stored)) as read:
        layer = read.convert("RGBA")
    white = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer).convert("RGB")
    served, expected = (
        in_graph.decode_upright(tf.constant(each), 32).numpy().astype(int)
        for each in (stored, encoded(white, "PNG"))
    )
    assert np.abs(served - expected).max() <= 1
