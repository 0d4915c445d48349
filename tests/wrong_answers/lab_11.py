"""What learners get wrong in lab 11, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_11A = r"""
def make_train_dataset(images, labels, global_batch):
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(len(images)).repeat().batch(global_batch, drop_remainder=True)
    dataset = dataset.map(lambda x, y: (augmented(x), y), num_parallel_calls=tf.data.AUTOTUNE)
    return dataset.prefetch(1)
"""

_11B = r"""
def make_model(dtype):
    images = keras.Input((8, 8, 1), dtype="uint8")
    net = layers.Rescaling(1 / 16, dtype=dtype)(images)
    net = layers.Conv2D(32, 3, padding="same", activation="relu", dtype=dtype)(net)
    net = layers.MaxPooling2D(2, dtype=dtype)(net)
    net = layers.Flatten(dtype=dtype)(net)
    net = layers.Dense(64, activation="relu", dtype=dtype)(net)
    logits = layers.Dense(10, dtype="float32")(net)
    return keras.Model(images, logits)
"""

_11C = r"""
def make_compiled(strategy, dtype, learning_rate, steps_per_execution=1):
    with strategy.scope():
        model = make_model(dtype)
        model.compile(
            keras.optimizers.SGD(learning_rate, momentum=0.9),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            weighted_metrics=["accuracy"],
            steps_per_execution=steps_per_execution,
        )
    return model
"""

_11D = r"""
def make_eval_dataset(images, labels, global_batch):
    missing = -len(images) % global_batch
    images = np.concatenate([images, np.zeros((missing, *images.shape[1:]), images.dtype)])
    weights = np.concatenate([np.ones(len(labels), np.float32), np.zeros(missing, np.float32)])
    labels = np.concatenate([labels, np.zeros(missing, labels.dtype)])
    return tf.data.Dataset.from_tensor_slices((images, labels, weights)).batch(global_batch, drop_remainder=True)
"""

_11E = r"""
def make_schedule(rate, cores, steps):
    warmup = steps // 10
    return keras.optimizers.schedules.CosineDecay(
        initial_learning_rate=rate, decay_steps=steps - warmup, warmup_target=cores * rate, warmup_steps=warmup)
"""

ANSWERS = {
    "11a": [
        Mutant(
            ".repeat().batch(global_batch, drop_remainder=True)",
            ".repeat().batch(global_batch)",
            "drop_remainder",
        ),
        Mutant("shuffle(2048, seed=1).repeat().batch", "shuffle(2048, seed=1).batch", "repeat"),
        Mutant("dataset.shuffle(2048, seed=1).repeat()", "dataset.repeat()", "order"),
        Mutant(
            "dataset.shuffle(2048, seed=1).repeat().batch(global_batch, drop_remainder=True)",
            "dataset.repeat().batch(global_batch, drop_remainder=True).shuffle(64, seed=1)",
            "not examples",
        ),
        Mutant("(augmented(images), labels)", "(images, labels)", "augmented"),
        Mutant(".repeat().batch(global_batch,", ".repeat().batch(PER_CORE,", "global_batch"),
        # The one that the wrong ones below are made from
        Right(_11A),
        # Repeat first, named function
        Right(r"""
def make_train_dataset(images, labels, global_batch):
    def change(pictures, classes):
        return augmented(pictures), classes
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    return (dataset.repeat().shuffle(buffer_size=2048, seed=3)
            .batch(batch_size=global_batch, drop_remainder=True).map(change).prefetch(buffer_size=tf.data.AUTOTUNE))
"""),
        # Helper, starred
        Right(r"""
def _augment(x, *rest):
    return (augmented(x), *rest)
def make_train_dataset(images, labels, global_batch):
    steps = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(10_000)
    steps = steps.repeat(None).batch(global_batch, True)
    steps = steps.map(map_func=_augment, num_parallel_calls=4, deterministic=True)
    return steps.prefetch(2)
