"""What learners get wrong in lab 10, and the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

_9A = r"""
def make_strategy(use_tpu, tpu="local"):
    if not use_tpu:
        return tf.distribute.get_strategy()
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
"""

_9B = r"""
def make_dataset(split, per_core, strategy):
    dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
    if split == "train":
        dataset = dataset.shuffle(2048, seed=1).repeat()
    return dataset.batch(per_core * strategy.num_replicas_in_sync, drop_remainder=True)
"""

_9C = r"""
def make_model(strategy, make_optimizer, steps_per_execution=1):
    with strategy.scope():
        model = keras.Sequential([
            keras.Input((8, 8)),
            keras.layers.Reshape((8, 8, 1)),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10),
        ])
        model.compile(
            optimizer=make_optimizer(),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            steps_per_execution=steps_per_execution,
            jit_compile=False,
        )
    return model
"""

ANSWERS = {
    "10a": [
        Mutant("if not use_tpu:", "if False:", "use_tpu is false"),
        Mutant("TPUClusterResolver(tpu)", 'TPUClusterResolver("other")', "named"),
        Mutant("tf.tpu.experimental.initialize_tpu_system(resolver)", "", "initialize_tpu_system"),
        Mutant("return tf.distribute.TPUStrategy(resolver)", "return resolver", "TPUStrategy"),
        Mutant("return tf.distribute.get_strategy()", "return None", "None"),
        Mutant(
            "tf.config.experimental_connect_to_cluster(resolver)",
            "",
            "experimental_connect_to_cluster",
        ),
        # The one that the wrong ones below are made from
        Right(_9A),
        # Keyword arguments, else
        Right(r"""
def make_strategy(use_tpu, tpu="local"):
    if use_tpu:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        tf.config.experimental_connect_to_cluster(cluster_spec_or_resolver=resolver)
        tf.tpu.experimental.initialize_tpu_system(cluster_resolver=resolver)
        strategy = tf.distribute.TPUStrategy(tpu_cluster_resolver=resolver)
    else:
        strategy = tf.distribute.get_strategy()
    return strategy
"""),
        # Helper, connect of the resolver, local names
        Right(r"""
def _connected(name):
    found = tf.distribute.cluster_resolver.TPUClusterResolver(name)
    tf.config.experimental_connect_to_cluster(found)
    tf.tpu.experimental.initialize_tpu_system(found)
    return found
def make_strategy(use_tpu, tpu="local"):
    return tf.distribute.TPUStrategy(_connected(tpu)) if use_tpu else tf.distribute.get_strategy()
"""),
        # Looks at what it found
        Right(r"""
def make_strategy(use_tpu, tpu="local"):
    if use_tpu:
        r = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=tpu)
        print("Running on TPU", r.master(), r.cluster_spec().as_dict().get("worker"))
        tf.config.experimental_connect_to_cluster(r)
        tf.tpu.experimental.initialize_tpu_system(r)
    strategy = tf.distribute.TPUStrategy(r) if use_tpu else tf.distribute.get_strategy()
    print(f"REPLICAS: {strategy.num_replicas_in_sync:d}")
    return strategy
"""),
        # TPUClusterResolver.connect
        Right(r"""
def make_strategy(use_tpu, tpu="local"):
    if use_tpu:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
        tf.config.experimental_connect_to_cluster(resolver)
        topology = tf.tpu.experimental.initialize_tpu_system(resolver)
        del topology
        return tf.distribute.TPUStrategy(resolver)
    return tf.distribute.get_strategy()
