"""What TensorFlow's decoders pass over, done in the graph: EXIF's orientation, and transparency on white.

So a SavedModel gives bytes as a phone or a drawing program wrote them the answer that the converter's
preparation of the same file would get.
"""

import tensorflow as tf

from lab_utils.flowers.input_pipeline import decode_image, squeezed

_HEAD = 1 << 16  # bytes; a segment holds no more, and that of EXIF is the first or the second
_MARK = b"Exif\0\0"
_BEFORE = 4  # bytes of a segment before its content: FF, E1, and its length
_ORIENTATION = 0x0112
_ENTRIES, _ENTRY = 100, 12  # of a directory of EXIF: read at most, and the bytes of each


def decode_upright(encoded: tf.Tensor, size: int) -> tf.Tensor:
    """Decodes one image as the converter prepares it: scalar string -> uint8 [size, size, 3]."""
    is_png = tf.equal(tf.strings.substr(encoded, 0, 4), b"\x89PNG")
    return tf.cond(
        is_png,
        lambda: squeezed(png_on_white(encoded), size, "area"),
        lambda: turned(decode_image(encoded, size), orientation(encoded)),
    )


def orientation(encoded: tf.Tensor) -> tf.Tensor:
    """Reads EXIF's orientation: scalar string -> int32, 1 (upright) to 8; 1 where it says nothing.

    Source: CIPA DC-008 (EXIF 2.32), 4.5 and 4.6; TIFF 6.0, section 2.
    """
    head = tf.cast(tf.io.decode_raw(tf.strings.substr(encoded, 0, _HEAD), tf.uint8), tf.int32)
    head = tf.pad(head, [[0, _BEFORE + len(_MARK)]])  # the last windows are whole
    windows = tf.size(head) - _BEFORE - len(_MARK)
    signs = {0: 0xFF, 1: 0xE1} | {_BEFORE + i: sign for i, sign in enumerate(_MARK)}
    same = [tf.equal(head[i:][:windows], sign) for i, sign in signs.items()]
    found = tf.where(tf.reduce_all(tf.stack(same), axis=0))[:, 0]
    start = tf.concat([found, [0]], 0)[0] + _BEFORE + len(_MARK)  # of EXIF's own count

    def number(at: tf.Tensor, width: int) -> tf.Tensor:
        """The unsigned numbers of `width` bytes at these places; whatever, where the file ends before."""
        places = start + at[..., None] + tf.range(width, dtype=tf.int64)
        last = tf.cast(tf.size(head) - 1, tf.int64)
        values = tf.cast(tf.gather(head, tf.clip_by_value(places, 0, last)), tf.int64)
        little = tf.equal(tf.gather(head, tf.minimum(start, last)), ord("I"))
        values = tf.where(little, tf.reverse(values, [-1]), values)
        return tf.reduce_sum(values * [256**power for power in reversed(range(width))], -1)

    directory = number(tf.constant(4, tf.int64), 4)
    entries = tf.minimum(number(directory, 2), _ENTRIES)
    places = directory + 2 + _ENTRY * tf.range(entries)
    wanted = tf.boolean_mask(number(places + 8, 2), tf.equal(number(places, 2), _ORIENTATION))
    says = tf.concat([wanted, [1]], 0)[0]
    valid = (tf.size(found) > 0) & (says >= 1) & (says <= 8)
    return tf.cast(tf.where(valid, says, 1), tf.int32)


def turned(image: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Turns an image [S, S, C] as EXIF's orientation says, so that it stands upright."""
    numbers = ([5, 6, 7, 8], [2, 3, 6, 7], [3, 4, 7, 8])
    swapped, mirrored, inverted = (tf.reduce_any(tf.equal(orientation, each)) for each in numbers)
    image = tf.cond(swapped, lambda: tf.transpose(image, [1, 0, 2]), lambda: image)
    image = tf.cond(mirrored, lambda: tf.reverse(image, [1]), lambda: image)
    return tf.cond(inverted, lambda: tf.reverse(image, [0]), lambda: image)


def png_on_white(png: tf.Tensor) -> tf.Tensor:
    """Decodes a PNG, laid on white: scalar string -> float32 [height, width, 3], 0 to 255."""
    image = tf.cast(tf.io.decode_png(png, channels=4), tf.float32)
    opaque = image[..., 3:] / 255
    return image[..., :3] * opaque + 255 * (1 - opaque)
