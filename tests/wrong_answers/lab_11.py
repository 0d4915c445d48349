"""What learners get wrong in lab 11, and the words that they must hear."""

from wrong_answers import Mutant

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
    ],
    "11b": [
        Mutant(
            'layers.Dense(10, dtype="float32")',
            "layers.Dense(10, dtype=dtype)",
            "come out in bfloat16",
        ),
        Mutant(
            'layers.Dense(64, activation="relu", dtype=dtype)',
            'layers.Dense(64, activation="relu")',
            "hidden",
        ),
        Mutant(
            'layers.Dense(10, dtype="float32")',
            'layers.Dense(10, activation="softmax", dtype="float32")',
            "softmax",
        ),
        Mutant(
            'layers.Dense(64, activation="relu", dtype=dtype)',
            "layers.Dense(64, dtype=dtype)",
            "ReLU",
        ),
        Mutant(
            'layers.Dense(64, activation="relu", dtype=dtype)',
            'layers.Dense(64, activation="relu", dtype="bfloat16")',
            "variables",
        ),
        Mutant("return keras.Model(images, logits)", "return logits", "keras.Model"),
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
    ],
    "11d": [
        Mutant("    missing = -len(labels) % global_batch\n", "    missing = 0\n", "left out"),
        Mutant("np.zeros(missing)]).astype", "np.ones(missing)]).astype", "weight"),
        Mutant("(images, labels, weights))\n", "(images, labels))\n", "3 parts"),
        Mutant("-len(labels) % global_batch", "len(labels) % global_batch", "left out"),
        Mutant(
            "-len(labels) % global_batch", "global_batch - len(labels) % global_batch", "needless"
        ),
        Mutant(
            "return dataset.batch(global_batch, drop_remainder=True)",
            "return dataset.batch(global_batch)",
            "drop_remainder",
        ),
        Mutant(
            "return dataset.batch(global_batch,",
            "return dataset.shuffle(999).batch(global_batch,",
            "order",
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
    ],
}
