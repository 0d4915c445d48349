"""What learners get wrong in lab 06, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_6A = r"""
def read(files):
    return tf.data.TFRecordDataset(files, num_parallel_reads=AUTOTUNE)
"""

_6B = r"""
def view(encoded):
    shape = tf.io.extract_jpeg_shape(encoded)
    window = random_window(shape)
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    image = tf.image.resize(image, [SIZE, SIZE])
    return tf.cast(image, tf.uint8)
"""

_6C = r"""
def prepare(images, step):
    floats = tf.cast(images, tf.bfloat16) / 127.5 - 1.0
    seed = tf.stack([0, tf.cast(step, tf.int32)])
    return random_views(floats, SIZE, seed)
"""

_6D = r"""
def share(files, params):
    if "context" not in params:
        return files
    _, host, hosts, _ = params["context"].current_input_fn_deployment()
    if len(files) < hosts:
        raise ValueError(f"{len(files)} files for {hosts} hosts: each needs one at least")
    return files[host::hosts]
"""

_6E = r"""
def make_input_fn(files):
    def input_fn(params):
        dataset = read(share(files, params))
        dataset = dataset.shuffle(1024).repeat()
        dataset = dataset.map(decoded, num_parallel_calls=AUTOTUNE)
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        return dataset.prefetch(AUTOTUNE)
    return input_fn
"""

_6F = r"""
def make_cached_input_fn(files):
    def input_fn(params):
        dataset = read(share(files, params))
        dataset = dataset.map(whole, num_parallel_calls=AUTOTUNE)
        dataset = dataset.cache().shuffle(1024).repeat()
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        return dataset.prefetch(AUTOTUNE)
    return input_fn
"""

ANSWERS = {
    "6a": [
        # As the lectures write it
        Right("""
def read(files):
    files = tf.data.Dataset.from_tensor_slices(files)
    return files.apply(
        tf.data.experimental.parallel_interleave(
            lambda file: tf.data.TFRecordDataset(file), cycle_length=4, sloppy=True
        )
    )
"""),
        Mutant(
            "        num_parallel_calls=AUTOTUNE,\n        deterministic=False,\n",
            "",
            "num_parallel_calls",
        ),
        Mutant("cycle_length=8", "cycle_length=1", "one file is open"),
        Mutant(
            """return paths.interleave(
        tf.data.TFRecordDataset,
        cycle_length=8,
        num_parallel_calls=AUTOTUNE,
        deterministic=False,
    )""",
            "return tf.data.TFRecordDataset(files)",
            "one file after another",
        ),
        Mutant(
            """return paths.interleave(
        tf.data.TFRecordDataset,
        cycle_length=8,
        num_parallel_calls=AUTOTUNE,
        deterministic=False,
    )""",
            "return paths",
            "paths",
        ),
        Mutant("        deterministic=False,\n", "", "waits"),
        # List_files
        Right(r"""
def read(files):
    paths = tf.data.Dataset.list_files(list(files), shuffle=True)
    return paths.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=AUTOTUNE, deterministic=False)
"""),
        # Lambda, options for the order
        Right(r"""
def read(files):
    options = tf.data.Options()
    options.deterministic = False
    dataset = tf.data.Dataset.from_tensor_slices(files).interleave(
        lambda path: tf.data.TFRecordDataset(path, buffer_size=1 << 20), num_parallel_calls=4, cycle_length=4, block_length=4)
    return dataset.with_options(options)
"""),
        # The one that the wrong ones below are made from
        Right(_6A),
        # Deterministic
        Wrong(
            r"""
def read(files):
    files = tf.constant(files)
    return (tf.data.Dataset.from_tensor_slices(files)
            .shuffle(len(files))
            .interleave(lambda f: tf.data.TFRecordDataset([f]), cycle_length=len(files), num_parallel_calls=tf.data.AUTOTUNE))
