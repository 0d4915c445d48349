"""Made from solutions/source/13_clinic.ipynb by `python -m lab_utils.build`: change it there."""

from lab_utils import estimator  # noqa: F401  (from here on there is a tf.estimator)


# TODO 13a: the faulty lines, each with the letter of the reason
digits_diagnosis = {18: "A", 22: "I", 46: "H", 50: "J", 51: "E", 66: "C"}


# TODO 13b: the new text of each line that you change
digits_treatment = {
    18: "def train_input_fn(params):",
    22: '    return dataset.batch(params["batch_size"], drop_remainder=True)',
    46: """\
        return tf.estimator.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])""",
    47: "",
    50: "",
    51: """\
    optimizer = tf.train.AdamOptimizer(rate)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)""",
    66: """\
        train_batch_size=BATCH_SIZE,
        eval_batch_size=BATCH_SIZE,""",
}


# TODO 13c: the faulty lines, each with the letter of the reason
photographs_diagnosis = {15: "B", 46: "C", 53: "F", 56: "I", 68: "H", 92: "A"}


# TODO 13d: the new text of each line that you change
photographs_treatment = {
    46: """\
        if self.is_training:
            image = tf.image.random_flip_left_right(image)
        return {"image": image}, label""",
    47: "",
    52: "            dataset = dataset.shuffle(NUM_TRAIN).repeat()",
    55: "",
    56: "",
    68: '        tf2_summary.scalar("loss", loss[0], step=gs)',
    88: """\
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(update_ops):
            train_op = optimizer.minimize(loss, global_step)""",
    91: "        lr_t = tf.reshape(learning_rate, [1])",
}


# TODO 13e: the faulty lines, each with the letter of the reason
reviews_diagnosis = {25: "E", 43: "B", 48: "K", 61: "F", 80: "I", 87: "D"}


# TODO 13f: the new text of each line that you change
reviews_treatment = {
    25: '    return dataset.padded_batch(params["batch_size"], ([MAX_WORDS], []), drop_remainder=True)',
    42: "        of_word = tf.gather(tf.constant(WORD_GROUPS), words)",
    43: "",
    44: "",
    48: "        width = inputs.shape[-1]",
    61: "        if training:",
    80: "",
    87: "    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)",
    88: "",
    89: "",
    90: "",
}


# TODO 13g: the faulty lines, each with the letter of the reason
portraits_diagnosis = {34: "K", 42: "E", 68: "D", 76: "G", 80: "C", 98: "B"}


# TODO 13h: the new text of each line that you change
portraits_treatment = {
    35: """\
    window = tf.constant(window.astype(np.float32))
    return pictures * window""",
    42: "",
    70: """\
        d_optimizer = tf.tpu.CrossShardOptimizer(d_optimizer)
        g_optimizer = tf.tpu.CrossShardOptimizer(g_optimizer)""",
    74: '            g_loss, tf.train.get_global_step(), var_list=tf.trainable_variables("generator")',
    81: "    noise = tf.data.Dataset.from_tensor_slices(noise.astype(np.float32))",
    97: '    return dataset.batch(params["batch_size"], drop_remainder=True)',
    98: "",
}


# TODO 13i: the faulty lines, each with the letter of the reason
boxes_diagnosis = {41: "H", 53: "F", 90: "C", 103: "G", 104: "A", 126: "D"}


# TODO 13j: the new text of each line that you change
boxes_treatment = {
    41: """\
        number = tf.shape(boxes)[0]
        boxes = tf.pad(boxes, [[0, MAX_BOXES - number], [0, 0]])
        boxes = tf.ensure_shape(boxes, [MAX_BOXES, 4])""",
    42: "",
    48: '        labels = {"boxes": tf.zeros([MAX_BOXES, 4]), "number": tf.constant(1)}',
    49: "",
    53: '        batch_size = params["batch_size"]',
    90: "",
    92: "",
    93: "",
    103: """\
            "count_accuracy": tf.metrics.accuracy(number, chosen, weights=is_real),
            "box_loss": tf.metrics.mean(box_loss, weights=is_real),""",
    104: "",
    126: "        train_batch_size=64,",
}


# TODO 13k: the faulty lines, each with the letter of the reason
films_diagnosis = {24: "I", 25: "K", 59: "H", 62: "F", 69: "C", 88: "D"}


# TODO 13l: the new text of each line that you change
films_treatment = {
    24: """\
            dataset = dataset.shuffle(count).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)""",
    25: "",
    47: '        return tf.squeeze(tf.layers.dense(hidden, 1, name="stars"), axis=1)',
    59: "",
    71: "            return tf.train.Scaffold(saver=saver)",
    88: "        tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=8),",
}