"""),
        # Not connected
        Wrong(
            _9A.replace("    tf.config.experimental_connect_to_cluster(resolver)\n", ""),
            "connect, initialize_tpu_system, and last TPUStrategy, all three of the resolver",
        ),
        # Not initialized
        Wrong(
            _9A.replace("    tf.tpu.experimental.initialize_tpu_system(resolver)\n", ""),
            "connect, initialize_tpu_system, and last TPUStrategy, all three of the resolver",
        ),
        # Initialized before it is connected
        Wrong(
            _9A.replace(
                "    tf.config.experimental_connect_to_cluster(resolver)\n    tf.tpu.experimental.initialize_tpu_system(resolver)\n",
                "    tf.tpu.experimental.initialize_tpu_system(resolver)\n    tf.config.experimental_connect_to_cluster(resolver)\n",
            ),
            "expected 'experimental_connect_to_cluster(resolver)', yours gives 'initialize_tpu_system(resolver)'",
        ),
        # "local" always
        Wrong(
            _9A.replace("TPUClusterResolver(tpu)", 'TPUClusterResolver("local")'),
            "yours gives \"TPUClusterResolver('local')\"",
        ),
        # MirroredStrategy without a TPU
        Wrong(
            _9A.replace("tf.distribute.get_strategy()", "tf.distribute.MirroredStrategy()"),
            "Where use_tpu is false, return the default strategy",
        ),
        # OneDeviceStrategy without a TPU
        Wrong(
            _9A.replace("tf.distribute.get_strategy()", 'tf.distribute.OneDeviceStrategy("CPU:0")'),
            "Where use_tpu is false, return the default strategy",
        ),
        # Looks for a TPU whatever is asked
        Wrong(
            _9A.replace("    if not use_tpu:\n        return tf.distribute.get_strategy()\n", ""),
            "Where use_tpu is false, nothing should look for a TPU",
        ),
        # Swapped
        Wrong(
            _9A.replace("if not use_tpu", "if use_tpu"),
            "Where use_tpu is false, nothing should look for a TPU",
        ),
        # Strategy of the name
        Wrong(
            _9A.replace("TPUStrategy(resolver)", "TPUStrategy(tpu)"),
            "expected 'TPUStrategy(resolver)', yours gives \"TPUStrategy('my-tpu')\"",
        ),
        # Returns the resolver
        Wrong(
            _9A.replace("return tf.distribute.TPUStrategy(resolver)", "return resolver"),
            "and last TPUStrategy",
        ),
    ],
    "10b": [
        Mutant("per_core * strategy.num_replicas_in_sync", "per_core * 8", "number of replicas"),
        Mutant(", drop_remainder=True", "", "not fixed"),
        # The one that the wrong ones below are made from
        Right(_9B),
        # Prefetch, keyword arguments, name
        Right(r"""
