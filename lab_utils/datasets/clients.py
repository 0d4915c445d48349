"""Five clients of a served flowers model, each with a fault of its own: lab 14 receives their requests."""

import base64
import io
import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

TINY = 10  # pixels: the side to which one of them scales


def _body(pictures: Sequence[bytes]) -> str:
    """A predict request as it should be."""
    rows = [{"b64": base64.b64encode(picture).decode()} for picture in pictures]
    return json.dumps({"instances": rows})


def _jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=95)
    return file.getvalue()


def requests(paths: Sequence[Path]) -> dict[str, str]:
    """The request of each client about the same pictures, by the client's name: JSON text."""
    files = [path.read_bytes() for path in paths]
    images = [Image.open(path).convert("RGB") for path in paths]
    plain = [base64.b64encode(file).decode() for file in files]
    bgr = [Image.merge("RGB", image.split()[::-1]) for image in images]  # as OpenCV reads them
    return {
        "Ann": json.dumps({"instances": plain}),
        "Ben": _body([_jpeg(image.resize([TINY, TINY])) for image in images]),
        "Cem": _body([_jpeg(image) for image in bgr]),
        "Dora": _body(sorted(files, key=len)),
        "Eve": _body([*files[:-1], files[-1][: len(files[-1]) // 2]]),
    }