""",
            "As it is, the order of the records is fixed, and a reader",
        ),
        # No num_parallel_calls
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, cycle_length=4)
""",
            "interleave without num_parallel_calls opens several files",
        ),
        # One after another
        Wrong(
            r"""
def read(files):
    return tf.data.TFRecordDataset(files)
""",
            "This reads one file after another: use interleave",
        ),
        # Flat_map
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).flat_map(tf.data.TFRecordDataset)
""",
            "This reads one file after another: use interleave",
        ),
        # Cycle_length 1
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, cycle_length=1, num_parallel_calls=AUTOTUNE, deterministic=False)
""",
            "only one file is open at a time",
        ),
        # Paths, not records
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).interleave(lambda f: tf.data.Dataset.from_tensors(f), num_parallel_calls=AUTOTUNE, deterministic=False)
""",
            "The elements are the paths of the files, not the records",
        ),
        # Repeats
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).repeat().interleave(tf.data.TFRecordDataset, num_parallel_calls=AUTOTUNE, deterministic=False)
""",
            "each record once, without repeat",
        ),
        # Map instead of interleave
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).map(tf.data.TFRecordDataset, num_parallel_calls=AUTOTUNE)
""",
            "Each element should be one record, a scalar string; yours",
        ),
        # First file only
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files[:1]).interleave(tf.data.TFRecordDataset, num_parallel_calls=AUTOTUNE, deterministic=False)
""",
            "each record once, without repeat; yours give 6, 6 of them different",
        ),
        # The first four files only
        Wrong(_6A.replace("(files,", "(files[:4],"), "yours give 24, 24 of them different"),
        # The first record of each file only
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).interleave(lambda f: tf.data.TFRecordDataset(f).take(1), num_parallel_calls=AUTOTUNE, deterministic=False)
""",
            "yours give 9, 9 of them different",
        ),
        # Text lines
        Wrong(
            r"""
def read(files):
    return tf.data.Dataset.from_tensor_slices(files).interleave(tf.data.TextLineDataset, num_parallel_calls=AUTOTUNE, deterministic=False)
""",
            "The elements are not the records of the files",
        ),
    ],
    "6b": [
        Mutant(
            "tf.image.decode_and_crop_jpeg(encoded, part, channels=3)",
            "tf.image.crop_to_bounding_box("
            "tf.io.decode_jpeg(encoded, channels=3), *tf.unstack(part))",
            "whole picture",
        ),
        Mutant(
            "part = random_window(tf.io.extract_jpeg_shape(encoded))",
            "part = random_window(tf.shape(tf.io.decode_jpeg(encoded, channels=3)))",
            "whole picture",
        ),
        Mutant(
            "part = random_window(tf.io.extract_jpeg_shape(encoded))",
            "part = tf.constant([0, 0, 100, 100])",
            "Take the part from random_window",
        ),
        Mutant(
            "return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)",
            "return tf.image.resize(image, [SIZE, SIZE])",
            "float32",
        ),
        Mutant(
            "return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)",
            "return image",
            "static",
        ),
        Mutant(
            "return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)",
            "return tf.cast(tf.image.resize(image, [SIZE, SIZE]) / 255.0, tf.uint8)",
            "black",
        ),
        # The one that the wrong ones below are made from
        Right(_6B),
        # One expression, tf.io names, rounded, area
        Right(r"""
def view(encoded):
    return tf.cast(tf.round(tf.image.resize(
        tf.io.decode_and_crop_jpeg(contents=encoded, crop_window=random_window(tf.io.extract_jpeg_shape(encoded)), channels=3),
        size=(SIZE, SIZE), method="area")), tf.uint8)
"""),
        # Saturate_cast, bicubic, set_shape
        Right(r"""
def view(encoded):
    jpeg = encoded
    crop = random_window(tf.image.extract_jpeg_shape(jpeg, output_type=tf.int32))
    pixels = tf.image.decode_and_crop_jpeg(jpeg, crop, channels=3)
    pixels = tf.image.resize(pixels, [SIZE, SIZE], method=tf.image.ResizeMethod.BICUBIC, antialias=True)
    pixels = tf.saturate_cast(pixels, tf.uint8)
    pixels.set_shape([SIZE, SIZE, 3])
    return pixels
"""),
        # Nearest keeps uint8
        Right(r"""
def view(encoded):
    window = random_window(tf.io.extract_jpeg_shape(encoded))
    part = tf.image.decode_and_crop_jpeg(encoded, window, channels=3, dct_method="INTEGER_FAST")
    return tf.image.resize(part, [SIZE, SIZE], method="nearest")
"""),
        # Float 0..1 in between and back
        Right(r"""
def view(encoded):
    part = tf.image.decode_and_crop_jpeg(encoded, random_window(tf.io.extract_jpeg_shape(encoded)), channels=3)
    part = tf.image.resize(tf.image.convert_image_dtype(part, tf.float32), [SIZE, SIZE])
    return tf.image.convert_image_dtype(part, tf.uint8, saturate=True)
"""),
        # Decodes whole, then crops
        Wrong(
            r"""
def view(encoded):
    image = tf.io.decode_jpeg(encoded, channels=3)
    image = tf.image.crop_to_bounding_box(image, *tf.unstack(random_window(tf.shape(image))))
    return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)
""",
            "extract_jpeg_shape reads the shape from the header, and",
        ),
        # Shape from the decoded picture
        Wrong(
            r"""