def make_dataset(split, per_core, strategy):
    dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
    if split == "train":
        dataset = dataset.shuffle(2048, seed=1).repeat()
    global_batch = strategy.num_replicas_in_sync * per_core
    return dataset.batch(batch_size=global_batch, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
"""),
        # Batch then ensure
        Right(r"""
def _batches(dataset, size):
    return dataset.apply(lambda d: d.batch(size, True, num_parallel_calls=tf.data.AUTOTUNE))
def make_dataset(split, per_core, strategy):
    dataset = tf.data.Dataset.from_tensor_slices((pixels[split], classes[split]))
    if split == "train":
        dataset = dataset.shuffle(2048, seed=1).repeat()
    dataset = _batches(dataset, per_core * strategy.num_replicas_in_sync)
    return dataset
"""),
        # Per core
        Wrong(
            _9B.replace("per_core * strategy.num_replicas_in_sync", "per_core"),
            "That is one replica's, and the dataset has to yield a batch for all eight together",
        ),
        # The rest kept
        Wrong(
            _9B.replace(", drop_remainder=True", ""),
            "is not fixed: the last batch may be short, so XLA would",
        ),
        # Rest dropped in training only
        Wrong(
            _9B.replace("drop_remainder=True", 'drop_remainder=split == "train"'),
            "is not fixed: the last batch may be short, so XLA would",
        ),
        # Rest dropped in evaluation only
        Wrong(
            _9B.replace("drop_remainder=True", 'drop_remainder=split != "train"'),
            "is not fixed: the last batch may be short, so XLA would",
        ),
        # Divided by the replicas
        Wrong(
            _9B.replace("per_core * strategy", "per_core // strategy"),
            "Your code raised InvalidArgumentError: Batch size must be",
        ),
        # Batches twice
        Wrong(
            _9B.replace(
                "dataset.batch(per_core * strategy.num_replicas_in_sync, drop_remainder=True)",
                "dataset.batch(per_core, drop_remainder=True).batch(strategy.num_replicas_in_sync, drop_remainder=True)",
            ),
            "take the number of replicas from the strategy",
        ),
        # Global in training only
        Wrong(
            _9B.replace(
                "per_core * strategy.num_replicas_in_sync",
                'per_core * (strategy.num_replicas_in_sync if split == "train" else 1)',
            ),
            "A batch of eval with per_core=4 on 2 replicas (take the number of replicas from the strategy",
        ),
        # Eight always
        Wrong(
            _9B.replace("per_core * strategy.num_replicas_in_sync", "per_core * 8"),
            "on 2 replicas (take the number of replicas from the strategy",
        ),
        # Distributed already
        Wrong(
            _9B.replace(
                "return dataset.batch(per_core * strategy.num_replicas_in_sync, drop_remainder=True)",
                "return strategy.experimental_distribute_dataset(dataset.batch(per_core * strategy.num_replicas_in_sync, drop_remainder=True))",
            ),
            "Your code raised AttributeError",
        ),
        # Repeats the evaluation
        Wrong(
            _9B.replace("return dataset.batch", "return dataset.repeat().batch"),
            "The evaluation never ends: only training repeats",
        ),
    ],
    "10c": [
        Mutant("with strategy.scope():", "if True:", "scope"),
        Mutant("from_logits=True", "from_logits=False", "from_logits"),
        Mutant("keras.layers.Dense(10)", 'keras.layers.Dense(10, activation="softmax")', "logits"),
        Mutant("keras.layers.Dense(10)", "keras.layers.Dense(9)", "ten"),
        Mutant("steps_per_execution=steps_per_execution,", "", "steps_per_execution"),
        Mutant('metrics=["accuracy"],', "", "accuracy"),
        # The one that the wrong ones below are made from
        Right(_9C),
        # Functional, relu layers, metric object by name
        Right(r"""
def make_model(strategy, make_optimizer, steps_per_execution=1):
    L = keras.layers
    with strategy.scope():
        inputs = keras.Input(shape=(8, 8))
        x = L.Reshape(target_shape=(8, 8, 1))(inputs)
        x = L.ReLU()(L.Conv2D(filters=32, kernel_size=(3, 3), padding="same")(x))
        x = L.MaxPool2D(pool_size=(2, 2), strides=2)(x)
        x = L.Flatten()(x)
        x = L.Activation("relu")(L.Dense(64)(x))
        model = keras.Model(inputs=inputs, outputs=L.Dense(10, activation="linear")(x))
        model.compile(make_optimizer(), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"],
                      steps_per_execution=steps_per_execution, jit_compile=False)
    return model
"""),
        # Helper, ops.expand_dims, reduction by hand
        Right(r"""
def _network():
    model = keras.Sequential()
    model.add(keras.Input((8, 8), dtype="float32"))
    model.add(keras.layers.Lambda(lambda t: keras.ops.expand_dims(t, -1), output_shape=(8, 8, 1)))
    model.add(keras.layers.Conv2D(32, (3, 3), padding="same", activation=keras.activations.relu))
    model.add(keras.layers.MaxPooling2D((2, 2)))
    model.add(keras.layers.Reshape((-1,)))
    model.add(keras.layers.Dense(64, keras.activations.relu))
    model.add(keras.layers.Dense(10))
    return model
def make_model(strategy, make_optimizer, steps_per_execution=1):
    options = dict(steps_per_execution=steps_per_execution, jit_compile=False)
    with strategy.scope():
        model = _network()
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(loss=loss, optimizer=make_optimizer(), metrics=["accuracy"], **options)
        return model
"""),
        # "adam"
        Wrong(
            _9C.replace("make_optimizer()", '"adam"'),
            "makes: the caller chooses it; yours has an Adam of its own",
        ),
        # An Adam of its own
        Wrong(
            _9C.replace("make_optimizer()", "keras.optimizers.Adam(3e-3)"),
            "makes: the caller chooses it; yours has an Adam of its own",
        ),
        # Valid padding
        Wrong(
            _9C.replace('padding="same", ', ""),
            "pooling and flatten leave of a picture; the weights have",
        ),
        # No relu in the convolution
        Wrong(
            _9C.replace('padding="same", activation="relu"', 'padding="same"'),
            "The convolution has no ReLU",
        ),
        # No relu in the dense layer
        Wrong(
            _9C.replace('Dense(64, activation="relu")', "Dense(64)"), "The hidden layer has no ReLU"
        ),
        # Relu on the logits
        Wrong(
            _9C.replace("Dense(10)", 'Dense(10, activation="relu")'),
            "The last layer has a ReLU: logits may be negative",
        ),
        # No pooling
        Wrong(
            _9C.replace("            keras.layers.MaxPooling2D(2),\n", ""),
            "pooling and flatten leave of a picture; the weights have",
        ),
        # Average pooling
        Wrong(
            _9C.replace("MaxPooling2D(2)", "AveragePooling2D(2)"),
            "The pooling takes means; take the maximum",
        ),
        # 64 filters
        Wrong(_9C.replace("Conv2D(32", "Conv2D(64"), "filters; the weights have the shapes"),
        # Convolution of 5
        Wrong(_9C.replace("Conv2D(32, 3", "Conv2D(32, 5"), "filters; the weights have the shapes"),
        # Hidden of 128
        Wrong(
            _9C.replace("Dense(64", "Dense(128"),
            "pooling and flatten leave of a picture; the weights have",
        ),
        # Global pooling for flatten
        Wrong(
            _9C.replace("Flatten()", "GlobalAveragePooling2D()"),
            "pooling and flatten leave of a picture; the weights have",
        ),
        # Jit_compile left out
        Wrong(
            _9C.replace("            jit_compile=False,\n", ""),
            "jit_compile=False is missing: Keras would have XLA compile",
        ),
        # Dropout in it
        Wrong(
            _9C.replace(
                "            keras.layers.Dense(10),",
                "            keras.layers.Dropout(0.5),\n            keras.layers.Dense(10),",
            ),
            "In training the model does something more",
        ),
        # The optimizer made outside of the scope
        Wrong(
            _9C.replace(
                "    with strategy.scope():",
                "    made = make_optimizer()\n    with strategy.scope():",
            ).replace("optimizer=make_optimizer()", "optimizer=made"),
            "make_optimizer() is called outside of strategy.scope()",
        ),
        # Compiled outside of the scope, with an optimizer that is made there
        Wrong(
            _9C.replace("        model.compile(", "    if True:\n        model.compile("),
            "make_optimizer() is called outside of strategy.scope()",
        ),
        # Scaled once more
        Wrong(
            _9C.replace(
                "            keras.layers.Reshape((8, 8, 1)),",
                "            keras.layers.Reshape((8, 8, 1)),\n            keras.layers.Rescaling(1 / 16),",
            ),
            "lab 01's model gives other logits",
        ),
    ],
    "10d": [
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
    "10e": [
        Mutant("[keras.callbacks.BackupAndRestore(folder)]", "[]", "started over"),
        Mutant(
            "keras.callbacks.BackupAndRestore(folder)",
            'keras.callbacks.ModelCheckpoint(f"{folder}/model.keras")',
            "saves, but nothing puts",
        ),
        Mutant("BackupAndRestore(folder)", "BackupAndRestore(tempfile.mkdtemp())", "started over"),
        Mutant(
            "BackupAndRestore(folder)", "BackupAndRestore(folder, save_freq=10**6)", "started over"
        ),
        # A list
        Right(r"""
def make_callbacks(folder):
    return [keras.callbacks.BackupAndRestore(folder)]
"""),
        # Keyword, more callbacks
        Right(r"""
def make_callbacks(folder):
    backup = keras.callbacks.BackupAndRestore(backup_dir=str(folder), save_freq="epoch")
    return [backup, keras.callbacks.TerminateOnNaN()]
"""),
        # Sub-folder, from keras.callbacks
        Right(r"""
import os
from keras.callbacks import BackupAndRestore
def make_callbacks(folder):
    callbacks = []
    callbacks.append(BackupAndRestore(os.path.join(folder, "backup")))
    return callbacks
"""),
        # ModelCheckpoint
        Wrong(
            r"""
def make_callbacks(folder):
    return [keras.callbacks.ModelCheckpoint(f"{folder}/model.keras")]
""",
            "It saves, but nothing puts back what it saved: a run that",
        ),
        # The callback, no list
        Wrong(
            r"""
def make_callbacks(folder):
    return keras.callbacks.BackupAndRestore(folder)
""",
            "make_callbacks should return a list of callbacks; yours",
        ),
        # Another folder
        Wrong(
            r"""
def make_callbacks(folder):
    return [keras.callbacks.BackupAndRestore(tempfile.mkdtemp())]
""",
            "A run that was stopped in its third epoch started over",
        ),
        # One fixed folder
        Wrong(
            r"""
def make_callbacks(folder):
    return [keras.callbacks.BackupAndRestore("backup")]
""",
            "What the run saved does not lie in folder: two runs would",
        ),
        # Empty list
        Wrong(
            r"""
def make_callbacks(folder):
    return []
""",
            "A run that was stopped in its third epoch started over",
        ),
        # TensorBoard
        Wrong(
            r"""
def make_callbacks(folder):
    return [keras.callbacks.TensorBoard(folder)]
""",
            "It saves, but nothing puts back what it saved: a run that",
        ),
        # Weights only, best
        Wrong(
            r"""
def make_callbacks(folder):
    return [keras.callbacks.ModelCheckpoint(f"{folder}/best.weights.h5", save_weights_only=True, save_best_only=True, monitor="loss")]
""",
            "It saves, but nothing puts back what it saved: a run that",
        ),
    ],
    "10f": [
        Mutant(", epsilon=1e-8", "", "small gradients"),
        Mutant(", epsilon=1e-8", ", epsilon=1e-6", "small gradients"),
        Mutant("Adam(RATE,", "Adam(1e-3,", "learning rate"),
        Mutant("keras.optimizers.Adam(", "v1.train.AdamOptimizer(", "Keras optimizer"),
        Mutant("keras.optimizers.Adam(RATE, epsilon=1e-8)", "keras.optimizers.SGD(RATE)", "Adam"),
        # Keywords
        Right(r"""
def make_adam():
    return keras.optimizers.Adam(learning_rate=RATE, epsilon=1e-8)
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
    config = keras.optimizers.Adam(RATE).get_config()
    config["epsilon"] = 1e-8
    return keras.optimizers.Adam.from_config(config)
"""),
        # Subclass with a schedule
        Right(r"""
def make_adam():
    class OldAdam(keras.optimizers.Adam):
        pass
    return OldAdam(RATE, epsilon=1e-8, name="adam")
"""),
        # The default
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(RATE)
""",
            "what is added to the root of the second moment?",
        ),
        # 1e-7
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(RATE, epsilon=1e-7)
""",
            "what is added to the root of the second moment?",
        ),
        # Default rate
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(epsilon=1e-8)
""",
            "by a gradient of 2 (is the learning rate that?)",
        ),
        # Beta_1
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(RATE, beta_1=0.95, epsilon=1e-8)
""",
            "beta_1 of AdamOptimizer: expected 0.9, yours gives 0.95",
        ),
        # Amsgrad
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(RATE, epsilon=1e-8, amsgrad=True)
""",
            "AdamOptimizer knows no amsgrad: leave it out",
        ),
        # AdamW
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.AdamW(RATE, epsilon=1e-8)
""",
            "AdamOptimizer knows no weight_decay: leave it out",
        ),
        # Averaged weights
        Wrong(
            r"""
