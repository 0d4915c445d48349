"""What learners get wrong in lab 06, and the words that they must hear."""

import re

from wrong_answers import Mutant, Right, Wrong

_6A = r"""
def make_cached_input_fn(files):
    def input_fn(params):
        dataset = read(files)
        dataset = dataset.map(whole, num_parallel_calls=AUTOTUNE)
        dataset = dataset.cache().shuffle(1024).repeat()
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        return dataset.prefetch(AUTOTUNE)
    return input_fn
"""
_DRAW = "tf.unstack(tf.random.uniform([2], 0, KEPT - SIZE + 1, tf.int32))"

_TOO_FAR = "top, left = tf.unstack(tf.random.uniform([2], KEPT, KEPT + 1, tf.int32))"


def _treated(text: str, line: int = 22) -> str:
    return f"crops_treatment = {{{line}: {text!r}}}"


ANSWERS = {
    "6a": [
        Mutant(
            ".map(whole, num_parallel_calls=AUTOTUNE).cache()",
            ".cache().map(whole, num_parallel_calls=AUTOTUNE)",
            "stores the encoded records",
        ),
        Mutant("num_parallel_calls=AUTOTUNE).cache()", "num_parallel_calls=AUTOTUNE)", "no cache"),
        Mutant("map(whole, num_parallel_calls=AUTOTUNE)", "map(whole)", "one picture at a time"),
        Mutant(".map(whole,", ".map(decoded,", "fix the crop"),
        Mutant("drop_remainder=True", "drop_remainder=False", "drop_remainder"),
        Mutant('batch(params["batch_size"],', "batch(BATCH,", 'params["batch_size"]'),
        Mutant(".prefetch(AUTOTUNE)", "", "should be prefetch"),
        Mutant("read(files)", "tf.data.TFRecordDataset(files)", "one after the other"),
        Mutant(
            """.cache()
        images = images.shuffle(1024).repeat()
        return images.batch(params["batch_size"], drop_remainder=True).prefetch""",
            """
        images = images.batch(params["batch_size"], drop_remainder=True).cache()
        return images.shuffle(1024).repeat().prefetch""",
            "single pictures",
        ),
        # The one that the wrong ones below are made from
        Right(_6A),
        # Repeat, then shuffle
        Right(r"""
def make_cached_input_fn(files):
    def input_fn(params):
        kept = read(files).map(lambda r: whole(r), num_parallel_calls=4, deterministic=False).cache()
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
        ds = read(files).map(parse).map(decode, num_parallel_calls=AUTOTUNE)
        return ds.cache("").apply(training(params["batch_size"]))
    return input_fn
"""),
        # As the lectures write it
        Right(r"""
def make_cached_input_fn(files):
    def input_fn(params):
        paths = tf.data.Dataset.from_tensor_slices(files)
        records = paths.apply(tf.data.experimental.parallel_interleave(
            tf.data.TFRecordDataset, cycle_length=4, sloppy=True))
        images = records.map(whole, num_parallel_calls=os.cpu_count()).cache()
        return images.shuffle(10_000).repeat().batch(params["batch_size"], drop_remainder=True).prefetch(2)
    return input_fn
"""),
        # Cached in a file
        Right(_6A.replace(".cache()", '.cache(tempfile.mkdtemp() + "/kept")')),
        # A cache of the first 128 pictures only
        Wrong(
            _6A.replace(".cache()", ".take(128).cache()"), "yours gives 125, 125 of them different"
        ),
        # The first four files only
        Wrong(
            _6A.replace("read(files)", "read(files[:4])"), "yours gives 20, 20 of them different"
        ),
        # The first record of each file only
        Wrong(
            _6A.replace(
                "read(files)",
                "tf.data.Dataset.from_tensor_slices(files).interleave("
                "lambda f: tf.data.TFRecordDataset(f).take(1), num_parallel_calls=AUTOTUNE)",
            ),
            "yours gives 50, 50 of them different",
        ),
        # Each file twice
        Wrong(_6A.replace("read(files)", "read(files + files)"), "yours gives 600, 300 of them"),
        # Cache after shuffle
        Wrong(
            _6A.replace(".cache().shuffle(1024)", ".shuffle(1024).cache()"),
            "No shuffle stands below the cache",
        ),
        # Cache after repeat
        Wrong(
            _6A.replace(".cache().shuffle(1024).repeat()", ".shuffle(1024).repeat().cache()"),
            "repeat stands above the cache, which never fills",
        ),
        # Repeat after the batch
        Wrong(
            _6A.replace(".repeat()", "").replace(
                "return dataset.prefetch(AUTOTUNE)", "return dataset.repeat().prefetch(AUTOTUNE)"
            ),
            "every epoch drops the pictures that do not fill a batch. Repeat",
        ),
        # No repeat
        Wrong(_6A.replace(".repeat()", ""), "The dataset ends after the first epoch"),
        # Ten epochs
        Wrong(_6A.replace(".repeat()", ".repeat(10)"), "call repeat() without a number"),
        # A buffer smaller than many batches
        Wrong(_6A.replace("shuffle(1024)", "shuffle(32)"), "it should hold many batches"),
        # Not reshuffled
        Wrong(
            _6A.replace("shuffle(1024)", "shuffle(1024, reshuffle_each_iteration=False)"),
            "With reshuffle_each_iteration=False every epoch has the",
        ),
    ],
    "6b": [
        Right(_treated(f"place = {_DRAW}\ntop, left = place")),
        Right(
            _treated(
                "top = tf.random.uniform([], maxval=KEPT - SIZE, dtype=tf.int32)\n"
                "left = tf.random.uniform([], maxval=KEPT - SIZE, dtype=tf.int32)"
            )
        ),
        # TensorFlow's own crop, in the place of both lines
        Right("""
crops_diagnosis = {22: "d"}
crops_treatment = {22: "return tf.image.random_crop(image, [SIZE, SIZE, 3]), label", 23: ""}
"""),
        # The cache, which stands where it should
        Wrong("crops_diagnosis = {30: 'C'}", "What stands above it, parse, draws nothing"),
        # NumPy's other numbers, which do no harm
        Wrong("crops_diagnosis = {28: 'D'}", "that does no harm"),
        # The right line for another reason
        Wrong("crops_diagnosis = {22: 'E'}", "not for the reason"),
        # Python's random numbers in NumPy's place
        Wrong(
            _treated("top, left = hash(str(image)) % 9, 3"), "still cropped at the same position"
        ),
        # Beyond the edge; the line that is quoted is none of the checker's
        Wrong(
            _treated(_TOO_FAR), re.compile(r"fails\. InvalidArgumentError((?! At line ).)*$", re.S)
        ),
        # Python for each picture
        Wrong(
            _treated(
                "top, left = tf.unstack(tf.numpy_function(lambda: np.random.randint(0, 33, 2), [], tf.int64))"
            ),
            "numpy_function calls Python, which a remote host cannot run",
        ),
        # One axis only
        Wrong(
            _treated("top, left = 16, tf.random.uniform([], 0, KEPT - SIZE + 1, tf.int32)"),
            "along one axis only",
        ),
        # The crop goes above the cache
        Wrong(
            f"crops_treatment = {{22: 'top, left = {_DRAW}', "
            "30: 'images = records.map(parse, num_parallel_calls=AUTOTUNE)', "
            "31: 'images = images.map(crop).cache().shuffle(1024).repeat()'}",
            "still cropped at the same position",
        ),
        # No cache at all
        Wrong(
            f"crops_treatment = {{22: 'top, left = {_DRAW}', 30: 'images = records.map(parse)'}}",
            "no longer cached",
        ),
        # Not a program any more
        Wrong(_treated("top, left = tf.random.uniform([2], 0, 33"), "SyntaxError"),
        # A tensor cannot be unpacked in a graph
        Wrong(_treated("top, left = tf.random.uniform([2])"), "fails"),
    ],
    "6c": [
        Right("""
decisions = dict(zip(["petals", "digits", "scenes", "scans"], zip((4.0, 40.0, 40.0, 4.0), "abcd")))
"""),
        Right("""
cores = lambda rate, ms: rate * ms / 1000
decisions = {"scans": (cores(500, 8), "D"), "scenes": (cores(40_000, 1), "C"),
             "digits": (cores(40_000, 1), "B"), "petals": (cores(2000, 2), "A")}
"""),
        Right("decisions = {job: list(pair) for job, pair in decisions.items()}"),
        Wrong("decisions['petal'] = decisions.pop('petals')", "missing: petals; unknown: petal"),
        Mutant('(4, "A")', '(1, "A")', "petals: the cores for 2,000 images/s at 2 ms"),
        Mutant('(4, "A")', '(4000, "A")', "a core has 1,000 ms of CPU time"),
        Mutant('(4, "A")', '(4, "C")', "most of its cores are idle"),
        Mutant('(4, "A")', '(4, "B")', "200 GB, and 60 GB are free"),
        Mutant('(4, "A")', '(4, "E")', "prefetch decodes no picture faster"),
        Mutant('(40, "B")', '(40, "A")', "all 16 cores are busy already"),
        Mutant('(40, "B")', '(40, "C")', "fit into memory"),
        Mutant('(40, "C")', '(40, "B")', "98 GB, and 60 GB are free"),
        Mutant('(40, "C")', '(40, "D")', "wait for input 60 %"),
        Mutant('(4, "D")', '(4, "C")', "a faster input changes nothing"),
        Mutant('(4, "D")', '(4, "X")', "not one of the letters"),
        Mutant('(4, "D")', "'D'", "expected a pair"),
    ],
}