"""),
        # No shuffle
        Wrong(
            _11A.replace(".shuffle(len(images))", ""),
            "The examples come in the order of the data: shuffle them",
        ),
        # Shuffle of batches
        Wrong(
            _11A.replace(".shuffle(len(images))", "").replace(
                "return dataset.prefetch(1)", "return dataset.shuffle(100).prefetch(1)"
            ),
            "Batches are shuffled, not examples: shuffle before batch",
        ),
        # Small buffer
        Wrong(
            _11A.replace("len(images)", "10"),
            "A small shuffle buffer hands over the first examples",
        ),
        # Repeat after batch: each pass loses its rest
        Wrong(
            _11A.replace(
                ".shuffle(len(images)).repeat().batch(global_batch, drop_remainder=True)",
                ".shuffle(len(images)).batch(global_batch, drop_remainder=True).repeat()",
            ),
            "each pass loses what does not fill a batch. Repeat the",
        ),
        # Augmented once, before
        Wrong(
            _11A.replace(
                "from_tensor_slices((images, labels))",
                "from_tensor_slices((augmented(images), labels))",
            ).replace("augmented(x), y", "x, y"),
            "augmented is called once, on all pictures, before training",
        ),
        # Cached after the augmentation
        Wrong(
            _11A.replace("return dataset.prefetch(1)", "return dataset.cache().prefetch(1)"),
            "keeps what stands above it: changed pictures would be the",
        ),
        # No prefetch
        Wrong(
            _11A.replace("return dataset.prefetch(1)", "return dataset"),
            "One batch should be prepared ahead, while the device",
        ),
        # Prefetch before the map
        Wrong(
            _11A.replace(
                "    dataset = dataset.map",
                "    dataset = dataset.prefetch(1)\n    dataset = dataset.map",
            ).replace("return dataset.prefetch(1)", "return dataset"),
            "One batch should be prepared ahead, while the device",
        ),
        # Not reshuffled
        Wrong(
            _11A.replace("len(images))", "len(images), reshuffle_each_iteration=False)"),
            "With reshuffle_each_iteration=False every pass brings the",
        ),
        # Images and labels shuffled apart
        Wrong(
            r"""
def make_train_dataset(images, labels, global_batch):
    x = tf.data.Dataset.from_tensor_slices(images).shuffle(2000, seed=1).repeat()
    y = tf.data.Dataset.from_tensor_slices(labels).shuffle(2000, seed=2).repeat()
    dataset = tf.data.Dataset.zip((x, y)).batch(global_batch, drop_remainder=True)
    return dataset.map(lambda x, y: (augmented(x), y)).prefetch(1)
""",
            "A picture comes with the label of another one, or went",
        ),
    ],
    "11b": [
        # A model within the model
        Right("""
def make_model(dtype):
    policy = keras.dtype_policies.DTypePolicy(dtype)
    images = keras.Input(shape=(8, 8, 1), dtype="uint8")
    body = keras.Sequential(
        [
            layers.Rescaling(1 / 16, dtype=policy),
            layers.Conv2D(32, 3, padding="same", activation="relu", dtype=policy),
            layers.MaxPooling2D(2, dtype=policy),
            layers.Flatten(dtype=policy),
            layers.Dense(64, activation="relu", dtype=policy),
            layers.Dense(10, dtype="float32"),
        ]
    )
    return keras.Model(images, body(images))
"""),
        Mutant("return keras.Model(images, logits)", "return logits", "keras.Model"),
        # The one that the wrong ones below are made from
        Right(_11B),
        # Activation layer, keyword arguments
        Right(r"""
def make_model(dtype):
    images = keras.Input((8, 8, 1), dtype="uint8")
    net = layers.Rescaling(1 / 16, dtype=dtype)(images)
    net = layers.Conv2D(32, 3, padding="same", activation="relu", dtype=dtype)(net)
    net = layers.MaxPooling2D(2, dtype=dtype)(net)
    net = layers.Flatten(dtype=dtype)(net)
    hidden = layers.ReLU(dtype=dtype)(layers.Dense(units=64, dtype=dtype)(net))
    out = layers.Dense(units=10, activation=None, dtype=tf.float32, name="logits")(hidden)
    return keras.Model(inputs=images, outputs=out, name="digits")