def make_adam():
    return keras.optimizers.Adam(RATE, epsilon=1e-8, use_ema=True)
""",
            "AdamOptimizer knows no use_ema: leave it out",
        ),
    ],
    "10g": [
        # Other names, one sharding for the results
        Right(
            r"""
def data_parallel(step, devices):
    mesh = jax.make_mesh((len(devices),), ("batch",), devices=devices)
    on = lambda *axes: NamedSharding(mesh, PartitionSpec(*axes))
    return jax.jit(step, in_shardings=(on(None, None), on("batch", None), on("batch", None)), out_shardings=on())
"""
        ),
        # A mesh of two axes, both over the examples
        Right(
            r"""
from jax.sharding import PartitionSpec as P

def data_parallel(step, devices):
    mesh = Mesh(np.array(devices).reshape(2, -1), ("a", "b"))
    rows = NamedSharding(mesh, P(("a", "b")))
    whole = NamedSharding(mesh, P())
    return jax.jit(step, in_shardings=(whole, rows, rows), out_shardings=whole)
"""
        ),
        # Constraints within the step
        Right(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("d",))
    put = lambda tree, *axes: jax.lax.with_sharding_constraint(
        tree, jax.tree.map(lambda _: NamedSharding(mesh, PartitionSpec(*axes)), tree))

    @jax.jit
    def split(weights, x, target):
        new, loss = step(put(weights), put(x, "d"), put(target, "d"))
        return put(new), loss

    return split
"""
        ),
        # shard_map, with the mean written by hand
        Right(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("d",))

    def own(weights, x, target):
        new, loss = step(weights, x, target)
        return jax.tree.map(lambda w: jax.lax.pmean(w, "d"), new), jax.lax.pmean(loss, "d")

    mapped = jax.shard_map(
        own, mesh=mesh, in_specs=(PartitionSpec(), PartitionSpec("d"), PartitionSpec("d")),
        out_specs=(PartitionSpec(), PartitionSpec()), check_vma=False)
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("d",)))
    return jax.jit(mapped, in_shardings=(whole, rows, rows), out_shardings=whole)
