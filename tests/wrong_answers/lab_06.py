"""What learners get wrong in lab 06, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_6A = r"""
def read(pattern, training):
    names = tf.data.Dataset.list_files(pattern, shuffle=training)
    return names.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=8, deterministic=not training)
"""
_6B = r"""
def input_fn(params):
    dataset = read(params['pattern'], True)
    dataset = dataset.shuffle(1024).repeat()
    dataset = dataset.map(random_view, num_parallel_calls=AUTOTUNE)
    dataset = dataset.batch(params["batch_size"], drop_remainder=True)
    return dataset.prefetch(AUTOTUNE)
"""
_6C = r"""
def cached_input_fn(params):
    dataset = read(params['pattern'], True)
    if params["memory"] >= params["examples"] * KEPT**2 * 3:
        dataset = dataset.map(whole, num_parallel_calls=AUTOTUNE)
        dataset = dataset.cache().shuffle(1024).repeat()
    else:
        if params["memory"] >= params["bytes"]:
            dataset = dataset.cache()
        dataset = dataset.shuffle(1024).repeat().map(whole, num_parallel_calls=AUTOTUNE)
    dataset = dataset.batch(params["batch_size"], drop_remainder=True)
    return dataset.prefetch(AUTOTUNE)
"""
_DRAW = "tf.unstack(tf.random.stateless_uniform([2], [7, number], 0, KEPT - SIZE + 1, tf.int32))"
_CUT = "tf.image.crop_to_bounding_box(image, top, left, SIZE, SIZE), label"


def _crop(*lines: str) -> str:
    """A whole random_crop of these lines, which ends with the cut of the solution."""
    body = "\n".join(f"    {line}" for line in (*lines, f"return {_CUT}"))
    return f"def random_crop(number, image, label):\n{body}\n"


ANSWERS = {
    "6a": [
        Right(_6A),
        # Names by glob, shuffled by a dataset
        Right(r"""
def read(pattern, training):
    paths = sorted(tf.io.gfile.glob(pattern))
    names = tf.data.Dataset.from_tensor_slices(paths)
    if training:
        names = names.shuffle(len(paths))
    def records(path):
        return tf.data.TFRecordDataset(path, buffer_size=8 * 1024 * 1024)
    return names.interleave(records, cycle_length=10, block_length=2, num_parallel_calls=AUTOTUNE, deterministic=not training)
"""),
        # Options, and deterministic where nothing is said
        Right(r"""
def read(pattern, training):
    if not training:
        return tf.data.Dataset.list_files(pattern, shuffle=False).interleave(
            lambda name: tf.data.TFRecordDataset(name), cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE)
    options = tf.data.Options()
    options.deterministic = False
    names = tf.data.Dataset.list_files(pattern)
    return names.interleave(tf.data.TFRecordDataset, 8, 1, tf.data.AUTOTUNE).with_options(options)
"""),
        # Several readers in TFRecordDataset itself, in evaluation
        Right(r"""
def read(pattern, training):
    names = tf.data.Dataset.list_files(pattern, shuffle=training)
    if training:
        return names.apply(tf.data.experimental.parallel_interleave(tf.data.TFRecordDataset, cycle_length=8, sloppy=True))
    return tf.data.TFRecordDataset(names, num_parallel_reads=8)
"""),
        # list_files as it is
        Mutant(
            "pattern, shuffle=training",
            "pattern",
            "In evaluation the order changes from pass to pass",
        ),
        Mutant("shuffle=training", "shuffle=True, seed=1", "In evaluation the order changes"),
        Mutant(
            "shuffle=training",
            "shuffle=False",
            "In training every epoch begins with the same files",
        ),
        Mutant("cycle_length=8,", "", "takes the number of this machine's cores"),
        Mutant("cycle_length=8,", "cycle_length=2,", "cycle_length=2: eight files should be read"),
        Mutant("num_parallel_calls=AUTOTUNE,", "", "reads only one file at a time"),
        Mutant(
            "num_parallel_calls=AUTOTUNE,",
            "num_parallel_calls=1,",
            "num_parallel_calls=1 reads one file at a time",
        ),
        Mutant("num_parallel_calls=AUTOTUNE,", "num_parallel_calls=2,", "of the 8 files at most 2"),
        Mutant(
            "deterministic=not training", "deterministic=False", "depends on which reader is faster"
        ),
        Mutant("deterministic=not training", "deterministic=True", "makes the other readers wait"),
        Mutant(
            "deterministic=not training", "deterministic=training", "makes the other readers wait"
        ),
        # Shuffled once, by Python
        Wrong(
            r"""