"""),
        # Policies as objects
        Right(r"""
def make_model(dtype):
    images = keras.Input((8, 8, 1), dtype="uint8")
    net = layers.Rescaling(1 / 16, dtype=dtype)(images)
    net = layers.Conv2D(32, 3, padding="same", activation="relu", dtype=dtype)(net)
    net = layers.MaxPooling2D(2, dtype=dtype)(net)
    net = layers.Flatten(dtype=dtype)(net)
    policy, full = keras.DTypePolicy(dtype), keras.DTypePolicy("float32")
    for units, activation, kind in ((64, "relu", policy), (10, "linear", full)):
        net = layers.Dense(units, activation, dtype=kind)(net)
    return keras.Model(images, net)
"""),
        # Logits computed in dtype, cast after
        Right(r"""
def make_model(dtype):
    images = keras.Input((8, 8, 1), dtype="uint8")
    net = layers.Rescaling(1 / 16, dtype=dtype)(images)
    net = layers.Conv2D(32, 3, padding="same", activation="relu", dtype=dtype)(net)
    net = layers.MaxPooling2D(2, dtype=dtype)(net)
    net = layers.Flatten(dtype=dtype)(net)
    net = layers.Dense(64, keras.activations.relu, dtype=dtype)(net)
    net = keras.ops.cast(net, "float32")
    return keras.Model(images, layers.Dense(10, dtype="float32")(net))
"""),
        # Cast after the logits: digits are lost before
        Right(
            _11B.replace(
                'layers.Dense(10, dtype="float32")(net)',
                'keras.ops.cast(layers.Dense(10, dtype=dtype)(net), "float32")',
            )
        ),
        # Logits in dtype
        Wrong(
            _11B.replace('layers.Dense(10, dtype="float32")', "layers.Dense(10, dtype=dtype)"),
            "the loss needs the digits of float",
        ),
        # Hidden layer in float32
        Wrong(
            _11B.replace(
                'layers.Dense(64, activation="relu", dtype=dtype)',
                'layers.Dense(64, activation="relu")',
            ),
            "The hidden layer computes in float",
        ),
        # "bfloat16" for the hidden layer: its variables too
        Wrong(
            _11B.replace(
                'layers.Dense(64, activation="relu", dtype=dtype)',
                'layers.Dense(64, activation="relu", dtype="bfloat16")',
            ),
            "take dtype=dtype, which keeps them in float32",
        ),
        # Mixed always
        Wrong(
            _11B.replace(
                'layers.Dense(64, activation="relu", dtype=dtype)',
                'layers.Dense(64, activation="relu", dtype="mixed_bfloat16")',
            ),
            "computes in bfloat",
        ),
        # Softmax
        Wrong(
            _11B.replace(
                'layers.Dense(10, dtype="float32")',
                'layers.Dense(10, activation="softmax", dtype="float32")',
            ),
            "that is a softmax. The loss is of logits, so leave it out",
        ),
        # Relu on the logits
        Wrong(
            _11B.replace(
                'layers.Dense(10, dtype="float32")',
                'layers.Dense(10, activation="relu", dtype="float32")',
            ),
            "The last layer has a ReLU: logits may be negative",
        ),
        # No relu
        Wrong(
            _11B.replace(
                'layers.Dense(64, activation="relu", dtype=dtype)', "layers.Dense(64, dtype=dtype)"
            ),
            "The hidden layer has no ReLU: two layers without one are",
        ),
        # No hidden layer
        Wrong(
            _11B.replace('    net = layers.Dense(64, activation="relu", dtype=dtype)(net)\n', ""),
            "hidden Dense layer of 64",
        ),
        # Hidden of 128
        Wrong(_11B.replace("Dense(64", "Dense(128"), "hidden Dense layer of 64"),
        # Dropout
        Wrong(
            _11B.replace(
                "    logits =", "    net = layers.Dropout(0.5, dtype=dtype)(net)\n    logits ="
            ),
            "where nothing more is done (no dropout)",
        ),
    ],
    "11c": [
        Mutant("with strategy.scope():", "if True:", "scope"),
        Mutant("from_logits=True", "from_logits=False", "from_logits"),
        Mutant("weighted_metrics=", "metrics=", "weighted_metrics"),
        Mutant("steps_per_execution=steps_per_execution,", "", "steps_per_execution"),
        Mutant(", momentum=0.9", "", "momentum"),
        Mutant("SGD(learning_rate, ", "SGD(0.01, ", "learning_rate"),
        Mutant("model = make_model(dtype)", 'model = make_model("float32")', "dtype"),
        Mutant("    return model\n", "", "return missing"),
        # The one that the wrong ones below are made from
        Right(_11C),
        # Dict, metric object
        Right(r"""
