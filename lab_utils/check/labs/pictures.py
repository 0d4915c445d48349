"""The picture that checks of input pipelines read: its colours tell where a part of it comes from."""

import io

import numpy as np
from PIL import Image


def picture(height: int, width: int, format: str = "JPEG") -> bytes:
    """A file: red grows from 0 to 250 to the right, green downwards, and blue is 90 everywhere."""
    pixels = np.full([height, width, 3], 90, np.uint8)
    pixels[:, :, 0] = np.linspace(0, 250, width)
    pixels[:, :, 1] = np.linspace(0, 250, height)[:, None]
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format, quality=95)
    return file.getvalue()