import random
def read(pattern, training):
    paths = tf.io.gfile.glob(pattern)
    random.shuffle(paths) if training else paths.sort()
    names = tf.data.Dataset.from_tensor_slices(paths)
    return names.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=8, deterministic=not training)
""",
            "shuffled again in each epoch",
        ),
        # No interleave
        Wrong(
            "def read(pattern, training):\n"
            "    return tf.data.TFRecordDataset(tf.data.Dataset.list_files(pattern, shuffle=training))",
            "read one after the other",
        ),
        # The names, and not what is in the files
        Wrong(
            "def read(pattern, training):\n    return tf.data.Dataset.list_files(pattern, shuffle=training)",
            "read one after the other",
        ),
        # Without end
        Wrong(
            _6A.replace("training)\n", "training).repeat()\n").replace(
                "training).repeat()\n    return", "training)\n    return"
            ),
            "yours gives 480",
        ),
        # Some of the files
        Wrong(
            _6A.replace("shuffle=training)", "shuffle=training).take(8)"),
            "yours gives 48, 48 of them different",
        ),
        # Parsed already
        Wrong(
            _6A.replace("deterministic=not training)", "deterministic=not training).map(parse)"),
            "read should give records",
        ),
        # A list of paths, as before
        Wrong(_6A.replace("list_files(pattern,", "from_tensor_slices(pattern,"), "TypeError"),
    ],
    "6b": [
        Right(_6B),
        # Parsed first, then shuffled, a number of calls
        Right(r"""