def make_compiled(strategy, dtype, learning_rate, steps_per_execution=1):
    with strategy.scope():
        options = {
            "optimizer": keras.optimizers.SGD(learning_rate=learning_rate, momentum=0.9),
            "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            "weighted_metrics": [keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            "steps_per_execution": steps_per_execution,
        }
        model = make_model(dtype=dtype)
        model.compile(**options)
        return model
"""),
        # Helper, jit_compile said
        Right(r"""
def _compile(model, rate, steps):
    model.compile(optimizer=keras.optimizers.SGD(rate, 0.9), loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum_over_batch_size"),
                  weighted_metrics=["sparse_categorical_accuracy"], steps_per_execution=steps, jit_compile=False)
    return model
def make_compiled(strategy, dtype, learning_rate, steps_per_execution=1):
    with strategy.scope():
        return _compile(make_model(dtype), learning_rate, steps_per_execution)
"""),
        # No scope
        Wrong(
            _11C.replace("with strategy.scope():", "if True:"),
            "The model was not made in the strategy's scope: on a TPU",
        ),
        # Compile outside
        Wrong(
            _11C.replace(
                '        model.compile(\n            keras.optimizers.SGD(learning_rate, momentum=0.9),\n            keras.losses.SparseCategoricalCrossentropy(from_logits=True),\n            weighted_metrics=["accuracy"],\n            steps_per_execution=steps_per_execution,\n        )',
                '    model.compile(\n        keras.optimizers.SGD(learning_rate, momentum=0.9),\n        keras.losses.SparseCategoricalCrossentropy(from_logits=True),\n        weighted_metrics=["accuracy"],\n        steps_per_execution=steps_per_execution,\n    )',
            ),
            "compile stands outside of strategy.scope",
        ),
        # Plain metrics
        Wrong(_11C.replace("weighted_metrics", "metrics"), "With the one right answer of weight"),
        # No metrics
        Wrong(
            _11C.replace('            weighted_metrics=["accuracy"],\n', ""),
            "There is no accuracy: weighted_metrics=",
        ),
        # No momentum
        Wrong(_11C.replace(", momentum=0.9", ""), "The optimizer should be SGD with a momentum of"),
        # Nesterov
        Wrong(
            _11C.replace("momentum=0.9", "momentum=0.9, nesterov=True"),
            "Nesterov's momentum gives other updates: SGD with a momentum of",
        ),
        # Mixed always
        Wrong(
            _11C.replace("make_model(dtype)", 'make_model("mixed_bfloat16")'),
            "The model ignores dtype, and does not compute in float",
        ),
    ],
    "11d": [
        Mutant(
            "return dataset.batch(global_batch,",
            "return dataset.shuffle(999).batch(global_batch,",
            "in their order 1 of each picture",
        ),
        # The one that the wrong ones below are made from
        Right(_11D),
        # Concatenate of datasets
        Right(r"""
def make_eval_dataset(images, labels, global_batch):
    real = tf.data.Dataset.from_tensor_slices((images, labels, tf.ones(len(labels))))
    n = (global_batch - len(images) % global_batch) % global_batch
    filler = tf.data.Dataset.from_tensors((images[0], labels[0], tf.constant(0.0))).repeat(n)
    return real.concatenate(filler).batch(global_batch, drop_remainder=True)
