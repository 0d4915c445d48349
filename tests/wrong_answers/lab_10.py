"""What learners get wrong in lab 10, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "10a": [
        Mutant("tf.reduce_sum(losses) / global_batch", "losses / global_batch", "scalar"),
        # Sum over global
        Right(r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_sum(losses) / global_batch
"""),
        # Compute_average_loss
        Right(r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.nn.compute_average_loss(losses, global_batch_size=global_batch)
"""),
        # Scaled first
        Right(r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.math.add_n(tf.unstack(tf.math.multiply(losses, 1.0 / tf.cast(global_batch, tf.float32))))
"""),
        # Keras loss
        Right(r"""
def replica_loss(labels, logits, global_batch):
    total = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")(labels, logits)
    return tf.divide(total, float(global_batch))
"""),
        # Own mean
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses)
""",
            "a mean over the replica's own examples makes the step larger",
        ),
        # Sum
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_sum(losses)
""",
            "examples each: their parts should sum to the mean over all",
        ),
        # Mean over global
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses) / global_batch
""",
            "That is an eighth of the mean: the mean over a replica is divided twice",
        ),
        # Divided by eight
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.reduce_mean(losses) / 8
""",
            "examples each: their parts should sum to the mean over all",
        ),
        # Not summed
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return losses / global_batch
""",
            "The shape of a replica's part, which should be a scalar",
        ),
        # Divided twice, compute_average_loss of the mean
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return tf.nn.compute_average_loss(losses, global_batch_size=global_batch) / global_batch
""",
            "examples each: their parts should sum to the mean over all",
        ),
        # Numpy
        Wrong(
            r"""
def replica_loss(labels, logits, global_batch):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
    return losses.numpy().sum() / global_batch
""",
            "A replica's part should be a tensor, through which",
        ),
    ],
    "10b": [
        Right(r"""
move = keras.Sequential([
    layers.RandomTranslation(0.12, 0.12, fill_mode="constant", seed=1),
    layers.RandomRotation(0.02, fill_mode="constant", seed=2),
])
def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = batches("train", 512).map(lambda x, y: (move(x[..., None], training=True), y))
    return model, data.prefetch(tf.data.AUTOTUNE)
"""),
        # By example, before the batch
        Right(r"""
def portable():
    turn, shift = layers.RandomRotation(0.02, seed=2), layers.RandomTranslation(0.1, 0.1, seed=1)
    _, dataset = tutorial()
    images = keras.Input((8, 8, 1))
    net = layers.Flatten()(layers.MaxPooling2D(2)(layers.Conv2D(32, 3, activation="relu")(images)))
    model = keras.Model(images, layers.Dense(10)(net))
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    dataset = dataset.unbatch().map(lambda x, y: (turn(shift(x, training=True), training=True), y))
    return model, dataset.batch(512, drop_remainder=True)
"""),
        Wrong("def portable():\n    return tutorial()", "a layer of the model runs on the core"),
        # Only moved
        Mutant(
            'layers.RandomTranslation(0.12, 0.12, fill_mode="constant", seed=1),\n        layers.RandomRotation(0.02, fill_mode="constant", seed=2),',
            'layers.RandomTranslation(0.12, 0.12, fill_mode="constant", seed=1),',
            "none is rotated",
        ),
        # Only rotated
        Mutant(
            'layers.RandomTranslation(0.12, 0.12, fill_mode="constant", seed=1),\n        layers.RandomRotation(0.02, fill_mode="constant", seed=2),',
            'layers.RandomRotation(0.02, fill_mode="constant", seed=2),',
            "but not moved",
        ),
        # Changed once, before the dataset
        Wrong(
            r"""
def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    images = layers.RandomTranslation(0.12, 0.12, fill_mode="constant")(pixels["train"][..., None], training=True)
    images = layers.RandomRotation(0.02, fill_mode="constant")(images, training=True)
    data = tf.data.Dataset.from_tensor_slices((images, classes["train"]))
    return model, data.shuffle(2048).repeat().batch(512, drop_remainder=True)
""",
            "each epoch sees the same",
        ),
        # The same, by a cache
        Wrong(
            r"""
def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    turn, shift = layers.RandomRotation(0.02, seed=2), layers.RandomTranslation(0.1, 0.1, seed=1)
    data = tf.data.Dataset.from_tensor_slices((pixels["train"][..., None], classes["train"]))
    data = data.map(lambda x, y: (turn(shift(x, training=True), training=True), y)).cache()
    return model, data.shuffle(2048).repeat().batch(512, drop_remainder=True)
""",
            "each epoch sees the same",
        ),
        # By Python
        Wrong(
            r"""
def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    turn, shift = layers.RandomRotation(0.02, seed=2), layers.RandomTranslation(0.1, 0.1, seed=1)

    def moved(images, labels):
        change = lambda batch: turn(shift(batch[..., None], training=True), training=True)
        images = tf.py_function(change, [images], tf.float32)
        return tf.ensure_shape(images, [512, 8, 8, 1]), labels

    return model, batches("train", 512).map(moved)
""",
            "The pictures go through tf.py_function",
        ),
        # With TensorFlow's own ops
        Right(r"""
def moved(images, labels):
    turn = tf.random.uniform([512], -0.12, 0.12)
    shift = tf.random.uniform([512, 2], -0.9, 0.9)
    cos, sin = tf.cos(turn), tf.sin(turn)
    zero = tf.zeros([512])
    matrix = tf.stack(
        [cos, -sin, 3.5 - 3.5 * cos + 3.5 * sin + shift[:, 0], sin, cos, 3.5 - 3.5 * sin - 3.5 * cos + shift[:, 1], zero, zero], 1
    )
    images = tf.raw_ops.ImageProjectiveTransformV3(
        images=images[..., None], transforms=matrix, output_shape=[8, 8], fill_value=0.0, interpolation="BILINEAR"
    )
    return tf.ensure_shape(images, [512, 8, 8, 1]), labels


def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, batches("train", 512).map(moved, num_parallel_calls=tf.data.AUTOTUNE)
"""),
        # Augmented before the batch, data prepared outside of the function
        Right(r"""
slices = tf.data.Dataset.from_tensor_slices((pixels["train"][..., None], classes["train"]))
turn = layers.RandomRotation(0.02, fill_mode="constant")
shift = layers.RandomTranslation(0.12, 0.12, fill_mode="constant")


def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = slices.cache().shuffle(2000).repeat().batch(512, drop_remainder=True)
    return model, data.map(lambda x, y: (shift(turn(x, training=True), training=True), y))
"""),
        # Left out
        Wrong(
            r"""
def portable():
    model = keras.Sequential([
        keras.Input((8, 8, 1)), layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(2),
        layers.Flatten(), layers.Dense(10),
    ])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, batches("train", 512).map(lambda x, y: (x[..., None], y))
""",
            "nothing moves or rotates them",
        ),
        Mutant(
            "move(images, training=True)",
            "move(images, training=False)",
            "nothing moves or rotates them",
        ),
        Mutant(
            "images = images[..., None]\n        for", "for", "The shapes of pictures and labels"
        ),
        Mutant(
            '    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))\n    return model, batches("train", 512).map(moved)',
            '    return model, batches("train", 512).map(moved)',
            "not compiled",
        ),
        Mutant(
            'return model, batches("train", 512).map(moved)',
            'return batches("train", 512).map(moved), model',
            "a Keras model first",
        ),
        Mutant(
            'batches("train", 512).map(moved)',
            'batches("train", 500).map(moved)',
            "The shapes of pictures and labels",
        ),
    ],
    "10c": [
        Mutant(", epsilon=1e-8", "", "small gradients"),
        Mutant(", epsilon=1e-8", ", epsilon=1e-6", "small gradients"),
        Mutant("Adam(3e-3,", "Adam(1e-3,", "learning rate"),
        Mutant("keras.optimizers.Adam(", "v1.train.AdamOptimizer(", "Keras optimizer"),
        Mutant("keras.optimizers.Adam(3e-3, epsilon=1e-8)", "keras.optimizers.SGD(3e-3)", "Adam"),
        # Keywords
        Right(r"""
def make_adam():
    return keras.optimizers.Adam(learning_rate=3e-3, epsilon=1e-8)
"""),
        # All said
        Right(r"""
def make_adam():
    settings = {"learning_rate": 3e-3, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-08, "amsgrad": False}
    return keras.optimizers.Adam(**settings)
"""),
        # From_config
        Right(r"""
def make_adam():
    config = keras.optimizers.Adam(3e-3).get_config()
    config["epsilon"] = 1e-8
    return keras.optimizers.Adam.from_config(config)
"""),
        # Subclass with a schedule
        Right(r"""
def make_adam():
    class OldAdam(keras.optimizers.Adam):
        pass
    return OldAdam(3e-3, epsilon=1e-8, name="adam")
"""),
        # The default
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(3e-3)
""",
            "what is added to the root of the second moment?",
        ),
        # 1e-7
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(3e-3, epsilon=1e-7)
""",
            "what is added to the root of the second moment?",
        ),
        # Default rate
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(epsilon=1e-8)
""",
            "by a gradient of 2 (is the learning rate 0.003?)",
        ),
        # Beta_1
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(3e-3, beta_1=0.95, epsilon=1e-8)
""",
            "beta_1 of AdamOptimizer: expected 0.9, yours gives 0.95",
        ),
        # Amsgrad
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(3e-3, epsilon=1e-8, amsgrad=True)
""",
            "AdamOptimizer has no amsgrad: leave it out",
        ),
        # AdamW
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.AdamW(3e-3, epsilon=1e-8)
""",
            "AdamOptimizer has no weight_decay: leave it out",
        ),
        # Averaged weights
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(3e-3, epsilon=1e-8, use_ema=True)
""",
            "AdamOptimizer has no use_ema: leave it out",
        ),
    ],
}