"""
        ),
        # Nothing is split
        Mutant(
            'split = NamedSharding(mesh, PartitionSpec("cores"))\n    return jax.jit(\n        step, in_shardings=(everywhere, split',
            "split = NamedSharding(mesh, PartitionSpec())\n    return jax.jit(\n        step, in_shardings=(everywhere, split",
            "each device should get its share of them: expected (4, 16), yours gives (32, 16)",
        ),
        # The features are split
        Mutant(
            'split = NamedSharding(mesh, PartitionSpec("cores"))\n    return jax.jit(\n        step, in_shardings=(everywhere, split',
            'split = NamedSharding(mesh, PartitionSpec(None, "cores"))\n    return jax.jit(\n        step, in_shardings=(everywhere, split',
            "the first axis counts the examples",
        ),
        # Targets forgotten
        Mutant(
            "in_shardings=(everywhere, split, split)",
            "in_shardings=(everywhere, split, everywhere)",
            "What each device gets of target",
        ),
        # Weights split as well
        Mutant(
            "in_shardings=(everywhere, split, split)",
            "in_shardings=(split, split, split)",
            "each device should hold all weights",
        ),
        # Results split
        Mutant(
            "in_shardings=(everywhere, split, split), out_shardings=(everywhere, everywhere)",
            "in_shardings=(everywhere, split, split), out_shardings=(split, everywhere)",
            "with out_shardings as for the weights that go in",
        ),
        # Half of the devices
        Wrong(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices[:4]), ("cores",))
    whole, rows = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("cores",)))
    return jax.jit(step, in_shardings=(whole, rows, rows), out_shardings=whole)
""",
            "Devices of the mesh, of 8 given: expected 8, yours gives 4",
        ),
        # A shard_map without the mean
        Wrong(
            r"""
def data_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("d",))
    P = PartitionSpec
    mapped = jax.shard_map(step, mesh=mesh, in_specs=(P(), P("d"), P("d")), out_specs=(P(), P()), check_vma=False)
    whole, rows = (NamedSharding(mesh, P(*axes)) for axes in ((), ("d",)))
    return jax.jit(mapped, in_shardings=(whole, rows, rows), out_shardings=whole)
""",
            "what the step computes on one device",
        ),
        # The sharding, and no step
        Wrong(
            r"""
def data_parallel(step, devices):
    return NamedSharding(Mesh(np.array(devices), ("cores",)), PartitionSpec("cores"))
""",
            "should return the jitted step",
        ),
    ],
    "10h": [
        # Specs without the trailing None, another name
        Right(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("model",))
    specs = {"inner": PartitionSpec(None, "model"), "outer": PartitionSpec("model")}
    units = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    whole = NamedSharding(mesh, PartitionSpec(None))
    return jax.jit(step, in_shardings=(units, whole, whole), out_shardings=(units, None))
"""
        ),
        # Constraints
        Right(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("m",))

    def put(array, *axes):
        return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, PartitionSpec(*axes)))

    def units(weights):
        return {"inner": put(weights["inner"], None, "m"), "outer": put(weights["outer"], "m", None)}

    @jax.jit
    def split(weights, x, target):
        new, loss = step(units(weights), put(x), put(target))
        return units(new), loss

    return split
"""
        ),
        # Rows of inner, columns of outer
        Wrong(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("cores",))
    whole = NamedSharding(mesh, PartitionSpec())
    units = {
        "inner": NamedSharding(mesh, PartitionSpec("cores", None)),
        "outer": NamedSharding(mesh, PartitionSpec(None, "cores")),
    }
    return jax.jit(step, in_shardings=(units, whole, whole), out_shardings=(units, whole))
