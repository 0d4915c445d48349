"""Any readable image becomes an upright RGB JPEG; what is one already stays as it is."""

import contextlib
import io
import re
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps

from lab_utils.convert import habits
from lab_utils.convert.errors import RejectError

# Frame markers of the JPEG kinds that TensorFlow's decoder (libjpeg) reads: baseline, extended, progressive.
_READABLE_FRAMES = {0xC0, 0xC1, 0xC2}
# All frame markers; 0xC4, 0xC8 and 0xCC stand among them but mean something else (ITU-T T.81, table B.1).
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_STANDALONE = {0x01, *range(0xD0, 0xD8)}
_START, _END_OF_IMAGE, _START_OF_SCAN, _APP1 = 0xD8, 0xD9, 0xDA, 0xE1
# A marker that ends compressed data: 0xFF 0x00 is data, 0xD0 to 0xD7 restart the decoder, 0x01 means nothing.
_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd7\xff])", re.DOTALL)
_REMARKS = {*range(0xE0, 0xF0), 0xFE}  # of applications and people; a decoder passes over them
_ORIENTATION = 0x0112
_OTHER_FORMATS = ("PNG", "GIF", "BMP", "WEBP")
_QUALITY = 95
_JPEG_SIDE = 65_500  # pixels; libjpeg compresses no longer one
_BLACK = 1 << 12  # of 16 bits; what stays below is less than a sixteenth as bright as white
_QUALITY_SCALED = 90  # whoever scales down wants records that are small and quick to decode


@dataclass(frozen=True, slots=True)
class RgbJpeg:
    """An RGB JPEG, ready to be stored: its bytes, and its height and width in pixels."""

    data: bytes
    height: int
    width: int


@dataclass(frozen=True, slots=True)
class _Header:
    height: int
    width: int
    components: int
    orientation: int
    segments: list[bytes]  # those that a decoder needs, as of an image of 16 x 16 pixels
    scan: int  # where the compressed image data begin


def to_rgb_jpeg(data: bytes, shorter_side: int | None = None) -> RgbJpeg:
    """Returns the image as an RGB JPEG that shows it upright.

    An RGB JPEG passes through byte for byte: its header gives the size. That holds for progressive ones
    too, since TensorFlow reads them and a second compression would cost quality. All else is decoded once
    and compressed at quality 95, or 90 where it is scaled down: grey and CMYK JPEGs, JPEGs whose EXIF data
    ask for a rotation (TensorFlow ignores them), PNG, GIF (its first frame), BMP and WebP. Transparency is
    laid on white.

    A JPEG that was cut short is found, for it has no end-of-image marker; so is damage inside that would
    stop a decoder (`_check_structure`). Damage that only spoils the picture is not found.

    Args:
        data: the file's content.
        shorter_side: pixels; an image with a longer one is scaled down to it, proportions kept, and
            compressed again. None leaves all sizes as they are.

    Raises:
        RejectError: if this is not an image, or is truncated, damaged or of an unsupported kind.
    """
    if not data.startswith(b"\xff\xd8"):
        return _transcode(data, shorter_side)
    header = _read_jpeg_header(data)
    later = _read_later_segments(data, header.scan)
    small = shorter_side is None or min(header.height, header.width) <= shorter_side
    if small and header.components == 3 and header.orientation == 1:
        _check_structure(header, later)
        return RgbJpeg(data, header.height, header.width)
    return _transcode(data, shorter_side)


def _read_later_segments(data: bytes, position: int) -> list[bytes]:
    """Returns the segments that stand among and after the compressed data, up to the end of the image.

    Compressed data cannot hold a marker (after 0xFF a 0 is stuffed), and thumbnails stand before them.
    """
    segments = []
    while found := _MARKER.search(data, position):
        if found[1][0] == _END_OF_IMAGE:
            return segments
        position = found.end() + int.from_bytes(data[found.end() : found.end() + 2], "big")
        segments.append(data[found.start() : position])
    if position > len(data):
        raise RejectError(
            "damaged JPEG: a segment in its compressed data leads past the file's end"
        )
    raise RejectError("truncated JPEG: it has no end-of-image marker")


def _check_structure(header: _Header, later: list[bytes]) -> None:
    """Finds what would stop TensorFlow's decoder, without decoding the pixels.

    That decoder (libjpeg) stops at wrong markers and tables; wrong compressed data it only warns of. So it
    is enough to have the same library, in Pillow, read all that is not compressed data, as an image of 16 x
    16 pixels. A whole decode costs as much as all the rest of the conversion several times over.
    """
    pixels = header.height * header.width
    if pixels > 2 * (Image.MAX_IMAGE_PIXELS or pixels):  # where Pillow, too, refuses
        raise RejectError(f"too large: {header.width:,} x {header.height:,} pixels")
    skeleton = b"".join((b"\xff\xd8", *header.segments, *later, b"\xff\xd9"))
    try:
        with _opened(skeleton, ("JPEG",)) as image:
            image.load()
    except MemoryError:
        raise
    except Exception as error:  # as in _transcode
        raise RejectError(f"damaged JPEG: {error}") from None


