"""What learners get wrong in lab 09, and the words that they must hear."""

import re

from wrong_answers import Mutant

ANSWERS = {
    "9a": [
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
    ],
    "9b": [
        Mutant(
            "per_core * strategy.num_replicas_in_sync",
            "per_core",
            re.compile("of 4.* for all eight"),
        ),
        Mutant("per_core * strategy.num_replicas_in_sync", "per_core * 8", "number of replicas"),
        Mutant(", drop_remainder=True", "", "not fixed"),
    ],
    "9c": [
        Mutant("with strategy.scope():", "if True:", "scope"),
        Mutant("from_logits=True", "from_logits=False", "from_logits"),
        Mutant("keras.layers.Dense(10)", 'keras.layers.Dense(10, activation="softmax")', "logits"),
        Mutant("keras.layers.Dense(10)", "keras.layers.Dense(9)", "ten"),
        Mutant("steps_per_execution=steps_per_execution,", "", "steps_per_execution"),
        Mutant('metrics=["accuracy"],', "", "accuracy"),
    ],
    "9d": [
        Mutant("tf.reduce_sum(losses) / global_batch", "tf.reduce_mean(losses)", "4 times"),
        Mutant("tf.reduce_sum(losses) / global_batch", "tf.reduce_sum(losses)", "not divided"),
        Mutant("tf.reduce_sum(losses) / global_batch", "losses / global_batch", "scalar"),
        Mutant(
            "tf.reduce_sum(losses) / global_batch",
            "tf.reduce_mean(losses) / global_batch",
            "divided twice",
        ),
    ],
    "9e": [
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
    ],
    "9f": [
        Mutant(", epsilon=1e-8", "", "small gradients"),
        Mutant(", epsilon=1e-8", ", epsilon=1e-6", "small gradients"),
        Mutant("Adam(RATE,", "Adam(1e-3,", "learning rate"),
        Mutant("keras.optimizers.Adam(", "v1.train.AdamOptimizer(", "Keras optimizer"),
        Mutant("keras.optimizers.Adam(RATE, epsilon=1e-8)", "keras.optimizers.SGD(RATE)", "Adam"),
    ],
}
