"""What learners get wrong in lab 06, and the words that they must hear."""

from wrong_answers import Mutant

ANSWERS = {
    "6a": [
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
            "same part",
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
    ],
    "6c": [
        Mutant("tf.stack([0, tf.cast(step, tf.int32)])", "tf.constant([0, 0])", "every step"),
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
    ],
    "6e": [
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
    ],
    "6f": [
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
            "whole batches",
        ),
    ],
    "6g": [
        Mutant("images_per_second * cpu_ms / 1000", "images_per_second * cpu_ms", "milliseconds"),
        Mutant("images_per_second * cpu_ms / 1000", "images_per_second / cpu_ms", "2 cores"),
        Mutant(
            "images_per_second * cpu_ms / 1000", "images_per_second / (1000 * cpu_ms)", "2 cores"
        ),
    ],
}