def view(encoded):
    window = random_window(tf.shape(tf.io.decode_jpeg(encoded, channels=3)))
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8)
""",
            "extract_jpeg_shape reads the shape from the header, and",
        ),
        # Convert_image_dtype of 0..255
        Wrong(
            _6B.replace(
                "tf.cast(image, tf.uint8)", "tf.image.convert_image_dtype(image, tf.uint8)"
            ),
            "The pixels have overflowed: tf.image.resize leaves numbers",
        ),
        # Float32
        Wrong(
            _6B.replace("return tf.cast(image, tf.uint8)", "return image"),
            "uint8 is a quarter of the bytes to carry) in type and static shape: expected ['uint8', [128, 128, 3]], yours gives ['float32'",
        ),
        # Flips on the host
        Wrong(
            _6B.replace(
                "return tf.cast(image, tf.uint8)",
                "return tf.image.random_flip_left_right(tf.cast(image, tf.uint8))",
            ),
            "Some views are mirrored: flips are for the device, in the",
        ),
        # Colours on the host
        Wrong(
            _6B.replace(
                "return tf.cast(image, tf.uint8)",
                "return tf.cast(tf.clip_by_value(tf.image.random_brightness(image, 20.0), 0, 255), tf.uint8)",
            ),
            "colours are for the device, in the model",
        ),
        # Crops to SIZE instead of resizing
        Wrong(
            r"""
def view(encoded):
    shape = tf.io.extract_jpeg_shape(encoded)
    window = random_window(shape)
    image = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
    return tf.image.resize_with_crop_or_pad(image, SIZE, SIZE)
""",
            "squeezed into the square, in red",
        ),
        # Window computed for a picture of SIZE
        Wrong(
            _6B.replace("random_window(shape)", "random_window([SIZE, SIZE, 3])"),
            "random_window gets the picture's shape (extract_jpeg_shape)",
        ),
        # KEPT for SIZE
        Wrong(
            _6B.replace("[SIZE, SIZE]", "[KEPT, KEPT]"),
            "makes three of them, resize sets height and width",
        ),
        # Resize_with_pad
        Wrong(
            _6B.replace(
                "tf.image.resize(image, [SIZE, SIZE])",
                "tf.image.resize_with_pad(image, SIZE, SIZE)",
            ),
            "The top left of the part that random_window gave, (top, left, height, width), squeezed into the square",
        ),
    ],
    "6c": [
        Mutant(
            "tf.stack([0, tf.cast(step, tf.int32)])",
            "tf.constant([0, 0])",
            "other views in each step",
        ),
        Mutant(
            "tf.stack([0, tf.cast(step, tf.int32)])",
            "tf.random.uniform([2], 0, 2**30, tf.int32)",
            "again",
        ),
        Mutant(" / 127.5 - 1.0\n    return random", "\n    return random", "-1 to 1"),
        Mutant(
            "images = tf.cast(images, tf.bfloat16) / 127.5",
            "images = tf.cast(images, tf.float32) / 127.5",
            "bfloat16",
        ),
        Mutant(
            "images = tf.cast(images, tf.bfloat16) / 127.5 - 1.0",
            "images = tf.cast(images, tf.bfloat16) / 255.0",
            "-1 to 1",
        ),
        Mutant("random_views(images, SIZE,", "random_views(images, KEPT,", "128"),
        # The one that the wrong ones below are made from
        Right(_6C),
        # A list as seed
        Right(r"""
def prepare(images, step):
    x = tf.cast(images, tf.float32) / 127.5 - 1
    return random_views(tf.cast(x, tf.bfloat16), SIZE, [0, tf.cast(step, tf.int32)])
"""),
        # A tuple, keyword arguments, int64 step
        Right(r"""
def prepare(images, step):
    scaled = (tf.cast(images, tf.bfloat16) - 127.5) / 127.5
    return random_views(images=scaled, size=SIZE, seed=(0, step))
"""),
        # Concat, float32 until the end
        Right(r"""
def to_signed(images):
    return 2.0 * (tf.cast(images, tf.float32) / 255.0) - 1.0
def prepare(images, step):
    seed = tf.concat([tf.zeros([1], tf.int32), tf.reshape(tf.cast(step, tf.int32), [1])], axis=0)
    return tf.cast(random_views(to_signed(images), SIZE, seed), tf.bfloat16)
"""),
        # Keras Rescaling, convert_to_tensor
        Right(r"""
import keras
_scale = keras.layers.Rescaling(1 / 127.5, offset=-1, dtype="bfloat16")
def prepare(images, step):
    return random_views(_scale(tf.cast(images, tf.bfloat16)), SIZE, tf.convert_to_tensor([tf.constant(0), tf.cast(step, tf.int32)]))
