"""Every kind of image file becomes an upright RGB JPEG, or gets a reason why not."""

import base64
import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lab_utils import datasets
from lab_utils.convert.errors import RejectError
from lab_utils.convert.images import to_rgb_jpeg

SIZE = (48, 32)
RED, WHITE, GREY = (255, 0, 0), (255, 255, 255), (128, 128, 128)


def encode(image: Image.Image, kind: str, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def corner(mode: str = "RGB", colour=RED, background=WHITE) -> Image.Image:
    """One quarter, the upper left, in a colour of its own: shows whether the picture stands upright."""
    image = Image.new(mode, SIZE, background)
    image.paste(colour, (0, 0, SIZE[0] // 2, SIZE[1] // 2))
    return image


def with_orientation(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(corner(), "JPEG", exif=exif)


def pixel(jpeg: bytes, x: int, y: int) -> tuple[int, int, int]:
    with Image.open(io.BytesIO(jpeg)) as image:
        return image.getpixel((x, y))


def close(actual, expected) -> bool:
    return max(abs(a - e) for a, e in zip(actual, expected, strict=True)) <= 24


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"progressive": True},
        {"subsampling": 0},
        {"comment": b"\xff\xd9"},
        {"restart_marker_blocks": 1},
        {"icc_profile": bytes(200_000)},
        {"kind": "MPO", "save_all": True, "append_images": [Image.new("RGB", (8, 8))]},
    ],
)
def test_an_rgb_jpeg_passes_through_byte_for_byte(options):
    data = encode(corner(), **{"kind": "JPEG"} | options) + b"trailing bytes"
    result = to_rgb_jpeg(data)
    assert result.data == data
    assert (result.width, result.height) == SIZE


def test_a_size_that_would_fill_the_memory_is_refused():
    data = bytearray(encode(corner(), "JPEG"))
    frame = data.find(b"\xff\xc0")
    data[frame + 5 : frame + 9] = struct.pack(">HH", 65500, 65500)
    with pytest.raises(RejectError, match="exceeds limit"):
        to_rgb_jpeg(bytes(data))


PALETTE = corner().convert("P", palette=Image.Palette.ADAPTIVE, colors=4)
CONVERTED = {
    "grey JPEG": encode(corner("L", 128, 255), "JPEG"),
    "CMYK JPEG": encode(corner().convert("CMYK"), "JPEG"),
    "PNG": encode(corner(), "PNG"),
    "PNG with a palette": encode(PALETTE, "PNG"),
    "PNG with two colours": encode(corner("1", 0, 1), "PNG"),
    "16-bit grey PNG": encode(
        Image.fromarray(np.asarray(corner("L", 128, 255)).astype(np.uint16) * 257), "PNG"
    ),
    "PNG with alpha": encode(corner("RGBA", (255, 0, 0, 255), (0, 0, 0, 0)), "PNG"),
    "PNG with palette and alpha": encode(
        PALETTE, "PNG", transparency=PALETTE.getpixel((SIZE[0] - 1, SIZE[1] - 1))
    ),
    "GIF": encode(PALETTE, "GIF"),
    "animated GIF": encode(
        corner(), "GIF", save_all=True, append_images=[Image.new("RGB", SIZE, "blue")]
    ),
    "BMP": encode(corner(), "BMP"),
    "WebP": encode(corner(), "WEBP", lossless=True),
    "WebP with alpha": encode(
        corner("RGBA", (255, 0, 0, 255), (0, 0, 0, 0)), "WEBP", lossless=True
    ),
}


@pytest.mark.parametrize("kind", CONVERTED)
def test_other_kinds_become_baseline_rgb_jpegs(kind):
    result = to_rgb_jpeg(CONVERTED[kind])
    assert (result.width, result.height) == SIZE
    with Image.open(io.BytesIO(result.data)) as image:
        assert (image.format, image.mode, image.size) == ("JPEG", "RGB", SIZE)
        assert "progressive" not in image.info
    expected = (0, 0, 0) if "two colours" in kind else GREY if "grey" in kind.lower() else RED
    assert close(pixel(result.data, 6, 6), expected)
    assert close(pixel(result.data, SIZE[0] - 6, SIZE[1] - 6), WHITE)


# Where EXIF 2.3 (tag 274) says that the stored upper left corner belongs in the picture.
@pytest.mark.parametrize(
    ("orientation", "right", "low"),
    [(2, 1, 0), (3, 1, 1), (4, 0, 1), (5, 0, 0), (6, 1, 0), (7, 1, 1), (8, 0, 1)],
)
def test_a_photograph_is_turned_upright(orientation, right, low):
    result = to_rgb_jpeg(with_orientation(orientation))
    width, height = SIZE if orientation < 5 else SIZE[::-1]
    assert (result.width, result.height) == (width, height)
    for x in (0, 1):
        for y in (0, 1):
            expected = RED if (x, y) == (right, low) else WHITE
            assert close(
                pixel(result.data, width // 4 + x * width // 2, height // 4 + y * height // 2),
                expected,
            )
    with Image.open(io.BytesIO(result.data)) as image:
        assert image.getexif().get(0x0112, 1) == 1


def test_an_upright_photograph_and_one_with_broken_exif_data_are_left_alone():
    broken = encode(corner(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    for data in (*map(with_orientation, (1, 0, 9)), broken):
        assert to_rgb_jpeg(data).data == data


@pytest.mark.parametrize("kind", ["JPEG", "progressive", "PNG", "BMP", "WebP"])
def test_a_file_that_was_cut_short_is_found_wherever_it_was_cut(kind):
    random_pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    image = Image.fromarray(random_pixels)
    options = {"progressive": True} if kind == "progressive" else {}
    data = encode(image, "JPEG" if options else kind, **options)
    whole = to_rgb_jpeg(data)
    assert (whole.width, whole.height) == image.size
    # The last 20 bytes of a PNG are only checksums and an end mark: its picture is whole without them.
    for length in [*range(1, 200, 7), len(data) // 2, len(data) - (40 if kind == "PNG" else 2)]:
        with pytest.raises(RejectError):
            to_rgb_jpeg(data[:length])


# A real one: 64 x 48 pixels of one colour, as libheif writes it.
HEIC = base64.b64decode(
    "AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAX1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAA"
    "AAAAAAAAAAACJpbG9jAAAAAERAAAEAAQAAAAABoQABAAAAAAAAABoAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAAB"
    "AABodmMxAAAAAA5waXRtAAAAAAABAAAA/WlwcnAAAADdaXBjbwAAAHZodmNDAQNwAAAAkAAAAAAAHvAA/P34+AAADw"
    "NgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQAqQgEBA3AAAAMAkAAAAwAAAwAeoCCBBZbq5Ka5uAhoMCAA"
    "AAMDIAAAAwAhYgABAAZEAcFzwIkAAAATY29scm5jbHgAAQANAAaAAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAoY2xhcA"
    "AAAEAAAAABAAAAMAAAAAEAAAAAAAAAAv////AAAAACAAAAEHBpeGkAAAAAAwgICAAAABhpcG1hAAAAAAAAAAEAAQWB"
    "AgMFhAAAACJtZGF0AAAAFigBrxmA70mlvtLyt/7Gcv8irWmPm4A="
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty file"),
        (HEIC, "not an image that can be read .* save it as JPEG or PNG"),
        (b"hello, world", "not an image"),
        (b"\xff\xd8\xff\xd9", "cut off in its header"),
        (encode(corner(), "TIFF"), "not an image that can be read"),
    ],
)
def test_what_is_no_image_gets_a_reason(data, reason):
    with pytest.raises(RejectError, match=reason):
        to_rgb_jpeg(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_larger_image_is_scaled_down_to_the_shorter_side(kind):
    result = to_rgb_jpeg(encode(corner().resize((480, 320)), kind), shorter_side=40)
    assert (result.width, result.height) == (60, 40)
    assert close(pixel(result.data, 10, 10), RED) and close(pixel(result.data, 50, 30), WHITE)
    data = encode(corner(), "JPEG")  # small enough
    assert to_rgb_jpeg(data, shorter_side=32).data == data
    turned = to_rgb_jpeg(with_orientation(6), shorter_side=16)
    assert (turned.width, turned.height) == (16, 24)


def test_a_medical_image_of_12_bits_is_not_stored_as_a_black_one():
    dim = np.arange(4096, dtype=np.uint16).reshape(64, 64)
    with pytest.raises(
        RejectError, match="16 bits per pixel, but the largest value is 4,095 of 65,535"
    ):
        to_rgb_jpeg(encode(Image.fromarray(dim), "PNG"))
    to_rgb_jpeg(encode(Image.fromarray(dim * 16), "PNG"))  # scaled
    to_rgb_jpeg(encode(Image.fromarray(dim * 0), "PNG"))  # a black one is black


REAL = Path(__file__).resolve().parents[2] / "shared" / "flower_photos"  # 900, where they are
BUNDLED = sorted(datasets.bundled().folder.glob("*/*.jpg"))


def with_hole(data: bytes, kind: str) -> bytes:
    start = data.rindex(b"\xff\xda") + 14
    length = len(data) - 2 - start
    middle, sixth = start + length // 2, length // 6
    return {
        "cut and closed again": data[: start + length // 3] + b"\xff\xd9",
        "zeros": data[:middle] + bytes(sixth) + data[middle + sixth :],
        "a piece missing": data[:middle] + data[middle + sixth :],
    }[kind]


@pytest.mark.parametrize("kind", ["cut and closed again", "zeros", "a piece missing"])
def test_a_photograph_with_a_hole_is_refused(kind):
    for path in BUNDLED[::15]:
        with pytest.raises(RejectError, match="damaged JPEG: |cannot be decoded: "):
            to_rgb_jpeg(with_hole(path.read_bytes(), kind))


def test_no_sound_photograph_is_refused():
    assert len(BUNDLED) == 300
    for path in [*BUNDLED, *REAL.glob("*/*.jpg")]:
        to_rgb_jpeg(path.read_bytes())


def test_stray_bytes_of_a_camera_at_the_end_are_no_hole():
    data = BUNDLED[0].read_bytes()
    to_rgb_jpeg(data[:-2] + bytes(4) + data[-2:])
    with pytest.raises(RejectError, match="damaged JPEG: 399 extraneous bytes"):
        to_rgb_jpeg(data[:-2] + bytes(400) + data[-2:])


def test_a_png_with_a_flipped_bit_is_refused_wherever_it_is():
    """Of drawings above all: they decode into another picture, as Pillow checks no checksum then."""
    whole = encode(corner(), "PNG")
    assert to_rgb_jpeg(whole).width == SIZE[0]
    for place in range(8, len(whole) - 12):  # behind the signature, before the last chunk
        damaged = bytearray(whole)
        damaged[place] ^= 4
        with pytest.raises(RejectError):
            to_rgb_jpeg(bytes(damaged))
