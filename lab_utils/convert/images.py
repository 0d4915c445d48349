"""Any readable image becomes an upright RGB JPEG; what is one already stays as it is."""

import contextlib
import io
import re
import warnings
from dataclasses import dataclass

import numpy as np
import simplejpeg
from PIL import Image, ImageOps

from lab_utils.convert.errors import RejectError

_OTHER_FORMATS = ("PNG", "GIF", "BMP", "WEBP")
_ORIENTATION = 0x0112  # the tag of EXIF
_QUALITY = 95
_QUALITY_SCALED = 90  # whoever scales down wants records that are small and quick to decode
_BLACK = 1 << 12  # of 16 bits; what stays below is less than a sixteenth as bright as white
# Some cameras fill up the header or the data's end; restart markers (0xd0 to 0xd7) stand in between.
_STRAY = re.compile(r"Corrupt JPEG data: \d extraneous bytes before marker 0x(?!d[0-7])..")

warnings.filterwarnings("ignore", module="PIL")  # remarks on odd metadata


@dataclass(frozen=True, slots=True)
class RgbJpeg:
    """An RGB JPEG, ready to be stored: its bytes, and its height and width in pixels."""

    data: bytes
    height: int
    width: int


def to_rgb_jpeg(data: bytes, shorter_side: int | None = None) -> RgbJpeg:
    """Returns the image as an RGB JPEG that shows it upright.

    An RGB JPEG passes through byte for byte, progressive ones too: TensorFlow reads them, and a second
    compression would cost quality. All else is decoded once and compressed at quality 95, or 90 where it is
    scaled down: grey and CMYK JPEGs, JPEGs whose EXIF data ask for a rotation (TensorFlow ignores them),
    PNG, GIF (its first frame), BMP and WebP. Transparency is laid on white.

    Args:
        data: the file's content.
        shorter_side: pixels; an image with a longer one is scaled down to it, proportions kept, and
            compressed again. None leaves all sizes as they are.

    Raises:
        RejectError: if this is not an image, or is truncated, damaged or of an unsupported kind.
    """
    if not data:
        raise RejectError("empty file (0 bytes)")
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", *_OTHER_FORMATS)) as image:
            if data.startswith(b"\xff\xd8"):
                _check_whole(image, data)
                unscaled = _scaled(image.size, shorter_side) == image.size
                if image.mode == "RGB" and unscaled and _orientation(image) == 1:
                    return RgbJpeg(data, image.height, image.width)
            elif image.format == "PNG":
                with Image.open(io.BytesIO(data), formats=("PNG",)) as again:
                    again.verify()  # the checksum of each chunk, which decoding does not look at
            return _transcode(image, shorter_side)
    except Image.UnidentifiedImageError:
        raise RejectError(
            f"not an image that can be read (JPEG, {', '.join(_OTHER_FORMATS)}), or cut off in its header: "
            "save it as JPEG or PNG"
        ) from None
    except (MemoryError, RejectError):
        raise
    # Pillow raises OSError, SyntaxError, ValueError ... for damaged files.
    except Exception as error:
        raise RejectError(f"cannot be decoded: {error}") from None


def _check_whole(image: Image.Image, data: bytes) -> None:
    """Refuses a JPEG that is not whole.

    TensorFlow and Pillow decode a JPEG with a hole (a piece is missing, a block is zero, the end was cut off
    and closed), and fill the rest with grey or noise. libjpeg warns of it, and its warnings count here. That
    takes one decode at an eighth of the size.
    """
    colours = "CMYK" if image.mode == "CMYK" else "GRAY"
    try:
        simplejpeg.decode_jpeg(data, colours, min_height=1, min_width=1, min_factor=8)
    except ValueError as error:
        warning = str(error)
        if warning.startswith(("Corrupt", "Premature")) and not _STRAY.fullmatch(warning):
            reason = warning.removeprefix("Corrupt JPEG data: ")
            raise RejectError(f"damaged JPEG: {reason}") from None
        image.load()  # raises, unless this was only a remark on the header


def _orientation(image: Image.Image) -> int:
    """Returns EXIF's orientation, 1 (upright) to 8; 1 where the data say nothing valid."""
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # Pillow raises many kinds here; broken EXIF data do not make a broken image
        return 1
    return orientation if orientation in range(1, 9) else 1


def _transcode(image: Image.Image, shorter_side: int | None) -> RgbJpeg:
    target = _scaled(image.size, shorter_side)
    quality = _QUALITY if target == image.size else _QUALITY_SCALED
    image.draft(None, target)  # a JPEG is decoded at an eighth, a quarter or a half
    image.load()
    with contextlib.suppress(Exception):  # as in _orientation
        image = ImageOps.exif_transpose(image)
    rgb = _to_rgb(image)
    target = _scaled(rgb.size, shorter_side)
    if target != rgb.size:
        rgb = rgb.resize(target, Image.Resampling.LANCZOS)
    jpeg = io.BytesIO()
    rgb.save(jpeg, "JPEG", quality=quality)
    return RgbJpeg(jpeg.getvalue(), rgb.height, rgb.width)


def _scaled(size: tuple[int, int], shorter_side: int | None) -> tuple[int, int]:
    shortest = min(size)
    if shorter_side is None or shortest <= shorter_side:
        return size
    width, height = (max(1, round(side * shorter_side / shortest)) for side in size)
    return width, height


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would clip it at 255
        values = np.asarray(image)
        if 0 < values.max() < _BLACK:
            raise RejectError(
                f"16 bits per pixel, but the largest value is {values.max():,} of 65,535, as in medical "
                "images of 12 bits, so it would be black. Scale its values up to 65,535, and save it again"
            )
        return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")
    if "A" in image.getbands() or "transparency" in image.info:
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image.convert("RGB")