def input_fn(params):
    def views(jpeg, label):
        part = tf.concat([tf.zeros([2], tf.int32), tf.io.extract_jpeg_shape(jpeg)[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(jpeg, part, channels=3)
        return tf.cast(tf.image.resize(image, [SIZE, SIZE]), tf.uint8), label
    batch = params["batch_size"]
    encoded = read(params['pattern'], training=True).map(parse).shuffle(buffer_size=2_000)
    return encoded.repeat(-1).map(views, os.cpu_count(), deterministic=False).batch(batch, True).prefetch(2)
"""),
        # Fused, as the lectures write it
        Right(r"""
def input_fn(params):
    mixed = read(params['pattern'], True).shuffle(1024).repeat(None)
    both = tf.data.experimental.map_and_batch(random_view, params["batch_size"], num_parallel_calls=4, drop_remainder=True)
    return mixed.apply(both).prefetch(tf.data.AUTOTUNE)
"""),
        # The encoded records kept in memory
        Right(_6B.replace(".shuffle(1024)", ".cache().shuffle(1024)")),
        # A batch in parallel
        Right(_6B.replace("drop_remainder=True", "drop_remainder=True, num_parallel_calls=2")),
        # Repeated, then shuffled
        Wrong(
            _6B.replace(".shuffle(1024).repeat()", ".repeat().shuffle(1024)"),
            re.compile(r"of the first 300 pictures only \d+ are different. Shuffle first"),
        ),
        # One thread beside
        Wrong(
            _6B.replace("num_parallel_calls=AUTOTUNE", "num_parallel_calls=1"),
            "num_parallel_calls=1 decodes one picture at a time",
        ),
        Wrong(_6B.replace(", num_parallel_calls=AUTOTUNE", ""), "works on one picture at a time"),
        # Decoded pictures in the buffer
        Wrong(
            _6B.replace(".shuffle(1024).repeat()", "").replace(
                "AUTOTUNE)\n    dataset = dataset.batch",
                "AUTOTUNE).shuffle(1024).repeat()\n    dataset = dataset.batch",
            ),
            "shuffle stands below the decoding",
        ),
        # The same views in each epoch
        Wrong(
            _6B.replace(".shuffle(1024).repeat()", ".shuffle(1024)").replace(
                "num_parallel_calls=AUTOTUNE)", "num_parallel_calls=AUTOTUNE).cache().repeat()"
            ),
            "keeps the views of the first epoch",
        ),
        # The pictures of the first pipeline
        Wrong(_6B.replace("random_view", "naive_example"), "random_view makes uint8 of SIZE"),
        # Of the last rung
        Wrong(_6B.replace("random_view", "whole"), "random_view makes uint8 of SIZE"),
        Wrong(_6B.replace(".shuffle(1024)", ""), "Nothing is shuffled"),
        Wrong(_6B.replace(".shuffle(1024)", ".shuffle(64)"), "mixes too little"),
        Wrong(_6B.replace(".shuffle(1024)", ".shuffle(256)"), "1,024 is asked for"),
        Right(_6B.replace(".shuffle(1024)", ".shuffle(4096)")),
        Wrong(_6B.replace(".repeat()", ""), "The dataset ends after the first epoch"),
        Wrong(_6B.replace(".repeat()", ".repeat(12)"), "call repeat() without a number"),
        Wrong(_6B.replace("drop_remainder=True", ""), "without drop_remainder=True"),
        Wrong(_6B.replace('params["batch_size"]', "BATCH"), 'params["batch_size"]'),
        Wrong(_6B.replace(".prefetch(AUTOTUNE)", ""), "The last transform should be prefetch"),
        Wrong(
            _6B.replace("dataset.prefetch(AUTOTUNE)", "dataset").replace(
                "True)\n    dataset = dataset.shuffle",
                "True).prefetch(AUTOTUNE)\n    dataset = dataset.shuffle",
            ),
            "yours is batch",
        ),
        Wrong(
            _6B.replace(".repeat()", "").replace(
                "return dataset.prefetch", "return dataset.repeat().prefetch"
            ),
            "every epoch drops the pictures that do not fill a batch. Repeat",
        ),
        # Read as before
        Wrong(
            _6B.replace(
                "read(params['pattern'], True)",
                "tf.data.TFRecordDataset(tf.io.gfile.glob(params['pattern']))",
            ),
            "one after the other",
        ),
        # Read as for evaluation, by either way to say so
        Wrong(
            _6B.replace("read(params['pattern'], True)", "read(params['pattern'], False)"),
            "is for training",
        ),
        Wrong(
            _6B.replace("read(params['pattern'], True)", "read(params['pattern'], training=False)"),
            "training=False makes read give the order of evaluation",
        ),
        # Batches ahead that fill the memory, and single pictures; a few, or many records, are fine
        Wrong(
            _6B.replace(".prefetch(AUTOTUNE)", ".prefetch(1000)"),
            "prefetch(1000) keeps up to 1,000 batches of 32 decoded pictures in memory",
        ),
        Wrong(
            _6B.replace("dataset = dataset.batch", "dataset = dataset.prefetch(5000).batch"),
            "prefetch(5000) keeps up to 5,000 decoded pictures in memory",
        ),
        Right(_6B.replace(".prefetch(AUTOTUNE)", '.prefetch(params["batch_size"])')),
        Right(_6B.replace(".prefetch(AUTOTUNE)", ".prefetch(16)")),
        Right(
            _6B.replace(
                "True)\n    dataset = dataset.shuffle",
                "True).prefetch(2000)\n    dataset = dataset.shuffle",
            )
        ),
        # The reader by a name of the learner's own
        Right(
            "reader = read\n"
            + _6B.replace("read(params", "reader(pattern=params").replace(
                ", True)", ", training=True)"
            )
        ),
        Wrong(
            "reader = read\n"
            + _6B.replace("read(params", "reader(params").replace(", True)", ", False)"),
            "This input_fn is for training",
        ),
        # Some of the files
        Wrong(
            _6B.replace("read(params['pattern'], True)", "read(params['pattern'], True).take(40)"),
            "yours gives 40, 40 of them",
        ),
    ],
    "6c": [
        Mutant(
            ".map(whole, num_parallel_calls=AUTOTUNE).cache()",
            ".cache().map(whole, num_parallel_calls=AUTOTUNE)",
            "stores the encoded records",
        ),
        Mutant("num_parallel_calls=AUTOTUNE).cache()", "num_parallel_calls=AUTOTUNE)", "no cache"),
        Mutant(
            "records.map(whole, num_parallel_calls=AUTOTUNE)",
            "records.map(whole)",
            "one picture at a time",
        ),
        Mutant(
            "records.map(whole, num_parallel_calls=AUTOTUNE)",
            "records.map(whole, num_parallel_calls=1)",
            "num_parallel_calls=1 decodes one picture at a time",
        ),
        Mutant("records.map(whole,", "records.map(random_view,", "fix the crop"),
        # The size in the wrong unit, of the wrong thing, or for the wrong case
        Mutant("KEPT * KEPT * 3", "KEPT * KEPT * 3 * 4", "decoded pictures of uint8 take 23.0 MB"),
        Mutant("KEPT * KEPT * 3", "KEPT * KEPT", "caches decoded pictures, which do not fit"),
        Mutant(
            'params["examples"] * KEPT * KEPT * 3',
            'params["bytes"]',
            "decoded pictures, which do not",
        ),
        Mutant(
            'records.cache() if params["bytes"] <= params["memory"] else records',
            "records",
            "The records fit, but yours has no cache",
        ),
        Mutant(
            'records.cache() if params["bytes"] <= params["memory"] else records',
            "records.cache()",
            "Neither fits, but yours has a cache",
        ),
        Mutant(
            "records.shuffle(1024).repeat().map(whole, num_parallel_calls=AUTOTUNE)",
            "records.map(whole, num_parallel_calls=AUTOTUNE).shuffle(1024).repeat()",
            "The shuffle buffer holds decoded pictures, too",
        ),
        Mutant("drop_remainder=True", "drop_remainder=False", "drop_remainder"),
        Mutant('batch(params["batch_size"],', "batch(BATCH,", 'params["batch_size"]'),
        Mutant(".prefetch(AUTOTUNE)", "", "should be prefetch"),
        Mutant(
            'read(params["pattern"], training=True)',
            "tf.data.TFRecordDataset(tf.io.gfile.glob(params['pattern']))",
            "one after the other",
        ),
        Mutant(
            "num_parallel_calls=AUTOTUNE).cache()",
            "num_parallel_calls=AUTOTUNE).batch(5).cache().unbatch()",
            "single pictures",
        ),
        # The one that the wrong ones below are made from
        Right(_6C),
        # Parse and decode apart, apply
        Right(r"""
def cached_input_fn(params):
    def decode(jpeg, label):
        return decode_image(jpeg, KEPT), label
    def decoded(ds):
        return ds.map(decode, num_parallel_calls=AUTOTUNE)
    def mixed(ds):
        return ds.shuffle(512).repeat()
    ds, memory = read(params['pattern'], True).map(parse), params["memory"]
    if params["examples"] * np.prod([KEPT, KEPT, 3]) < memory:
        ds = decoded(ds).cache("").apply(mixed)
    elif params["bytes"] < memory:
        ds = ds.cache().apply(mixed).apply(decoded)
    else:
        ds = ds.apply(mixed).apply(decoded)
    return ds.batch(params["batch_size"], True).prefetch(1)
"""),
        # A lambda, cores by number, any order of decoding
        Right(r"""
def cached_input_fn(params):
    left = params["memory"] // params["examples"]
    def kept(dataset, size):
        return dataset.cache() if size < left else dataset
    if left > 3 * KEPT * KEPT:
        images = read(params['pattern'], training=True).map(lambda r: whole(r), num_parallel_calls=os.cpu_count(), deterministic=False)
        images = kept(images, 3 * KEPT * KEPT).shuffle(10_000).repeat()
    else:
        images = kept(read(params['pattern'], training=True), params["bytes"] / params["examples"]).shuffle(10_000)
        images = images.map(lambda r: whole(r), num_parallel_calls=os.cpu_count(), deterministic=False).repeat()
    return images.batch(params["batch_size"], drop_remainder=True).prefetch(2)
"""),
        Wrong(
            _6C.replace("read(params['pattern'], True)", "read(params['pattern'], False)"),
            "This input_fn is for training",
        ),
        Wrong(
            _6C.replace(".prefetch(AUTOTUNE)", ".prefetch(1000)"),
            "1,000 batches of 32 decoded pictures",
        ),
        # Cached in a file
        Right(_6C.replace(".cache()", '.cache(tempfile.mkdtemp() + "/kept")')),
        # Repeat, then shuffle
        Wrong(
            _6C.replace(".shuffle(1024).repeat()", ".repeat().shuffle(1024)"),
            re.compile(r"of the first 300 pictures only \d+ are different. Shuffle first"),
        ),
        # A cache of the first 128 pictures only
        Wrong(
            _6C.replace(".cache()", ".take(128).cache()"), "yours gives 125, 125 of them different"
        ),
        # The first record of each file only
        Wrong(
            _6C.replace(
                "read(params['pattern'], True)",
                "tf.data.Dataset.list_files(params['pattern']).interleave("
                "lambda f: tf.data.TFRecordDataset(f).take(1), num_parallel_calls=AUTOTUNE)",
            ),
            "yours gives 50, 50 of them different",
        ),
        # Each record twice
        Wrong(
            _6C.replace(
                "read(params['pattern'], True)",
                "read(params['pattern'], True).concatenate(read(params['pattern'], True))",
            ),
            "yours gives 600, 300 of them",
        ),
        # Cache after shuffle
        Wrong(
            _6C.replace(".cache().shuffle(1024)", ".shuffle(1024).cache()"),
            "No shuffle stands below the cache",
        ),
        # Cache after repeat
        Wrong(
            _6C.replace(".cache().shuffle(1024).repeat()", ".shuffle(1024).repeat().cache()"),
            "repeat stands above the cache, which never fills",
        ),
        # Repeat after the batch
        Wrong(
            _6C.replace(".repeat()", "").replace(
                "return dataset.prefetch(AUTOTUNE)", "return dataset.repeat().prefetch(AUTOTUNE)"
            ),
            "every epoch drops the pictures that do not fill a batch. Repeat",
        ),
        # No repeat
        Wrong(_6C.replace(".repeat()", ""), "The dataset ends after the first epoch"),
        # Ten epochs
        Wrong(_6C.replace(".repeat()", ".repeat(10)"), "call repeat() without a number"),
        # A buffer smaller than many batches
        Wrong(_6C.replace("shuffle(1024)", "shuffle(32)"), "mixes too little"),
        # Not reshuffled
        Wrong(
            _6C.replace("shuffle(1024)", "shuffle(1024, reshuffle_each_iteration=False)"),
            "With reshuffle_each_iteration=False every epoch has the",
        ),
    ],
    "6d": [
        # TensorFlow's own crop
        Right(
            "def random_crop(number, image, label):\n"
            "    return tf.image.stateless_random_crop(image, [SIZE, SIZE, 3], [number, number]), label\n"
        ),
        # Two draws with two seeds, and a slice
        Right("""
def random_crop(number, image, label):
    options = {"maxval": KEPT - SIZE + 1, "dtype": tf.int32, "minval": 0}
    top = tf.random.stateless_uniform([], [number, 0], **options)
    left = tf.random.stateless_uniform([], [number, 1], **options)
    return tf.slice(image, [top, left, 0], [SIZE, SIZE, 3]), label
"""),
        # Real numbers, rounded down
        Right(
            _crop(
                "draw = tf.random.stateless_uniform([2], tf.stack([number, 3]))",
                "top, left = tf.unstack(tf.cast(draw * (KEPT - SIZE + 1), tf.int32))",
            )
        ),
        # A slice whose shape is stated; a seed of int32
        Right("""
def random_crop(number, image, label):
    seed = tf.random.experimental.stateless_fold_in([1, 2], number)
    place = tf.random.stateless_uniform([2], seed, 0, KEPT - SIZE + 1, tf.int64)
    part = image[place[0]:place[0] + SIZE, place[1]:place[1] + SIZE]
    return tf.ensure_shape(part, [SIZE, SIZE, 3]), label
"""),
        # The number in 32 bits, whose places come again only after 4.3 billion pictures
        Right(
            _crop(
                "seed = [0, tf.cast(number, tf.int32)]",
                "top, left = tf.unstack(tf.random.stateless_uniform([2], seed, 0, 33, tf.int32))",
            )
        ),
        # Drawn anew wherever a job begins
        Wrong(
            "def random_crop(number, image, label):\n"
            "    return tf.image.random_crop(image, [SIZE, SIZE, 3]), label\n",
            "A job that goes on at number 1,000 cuts at other places",
        ),
        Wrong(
            _crop("top, left = tf.unstack(tf.random.uniform([2], 0, 33, tf.int32, seed=3))"),
            "A job that goes on at number 1,000 cuts at other places",
        ),
        Wrong(
            """
def random_crop(number, image, label):
    seed = tf.random.uniform([2], 0, 2**30, dtype=tf.int32)
    return tf.image.stateless_random_crop(image, [SIZE, SIZE, 3], seed), label
""",
            "A job that goes on at number 1,000 cuts at other places",
        ),
        # The number within an epoch, and the number of the epoch
        Wrong(
            _crop(
                "top, left = tf.unstack(tf.random.stateless_uniform([2], [0, number % 240], 0, 33, tf.int32))"
            ),
            "The numbers 0, 240, 480 and so on are cut at the same place",
        ),
        Wrong(
            _crop(
                "top, left = tf.unstack(tf.random.stateless_uniform([2], [0, number // 240], 0, 33, tf.int32))"
            ),
            "numbers are cut at the place of the number before",
        ),
        # One seed for two draws
        Wrong(
            _crop(
                "top = tf.random.stateless_uniform([], [0, number], 0, KEPT - SIZE + 1, tf.int32)",
                "left = tf.random.stateless_uniform([], [0, number], 0, KEPT - SIZE + 1, tf.int32)",
            ),
            "Two draws with one seed are the same",
        ),
        # As the colleague
        Wrong(
            _crop("top, left = np.random.randint(0, KEPT - SIZE + 1, 2)"),
            "cut at the same place. map calls your function once",
        ),
        Wrong(
            _crop("import random", "top, left = random.randrange(33), random.randrange(33)"),
            "map calls your function once",
        ),
        # A generator of NumPy's
        Wrong(
            _crop(
                "rng = np.random.default_rng()",
                "top, left = (int(n) for n in rng.integers(0, 33, 2))",
            ),
            "map calls your function once",
        ),
        # A fixed seed
        Wrong(
            "def random_crop(number, image, label):\n"
            "    return tf.image.stateless_random_crop(image, [SIZE, SIZE, 3], [1, 2]), label\n",
            "what a fixed seed gives",
        ),
        # Along the diagonal
        Wrong(_crop(f"top, left = {_DRAW}", "top = left"), "drawn independently of each other"),
        Wrong(
            _crop(f"top, _ = {_DRAW}", "left = KEPT - SIZE - top"),
            "drawn independently of each other",
        ),
        # One axis only
        Wrong(_crop(f"top, left = 16, {_DRAW}[0]"), "the crops should move along both axes"),
        # Off by one
        Wrong(
            _crop(f"top, left = {_DRAW.replace(' + 1', '')}"),
            "[32] never came (maxval itself is never drawn)",
        ),
        Wrong(
            _crop(f"top, left = {_DRAW.replace('number], 0', 'number], 1')}"),
            "[0] never came (some places are left out)",
        ),
        # Only corners
        Wrong(
            _crop(f"top, left = {_DRAW}", "top, left = top // 16 * 16, left // 16 * 16"),
            "some places are left out",
        ),
        # Beyond the edge
        Wrong(
            _crop(
                "top, left = tf.unstack(tf.random.stateless_uniform([2], [0, number], 0, KEPT, tf.int32))"
            ),
            "reaches beyond the picture",
        ),
        # Python for each picture
        Wrong(
            _crop(
                "top, left = tf.unstack(tf.numpy_function(lambda: np.int32(np.random.randint(0, 33, 2)), [], tf.int32), 2)"
            ),
            "call Python for each picture. That gives new places, but only on a host that runs your own process",
        ),
        # No static shape
        Wrong(
            _crop(f"top, left = {_DRAW}").replace(
                f"return {_CUT}", "return image[top:top + SIZE, left:left + SIZE], label"
            ),
            "static shape",
        ),
        # Another size for each picture
        Wrong(
            _crop(f"top, left = {_DRAW}").replace(
                f"return {_CUT}", "return tf.image.resize(image[top:, left:], [SIZE, SIZE]), label"
            ),
            "uint8",
        ),
        Wrong(
            _crop(f"top, left = {_DRAW}").replace(
                f"return {_CUT}",
                "return tf.cast(tf.image.resize(image[top:, left:], [SIZE, SIZE]), tf.uint8), label",
            ),
            "it was resized, turned, or changed",
        ),
        # Flipped as well
        Wrong(
            _crop(f"top, left = {_DRAW}").replace(
                "box(image,", "box(tf.image.random_flip_left_right(image),"
            ),
            "it was resized, turned, or changed",
        ),
        # Without the label
        Wrong(
            _crop(f"top, left = {_DRAW}").replace(", label\n", "\n"),
            "a pair, the crop and the label",
        ),
        # A tensor cannot be unpacked in a graph
        Wrong(
            _crop("top, left = tf.random.stateless_uniform([2], [0, number], 0, 33, tf.int32)"),
            re.compile("Error"),
        ),
    ],
}