"""),
        # Pad
        Right(r"""
def prepare(images, step):
    seed = tf.pad(tf.cast(step, tf.int32)[tf.newaxis], [[1, 0]])
    images = tf.math.multiply(tf.cast(images, tf.bfloat16), tf.cast(1 / 127.5, tf.bfloat16))
    return random_views(images - 1, SIZE, seed)
"""),
        # 0..1
        Wrong(
            _6C.replace("/ 127.5 - 1.0", "/ 255.0"), "takes values from -1 to 1: expected [-1, 1]"
        ),
        # -0.5..0.5
        Wrong(
            _6C.replace("/ 127.5 - 1.0", "/ 255.0 - 0.5"),
            "takes values from -1 to 1: expected [-1, 1]",
        ),
        # Not scaled
        Wrong(_6C.replace(" / 127.5 - 1.0", ""), "takes values from -1 to 1: expected [-1, 1]"),
        # Integer division
        Wrong(
            r"""
def prepare(images, step):
    floats = tf.cast(images // 128, tf.bfloat16) - 1
    return random_views(floats, SIZE, tf.stack([0, tf.cast(step, tf.int32)]))
""",
            "takes values from -1 to 1: expected [-1, 1]",
        ),
        # Float32
        Wrong(
            _6C.replace("tf.bfloat16", "tf.float32"),
            "The type and shape of 8 views: expected ['bfloat16'",
        ),
        # A fixed seed
        Wrong(
            _6C.replace("tf.stack([0, tf.cast(step, tf.int32)])", "tf.constant([0, 1])"),
            "other views in each step",
        ),
        # A random seed
        Wrong(
            _6C.replace(
                "tf.stack([0, tf.cast(step, tf.int32)])",
                "tf.random.uniform([2], maxval=10000, dtype=tf.int32)",
            ),
            "the same ones when it runs again",
        ),
        # Step first
        Wrong(
            _6C.replace(
                "tf.stack([0, tf.cast(step, tf.int32)])", "tf.stack([tf.cast(step, tf.int32), 0])"
            ),
            "(0 and the step: other views",
        ),
        # Step modulo
        Wrong(
            _6C.replace("tf.cast(step, tf.int32)])", "tf.cast(step, tf.int32) % 2])"),
            "(0 and the step: other views",
        ),
        # Scales after the views
        Wrong(
            r"""
def prepare(images, step):
    seen = random_views(tf.cast(images, tf.bfloat16), SIZE, tf.stack([0, tf.cast(step, tf.int32)]))
    return seen / 127.5 - 1.0
""",
            "takes values from -1 to 1: expected [-1, 1]",
        ),
    ],
    "6d": [
        Mutant("return files[host::hosts]", "return files[::hosts]", "nobody"),
        Mutant("return files[host::hosts]", "return files", "twice"),
        Mutant(
            "return files[host::hosts]",
            "each = len(files) // hosts\n    return files[host * each : (host + 1) * each]",
            "nobody",
        ),
        Mutant('    if "context" not in params:\n        return files\n', "", 'no "context"'),
        Mutant("    if len(files) < hosts:", "    if False:", "ValueError"),
        Mutant("return files[host::hosts]", "return files[host]", "list"),
        # The one that the wrong ones below are made from
        Right(_6D),
        # Get, list comprehension with modulo
        Right(r"""
def share(files, params):
    context = params.get("context")
    if context is None:
        return list(files)
    deployment = context.current_input_fn_deployment()
    host, hosts = deployment[1], deployment[2]
    if hosts > len(files):
        raise ValueError("too few files: %d for %d hosts" % (len(files), hosts))
    return [file for n, file in enumerate(files) if n % hosts == host]
"""),
        # Try except KeyError, contiguous by array_split
        Right(r"""
def share(files, params):
    try:
        context = params["context"]
    except KeyError:
        return files
    _device, host, hosts, _cores = context.current_input_fn_deployment()
    if len(files) // hosts == 0:
        raise ValueError("{} hosts but only {} files".format(hosts, len(files)))
    return [str(each) for each in np.array_split(files, hosts)[host]]
"""),
        # One host is the default
        Right(r"""
def share(files, params):
    host, hosts = 0, 1
    if "context" in params:
        host, hosts = params["context"].current_input_fn_deployment()[1:3]
    if len(files) < hosts:
        raise ValueError(f"There are {len(files)} files and {hosts} hosts.")
    return sorted(files)[host::hosts]
"""),
        # The same files for all
        Wrong(_6D.replace("files[host::hosts]", "files"), "hosts, some files are read twice"),
        # Blocks that leave out the rest
        Wrong(
            _6D.replace(
                "files[host::hosts]",
                "files[host * (len(files) // hosts):(host + 1) * (len(files) // hosts)]",
            ),
            "hosts, nobody reads train-",
        ),
        # Blocks rounded up: the last hosts have none
        Wrong(
            _6D.replace(
                "files[host::hosts]",
                "files[host * -(-len(files) // hosts):(host + 1) * -(-len(files) // hosts)]",
            ),
            "has none: it would have nothing to do, and the others",
        ),
        # As many as hosts refused
        Wrong(
            _6D.replace("len(files) < hosts", "len(files) <= hosts"),
            "10 files for 10 hosts: each needs one at least",
        ),
        # No error
        Wrong(
            _6D.replace(
                '    if len(files) < hosts:\n        raise ValueError(f"{len(files)} files for {hosts} hosts: each needs one at least")\n',
                "",
            ),
            "3 files for 6 hosts, on host 0 (raise a ValueError that says both numbers)",
        ),
        # Device for host
        Wrong(
            _6D.replace("_, host, hosts, _ =", "host, _, hosts, _ ="),
            "slice indices must be integers",
        ),
        # Cores for hosts
        Wrong(
            _6D.replace("_, host, hosts, _ =", "_, host, _, hosts ="), "hosts, nobody reads train-"
        ),
        # Stride without offset
        Wrong(_6D.replace("files[host::hosts]", "files[::hosts]"), "hosts, nobody reads train-"),
        # Message without the numbers
        Wrong(
            _6D.replace(
                'f"{len(files)} files for {hosts} hosts: each needs one at least"',
                '"fewer files than hosts"',
            ),
            "raise a ValueError that says both numbers",
        ),
        # Message with one number
        Wrong(
            _6D.replace(
                'f"{len(files)} files for {hosts} hosts: each needs one at least"',
                'f"need at least {hosts} files"',
            ),
            "raise a ValueError that says both numbers",
        ),
    ],
    "6e": [
        Mutant(
            '"PER_HOST_V1": (hosts, batch // hosts)',
            '"PER_HOST_V1": (hosts, batch)',
            "a host's share",
        ),
        Mutant(
            '"PER_HOST_V1": (hosts, batch // hosts)',
            '"PER_HOST_V1": (1, batch)',
            "once for each host",
        ),
        Mutant(
            '"PER_HOST_V2": (hosts, batch // cores)',
            '"PER_HOST_V2": (hosts, batch // hosts)',
            "one core",
        ),
        Mutant(
            '"PER_HOST_V2": (hosts, batch // cores)',
            '"PER_HOST_V2": (cores, batch // cores)',
            "once for each host",
        ),
        Mutant(
            '"PER_SHARD_V1": (cores, batch // cores)',
            '"PER_SHARD_V1": (hosts, batch // cores)',
            "each core",
        ),
        Mutant('"BROADCAST": (1, batch)', '"BROADCAST": (1, batch // cores)', "whole batch"),
        Mutant('"BROADCAST": (1, batch)', '"BROADCAST": (hosts, batch)', "once"),
        # Floats
        Wrong(
            r"""
def input_calls(mode, batch, hosts, cores):
    calls = {"BROADCAST": 1, "PER_SHARD_V1": cores}.get(mode, hosts)
    pieces = {"BROADCAST": 1, "PER_HOST_V1": hosts}.get(mode, cores)
    return calls, batch / pieces
""",
            "whole number",
        ),
        # By cases
        Right(
            r"""
def input_calls(mode, batch, hosts, cores):
    if mode == "BROADCAST":
        return 1, batch
    if mode == "PER_SHARD_V1":
        return cores, batch // cores
    return hosts, batch // (hosts if mode.endswith("V1") else cores)
"""
        ),
        # A list
        Right(
            r"""
def input_calls(mode, batch, hosts, cores):
    calls = {"BROADCAST": 1, "PER_SHARD_V1": cores}.get(mode, hosts)
    pieces = {"BROADCAST": 1, "PER_HOST_V1": hosts}.get(mode, cores)
    return [calls, int(batch / pieces)]
"""
        ),
    ],
    "6f": [
        Mutant(
            "records.map(decoded, num_parallel_calls=AUTOTUNE)",
            "records.map(decoded)",
            "one picture",
        ),
        Mutant(
            """read(share(files, params)).shuffle(1024).repeat()
        images = records.map(decoded, num_parallel_calls=AUTOTUNE)""",
            """read(share(files, params)).repeat()
        images = records.map(decoded, num_parallel_calls=AUTOTUNE).shuffle(1024)""",
            "decoded images",
        ),
        Mutant(
            ".shuffle(1024).repeat()\n        images = records",
            ".repeat()\n        images = records",
            "shuffle",
        ),
        Mutant(
            ".shuffle(1024).repeat()\n        images = records",
            ".shuffle(1024)\n        images = records",
            "ends",
        ),
        Mutant(
            """images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"], drop_remainder=True).prefetch(AUTOTUNE)""",
            """images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"], drop_remainder=True)""",
            "prefetch",
        ),
        Mutant(
            """images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"], drop_remainder=True)""",
            """images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"])""",
            "drop_remainder",
        ),
        Mutant(
            """images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(params["batch_size"], """,
            """images = records.map(decoded, num_parallel_calls=AUTOTUNE)
        return images.batch(BATCH, """,
            "batch_size",
        ),
        Mutant("records = read(share(files, params)).sh", "records = read(files).sh", "share"),
        # The one that the wrong ones below are made from
        Right(_6E),
        # Repeat before shuffle, lambda map
        Right(r"""
def make_input_fn(files):
    def input_fn(params):
        batch_size = params["batch_size"]
        mine = share(files, params)
        return (read(mine).repeat().shuffle(buffer_size=1024)
                .map(lambda record: decoded(record), num_parallel_calls=os.cpu_count(), deterministic=False)
                .batch(batch_size, drop_remainder=True, num_parallel_calls=AUTOTUNE).prefetch(2))
    return input_fn
"""),
        # Helper function, functools
        Right(r"""
import functools
def _input_fn(params, files):
    ds = read(share(files, params))
    for step in (lambda d: d.shuffle(1_024, reshuffle_each_iteration=True), lambda d: d.repeat(None),
                 lambda d: d.map(map_func=decoded, num_parallel_calls=8),
                 lambda d: d.batch(params["batch_size"], True), lambda d: d.prefetch(1)):
        ds = step(ds)
    return ds
def make_input_fn(files):
    return functools.partial(_input_fn, files=files)
"""),
        # Map split in two, cycle shuffle seed
        Right(r"""
def make_input_fn(files):
    def input_fn(params):
        records = read(share(list(files), params)).shuffle(1024, seed=7).repeat(-1)
        pictures = records.map(parse, num_parallel_calls=AUTOTUNE).map(
            lambda jpeg, label: (view(jpeg), label), num_parallel_calls=AUTOTUNE)
        return pictures.batch(params["batch_size"], drop_remainder=True).prefetch(buffer_size=tf.data.AUTOTUNE)
    return input_fn
"""),
        # Shuffle after map
        Wrong(
            _6E.replace("dataset.shuffle(1024).repeat()", "dataset.repeat()").replace(
                "dataset.batch(", "dataset.shuffle(1024).batch("
            ),
            "The shuffle stands after the decoding, and holds decoded",
        ),
        # Shuffle of 10
        Wrong(_6E.replace("shuffle(1024)", "shuffle(10)"), "A shuffle buffer of"),
        # Repeat after batch(drop_remainder): each epoch loses its rest
        Wrong(
            _6E.replace("dataset.shuffle(1024).repeat()", "dataset.shuffle(1024)").replace(
                "return dataset.prefetch(AUTOTUNE)", "return dataset.repeat().prefetch(AUTOTUNE)"
            ),
            "every epoch loses what does not fill a batch. Repeat",
        ),
        # Repeat(10)
        Wrong(_6E.replace(".repeat()", ".repeat(10)"), "epochs: without end it takes no number"),
        # Naive_example
        Wrong(
            _6E.replace("decoded, num", "naive_example, num"),
            "as `decoded` gives them: expected ['uint8 [5, 128, 128, 3]'",
        ),
        # TFRecordDataset instead of read
        Wrong(
            _6E.replace(
                "read(share(files, params))", "tf.data.TFRecordDataset(share(files, params))"
            ),
            "The files are read one after the other: take the records",
        ),
        # Reshuffle_each_iteration=False
        Wrong(
            _6E.replace("shuffle(1024)", "shuffle(1024, reshuffle_each_iteration=False)"),
            "With reshuffle_each_iteration=False every epoch brings the",
        ),
    ],
    "6g": [
        Mutant(
            ".map(whole, num_parallel_calls=AUTOTUNE).cache()",
            ".cache().map(whole, num_parallel_calls=AUTOTUNE)",
            "encoded",
        ),
        Mutant("num_parallel_calls=AUTOTUNE).cache()", "num_parallel_calls=AUTOTUNE)", "no cache"),
        Mutant("map(whole, num_parallel_calls=AUTOTUNE)", "map(whole)", "one picture"),
        Mutant(
            """AUTOTUNE).cache()
        images = images.shuffle(1024).repeat()""",
            """AUTOTUNE).shuffle(1024).cache()
        images = images.repeat()""",
            "same order",
        ),
        Mutant(
            """AUTOTUNE).cache()
        images = images.shuffle(1024).repeat()""",
            """AUTOTUNE).repeat().cache()
        images = images.shuffle(1024)""",
            "never full",
        ),
        Mutant(".map(whole,", ".map(decoded,", "same part"),
        Mutant(
            """.cache()
        images = images.shuffle(1024).repeat()
        return images.batch(params["batch_size"], drop_remainder=True).prefetch""",
            """
        images = images.batch(params["batch_size"], drop_remainder=True).cache()
        return images.shuffle(1024).repeat().prefetch""",
            "loses what does not fill a batch",
        ),
        # The one that the wrong ones below are made from
        Right(_6F),
        # Repeat, then shuffle; comprehension
        Right(r"""
def make_cached_input_fn(files):
    def input_fn(params):
        kept = read(share(files, params)).map(lambda r: whole(r), num_parallel_calls=4, deterministic=False).cache()
        return kept.repeat().shuffle(2000).batch(params["batch_size"], drop_remainder=True).prefetch(4)
    return input_fn
"""),
        # Parse and decode apart, apply
        Right(r"""
def make_cached_input_fn(files):
    def decode(jpeg, label):
        return decode_image(jpeg, KEPT), label
    def training(batch_size):
        return lambda ds: ds.shuffle(512).repeat().batch(batch_size, True).prefetch(1)
    def input_fn(params):
        ds = read(share(files, params)).map(parse).map(decode, num_parallel_calls=AUTOTUNE)
        return ds.cache("").apply(training(params["batch_size"]))
    return input_fn
"""),
        # Snapshot-free, batch parallel
        Right(r"""
def make_cached_input_fn(files):
    def input_fn(params):
        size = int(params["batch_size"])
        examples = read(share(files, params)).map(whole, num_parallel_calls=os.cpu_count())
        examples = examples.cache()
        examples = examples.shuffle(10_000, reshuffle_each_iteration=True)
        examples = examples.repeat()
        examples = examples.batch(size, drop_remainder=True, num_parallel_calls=AUTOTUNE)
        return examples.prefetch(tf.data.AUTOTUNE)
    return input_fn
"""),
        # Cached in a file
        Right(_6F.replace(".cache()", '.cache(tempfile.mkdtemp() + "/kept")')),
        # No cache
        Wrong(
            _6F.replace(".cache()", ""), "There is no cache: every picture is decoded again in each"
        ),
        # Cache of encoded records
        Wrong(
            _6F.replace(".cache()", "").replace("dataset.map(whole", "dataset.cache().map(whole"),
            "The cache stands above the decoding: it keeps the encoded",
        ),
        # Cache after shuffle
        Wrong(
            _6F.replace(".cache().shuffle(1024)", ".shuffle(1024).cache()"),
            "No shuffle stands below the cache: every epoch would",
        ),
        # Cache after repeat
        Wrong(
            _6F.replace(".cache().shuffle(1024).repeat()", ".shuffle(1024).repeat().cache()"),
            "repeat stands above the cache, which then is never full",
        ),
        # Repeat after the batch
        Wrong(
            _6F.replace(".repeat()", "").replace(
                "return dataset.prefetch(AUTOTUNE)", "return dataset.repeat().prefetch(AUTOTUNE)"
            ),
            "every epoch loses what does not fill a batch. Repeat",
        ),
        # Shuffle of 2
        Wrong(_6F.replace("shuffle(1024)", "shuffle(2)"), "A shuffle buffer of"),
        # Not reshuffled
        Wrong(
            _6F.replace("shuffle(1024)", "shuffle(1024, reshuffle_each_iteration=False)"),
            "With reshuffle_each_iteration=False every epoch brings the",
        ),
    ],
    "6h": [
        Mutant("images_per_second * cpu_ms / 1000", "images_per_second / cpu_ms", "2 cores"),
        Mutant(
            "images_per_second * cpu_ms / 1000", "images_per_second / (1000 * cpu_ms)", "2 cores"
        ),
        # Keyword style
        Right(r"""
def host_cores(images_per_second, cpu_ms):
    seconds_per_image = cpu_ms / 1000.0
    return images_per_second * seconds_per_image
"""),
        # Lambda
        Right(r"""
host_cores = lambda images_per_second, cpu_ms: images_per_second / (1e3 / cpu_ms)
"""),
        # Numpy
        Right(r"""
def host_cores(images_per_second, cpu_ms):
    return np.multiply(images_per_second, cpu_ms) * 1e-3
"""),
        # No unit
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return images_per_second * cpu_ms
""",
            "milliseconds of CPU in each second; a core has",
        ),
        # Divided
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return images_per_second / cpu_ms / 1000
""",
            "keep 2 cores busy: expected 2, yours gives 8",
        ),
        # Upside down
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return 1000 / (images_per_second * cpu_ms)
""",
            "keep 2 cores busy: expected 2, yours gives 0.5",
        ),
        # Rounded up
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return -(-images_per_second * cpu_ms // 1000)
""",
            "ms keep a quarter of a core busy: do not round",
        ),
        # Whole number
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return int(images_per_second * cpu_ms / 1000)
""",
            "ms keep a quarter of a core busy: do not round",
        ),
        # Rounded
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return round(images_per_second * cpu_ms / 1000)
""",
            "ms keep a quarter of a core busy: do not round",
        ),
        # Per this machine's cores
        Wrong(
            r"""
def host_cores(images_per_second, cpu_ms):
    return images_per_second * cpu_ms / 1000 / os.cpu_count()
""",
            "keep 2 cores busy: expected 2",
        ),
    ],
    "6i": [
        Mutant(
            'spent("IteratorGetNextOp::DoCompute") / spent("SessionRun")',
            'spent("SessionRun") / spent("IteratorGetNextOp::DoCompute")',
            "not waiting",
        ),
        Mutant(
            'spent("IteratorGetNextOp::DoCompute") /', 'spent("decode:DecodeJpeg") /', "not waiting"
        ),
        Mutant('/ spent("SessionRun")', '/ spent("conv2d/Relu:_FusedConv2D")', "18 of 54"),
        Mutant('/ spent("SessionRun")', "", "not waiting"),
        # By the row, where two events show the same
        Wrong(
            """
def waiting_share(events):
    def spent(row):
        return sum(each.end - each.start for each in events if each.row == row)
    return spent("tf_data_iterator_get_next") / spent("python")
""",
            "18 of 54",
        ),
        # Everything of tf.data
        Wrong(
            """
def waiting_share(events):
    steps = sum(e.end - e.start for e in events if e.name == "SessionRun")
    return sum(e.end - e.start for e in events if e.row.startswith("tf_data")) / steps
""",
            "not waiting",
        ),
        # What the ops leave over
        Wrong(
            """
def waiting_share(events):
    steps = sum(e.end - e.start for e in events if e.name == "SessionRun")
    return 1 - sum(e.end - e.start for e in events if e.row == "tf_Compute") / steps
""",
            "18 of 54",
        ),
        # From the first event to the last
        Wrong(
            """
def waiting_share(events):
    waits = sum(e.end - e.start for e in events if e.name == "IteratorGetNextOp::DoCompute")
    return waits / (max(e.end for e in events) - min(e.start for e in events))
""",
            "18 of 54",
        ),
        # A mean of shares
        Wrong(
            """
def waiting_share(events):
    steps = sorted((e.start, e.end) for e in events if e.name == "SessionRun")
    waits = sorted((e.start, e.end) for e in events if "GetNext" in e.name)
    shares = [(w[1] - w[0]) / (s[1] - s[0]) for s, w in zip(steps, waits)]
    return sum(shares) / len(shares)
""",
            "Add up first",
        ),
        # Percent
        Wrong(
            """
def waiting_share(events):
    steps = sum(e.end - e.start for e in events if e.name == "SessionRun")
    return 100 * sum(e.end - e.start for e in events if "GetNext" in e.name) / steps
""",
            "at most 1",
        ),
        # Loops
        Right("""
def waiting_share(events):
    total, waited = 0.0, 0.0
    for event in events:
        length = event.end - event.start
        if event.name.endswith("DoCompute"):
            waited += length
        elif event.name == "SessionRun" and event.row == "python":
            total += length
    return waited / total
"""),
        # NumPy
        Right("""
def waiting_share(events):
    lengths = np.array([each.end - each.start for each in events])
    names = np.array([each.name for each in events])
    return lengths[names == "IteratorGetNextOp::DoCompute"].sum() / lengths[names == "SessionRun"].sum()
"""),
        # Summed by name
        Right("""
def waiting_share(events):
    spent = {}
    for each in events:
        spent[each.name] = spent.get(each.name, 0) + each.end - each.start
    return spent["IteratorGetNextOp::DoCompute"] / spent["SessionRun"]
"""),
    ],
}