"""),
        # Np.pad, reshape
        Right(r"""
def make_eval_dataset(images, labels, global_batch):
    batches = -(-len(images) // global_batch)
    pad = batches * global_batch - len(images)
    def filled(array):
        return np.pad(array, [(0, pad)] + [(0, 0)] * (array.ndim - 1), mode="edge")
    weights = (np.arange(batches * global_batch) < len(images)).astype("float32")
    parts = tuple(a.reshape(batches, global_batch, *a.shape[1:]) for a in (filled(images), filled(labels), weights))
    return tf.data.Dataset.from_tensor_slices(parts)
"""),
        # Tf.pad, prefetch
        Right(r"""
def make_eval_dataset(images, labels, global_batch):
    n = len(images)
    total = int(np.ceil(n / global_batch)) * global_batch
    index = np.minimum(np.arange(total), n - 1)
    weight = tf.cast(tf.range(total) < n, tf.float32)
    return tf.data.Dataset.from_tensor_slices((images[index], labels[index], weight)).batch(global_batch, True).prefetch(1)
"""),
        # A whole batch too many
        Wrong(
            _11D.replace(
                "-len(images) % global_batch", "global_batch - len(images) % global_batch"
            ),
            "a needless one",
        ),
        # The rest dropped
        Wrong(
            r"""
def make_eval_dataset(images, labels, global_batch):
    weights = np.ones(len(labels), np.float32)
    return tf.data.Dataset.from_tensor_slices((images, labels, weights)).batch(global_batch, drop_remainder=True)
""",
            "pictures in batches of",
        ),
        # The rest a smaller batch
        Wrong(
            r"""
def make_eval_dataset(images, labels, global_batch):
    weights = np.ones(len(labels), np.float32)
    return tf.data.Dataset.from_tensor_slices((images, labels, weights)).batch(global_batch)
""",
            "fixed shapes (drop_remainder=True)",
        ),
        # Filling of weight 1
        Wrong(
            _11D.replace("np.zeros(missing, np.float32)", "np.ones(missing, np.float32)"),
            "What fills up has the weight of a picture",
        ),
        # Drop_remainder left out: no static shape
        Wrong(
            _11D.replace(", drop_remainder=True", ""),
            "The last batch may be smaller, and a TPU program has one shape",
        ),
        # Weights float64
        Wrong(
            _11D.replace(
                "np.ones(len(labels), np.float32), np.zeros(missing, np.float32)",
                "np.ones(len(labels)), np.zeros(missing)",
            ),
            "The weights should be float",
        ),
        # Weights int32
        Wrong(
            _11D.replace(
                "np.ones(len(labels), np.float32), np.zeros(missing, np.float32)",
                "np.ones(len(labels), np.int32), np.zeros(missing, np.int32)",
            ),
            "float32], yours gives [[100, 8, 8, 1], uint8, int32, int32]",
        ),
        # Images to float64
        Wrong(
            _11D.replace(
                "np.zeros((missing, *images.shape[1:]), images.dtype)",
                "np.zeros((missing, *images.shape[1:]))",
            ),
            "images uint8, labels int32",
        ),
        # Filling first
        Wrong(
            _11D.replace(
                "[np.ones(len(labels), np.float32), np.zeros(missing, np.float32)]",
                "[np.zeros(missing, np.float32), np.ones(len(labels), np.float32)]",
            )
            .replace(
                "[images, np.zeros((missing, *images.shape[1:]), images.dtype)]",
                "[np.zeros((missing, *images.shape[1:]), images.dtype), images]",
            )
            .replace(
                "[labels, np.zeros(missing, labels.dtype)]",
                "[np.zeros(missing, labels.dtype), labels]",
            ),
            "in their order 1 of each picture and then 0 of the filling",
        ),
        # Shuffled
        Wrong(
            _11D.replace("weights)).batch", "weights)).shuffle(1000).batch"),
            "in their order 1 of each picture",
        ),
    ],
    "11e": [
        Mutant("warmup_target=cores * rate", "warmup_target=rate", "times"),
        Mutant("warmup_target=cores * rate", "warmup_target=8 * rate", "cores"),
        Mutant("warmup_target=cores * rate, warmup_steps=warm_up", "", "times"),
        Mutant("rate, steps - warm_up,", "cores * rate, steps - warm_up,", "step 0"),
        Mutant("rate, steps - warm_up,", "0.0, steps - warm_up,", "step 0"),
        Mutant("steps - warm_up,", "steps,", "last step"),
        Mutant("warm_up = steps // 10", "warm_up = 1", "halfway"),
        # The one that the wrong ones below are made from
        Right(_11E),
        # Positional
        Right(r"""
def make_schedule(rate, cores, steps):
    up = int(0.1 * steps)
    return keras.optimizers.schedules.CosineDecay(rate, steps - up, alpha=0.0, warmup_target=rate * cores, warmup_steps=up)
"""),
        # A schedule of its own
        Right(r"""
class _Schedule(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, rate, cores, steps):
        self.rate, self.top, self.steps, self.up = rate, rate * cores, steps, steps // 10
    def __call__(self, step):
        step = tf.cast(step, tf.float32)
        rising = self.rate + (self.top - self.rate) * step / self.up
        part = tf.minimum(1.0, (step - self.up) / (self.steps - self.up))
        falling = self.top * 0.5 * (1 + tf.cos(np.pi * part))
        return tf.where(step < self.up, rising, falling)
    def get_config(self):
        return {"rate": self.rate, "cores": self.top / self.rate, "steps": self.steps}
def make_schedule(rate, cores, steps):
    return _Schedule(rate, cores, steps)
"""),
        # Helper dict
        Right(r"""
def make_schedule(rate, cores, steps):
    warmup_steps = max(1, steps // 10)
    settings = dict(warmup_steps=warmup_steps, warmup_target=float(rate * cores), decay_steps=steps - warmup_steps)
    return keras.optimizers.schedules.CosineDecay(rate, **settings)
"""),
        # Decay over all steps
        Wrong(
            _11E.replace("decay_steps=steps - warmup", "decay_steps=steps"),
            "After the warm-up the rate should fall to",
        ),
        # Starts from 0
        Wrong(
            _11E.replace("initial_learning_rate=rate", "initial_learning_rate=0.0"),
            "the rate should be the old one",
        ),
        # No warm-up, the large rate at once
        Wrong(
            r"""
def make_schedule(rate, cores, steps):
    return keras.optimizers.schedules.CosineDecay(cores * rate, steps)
""",
            "the rate should be the old one",
        ),
        # Target not scaled
        Wrong(
            _11E.replace("warmup_target=cores * rate", "warmup_target=rate"),
            "The rate should rise to 4 times",
        ),
        # Target of the number of cores
        Wrong(
            _11E.replace("warmup_target=cores * rate", "warmup_target=cores"),
            "The rate should rise to 4 times",
        ),
        # Square root
        Wrong(
            _11E.replace("warmup_target=cores * rate", "warmup_target=cores ** 0.5 * rate"),
            "The rate should rise to 4 times",
        ),
        # Warm-up of ten steps
        Wrong(_11E.replace("steps // 10", "10"), "Warm-up takes a tenth of 200 steps; halfway"),
        # Warm-up of half
        Wrong(
            _11E.replace("steps // 10", "steps // 2"), "Warm-up takes a tenth of 200 steps; halfway"
        ),
        # Not to 0
        Wrong(
            _11E.replace("warmup_steps=warmup)", "warmup_steps=warmup, alpha=0.1)"),
            "After the warm-up the rate should fall to",
        ),
        # Exponential
        Wrong(
            _11E.replace("keras.optimizers.schedules.CosineDecay(", "_exponential(").replace(
                "def make_schedule(rate",
                "def _exponential(initial_learning_rate, decay_steps, warmup_target, warmup_steps):\n    return keras.optimizers.schedules.ExponentialDecay(warmup_target, decay_steps, 0.01)\n\ndef make_schedule(rate",
            ),
            "the rate should be the old one",
        ),
    ],
}