""",
            "all rows of some columns",
        ),
        # Columns of both
        Mutant(
            'PartitionSpec("cores", None)',
            'PartitionSpec(None, "cores")',
            "the rows that belong to its columns of inner",
        ),
        # Nothing split
        Wrong(
            r"""
def tensor_parallel(step, devices):
    mesh = Mesh(np.array(devices), ("cores",))
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(step, in_shardings=(whole, whole, whole), out_shardings=whole)
""",
            "all rows of some columns",
        ),
        # The new weights gathered
        Mutant(
            "out_shardings=(units, everywhere)",
            "out_shardings=(everywhere, everywhere)",
            "come out split as they go in",
        ),
        # The batch split as well
        Mutant(
            "in_shardings=(units, everywhere, everywhere)",
            'in_shardings=(units, NamedSharding(mesh, PartitionSpec("cores")), everywhere)',
            "each device should see the whole batch",
        ),
    ],
    "10i": [
        Right("all_reduce_bytes = lambda batch, width: [32 * width**2, 4 * batch * width]"),
        # With the loss
        Right(
            r"""
def all_reduce_bytes(batch, width):
    return 4 * (8 * width * width + 1), 4 * (batch * width + 1)
"""
        ),
        Mutant(
            "return 4 * weights, 4 * batch * width",
            "return 4 * weights",
            "should return two numbers, (data-parallel, tensor-parallel)",
        ),
    ],
    "10j": [
        Right(
            "all_reduce_seconds = lambda bytes_, devices, link: bytes_ * (1 - 1 / devices) / link"
        ),
        # Round by round
        Right(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    seconds = 0.0
    for _ in ("reduce-scatter", "all-gather"):
        for _ in range(devices - 1):
            seconds += bytes_ / devices / (2 * link)
    return seconds
"""
        ),
        # NumPy
        Right(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    sent = np.float64(2 * bytes_) * (devices - 1) / devices
    return sent / np.sum([link, link])
"""
        ),
        # All to all, without a ring
        Wrong(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    return devices * (devices - 1) * bytes_ / link
""",
            "a device sends 2 x 3 pieces",
        ),
        # Milliseconds
        Wrong(
            r"""
def all_reduce_seconds(bytes_, devices, link):
    return 1000 * bytes_ * (devices - 1) / devices / link
""",
            "a device sends 2 x 3 pieces",
        ),
    ],
}