@contextlib.contextmanager
def _opened(data: bytes, formats: tuple[str, ...]) -> Iterator[Image.Image]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's remarks on odd metadata
        with Image.open(io.BytesIO(data), formats=formats) as image:
            yield image


def _read_jpeg_header(data: bytes) -> _Header:
    """Walk the segments up to the compressed data (ITU-T T.81, annex B)."""
    frame = None
    segments = []
    orientation = 1
    position = 2
    try:
        while True:
            # Decoders skip stray bytes between segments, and so does this.
            position = data.index(0xFF, position)
            while data[position] == 0xFF:
                position += 1
            marker = data[position]
            position += 1
            if marker == 0 or marker in _STANDALONE:
                continue
            if marker == _END_OF_IMAGE:
                raise RejectError("damaged JPEG: it ends before any image data")
            if marker == _START:
                raise RejectError("damaged JPEG: another one begins inside it")
            (length,) = struct.unpack_from(">H", data, position)
            if marker in _FRAMES:
                if marker not in _READABLE_FRAMES:
                    raise RejectError(f"unsupported kind of JPEG (frame marker 0xFF{marker:02X})")
                precision, *frame = struct.unpack_from(">BHHB", data, position + 2)
                if precision != 8:
                    raise RejectError(f"unsupported JPEG: {precision} bits a channel, not 8")
                segment = data[position : position + length]
                segments.append(b"\xff%c%b\0\x10\0\x10%b" % (marker, segment[:3], segment[7:]))
            elif marker == _APP1 and data.startswith(b"Exif\0\0", position + 2):
                orientation = _exif_orientation(data[position + 2 : position + length])
            elif marker not in _REMARKS:
                segments.append(data[position - 2 : position + length])
            position += length
            if marker == _START_OF_SCAN:
                break
    except (IndexError, ValueError, struct.error):
        raise RejectError("truncated JPEG: the file ends within its header") from None
    if frame is None or 0 in frame:
        raise RejectError("damaged JPEG: no image size in its header")
    height, width, components = frame
    return _Header(height, width, components, orientation, segments, scan=position)


def _exif_orientation(segment: bytes) -> int:
    """Returns EXIF's orientation, 1 (upright) to 8; 1 where the data say nothing valid."""
    exif = Image.Exif()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exif.load(segment)
            orientation = exif.get(_ORIENTATION, 1)
    except Exception:  # Pillow raises many kinds here; broken EXIF data do not make a broken image
        return 1
    return orientation if orientation in range(1, 9) else 1


def _transcode(data: bytes, shorter_side: int | None) -> RgbJpeg:
    if not data:
        raise RejectError("empty file (0 bytes)")
    jpeg = io.BytesIO()
    try:
        with _opened(data, ("JPEG", *_OTHER_FORMATS)) as image:
            target = _scaled(image.size, shorter_side)
            quality = _QUALITY if target == image.size else _QUALITY_SCALED
            image.draft(None, target)  # a JPEG is decoded at an eighth, a quarter or a half
            image.load()
            rgb = _to_rgb(_upright(image))
            target = _scaled(rgb.size, shorter_side)
            if target != rgb.size:
                rgb = rgb.resize(target, Image.Resampling.LANCZOS)
        if max(rgb.size) > _JPEG_SIDE:
            raise RejectError(
                f"too large: {rgb.width:,} x {rgb.height:,} pixels, and a JPEG holds at most "
                f"{_JPEG_SIDE:,} a side"
            )
        rgb.save(jpeg, "JPEG", quality=quality)
    except Image.UnidentifiedImageError:
        formats = ", ".join(_OTHER_FORMATS)
        raise RejectError(
            f"not an image that can be read (JPEG, {formats}); {habits.of_image(data)}"
        ) from None
    except (MemoryError, RejectError):
        raise
    except (
        Exception
    ) as error:  # for damaged files Pillow raises OSError, SyntaxError, ValueError, ...
        raise RejectError(f"cannot be decoded: {error}") from None
    return RgbJpeg(jpeg.getvalue(), rgb.height, rgb.width)


def _scaled(size: tuple[int, int], shorter_side: int | None) -> tuple[int, int]:
    shortest = min(size)
    if shorter_side is None or shortest <= shorter_side:
        return size
    width, height = (max(1, round(side * shorter_side / shortest)) for side in size)
    return width, height


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # as in _exif_orientation
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would clip it at 255
        values = np.asarray(image)
        if 0 < values.max() < _BLACK:
            raise RejectError(
                f"16 bits a pixel, and the largest value is {values.max():,} of 65,535, as in medical "
                "images of 12 bits: it would be black. Scale its values to 65,535, and save it again"
            )
        return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
