"""Mistakes that show when the step is lowered or run on virtual cores: TPU301, TPU302, TPU4xx."""

from rules import Port, parts, wrong
from rules.parts import tf, tpu, v1


def _port(loss_of, rate=0.01, shards=True, input_fn=parts.train_input):
    """A port whose only particular is how its loss comes from features and labels."""

    def model_fn(features, labels, mode, params):
        loss = loss_of(features, labels)
        optimizer = v1.train.GradientDescentOptimizer(rate)
        if shards:
            optimizer = v1.tpu.CrossShardOptimizer(optimizer)
        train_op = optimizer.minimize(loss, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn, eval_batch_size=None), input_fn)


def _plain(features, labels):
    return parts.loss_of(labels, parts.logits_of(features))


def _normalised(features):
    """FusedBatchNorm's outputs have other shapes on a CPU than they say."""
    images = tf.reshape(features, [-1, parts.SIZE, 1, 1])
    return tf.reshape(v1.layers.batch_normalization(images, training=True), features.shape)


@wrong("TPU301")
def mask_as_long_as_the_longest(wrong):
    def loss_of(features, labels):
        mask = tf.sequence_mask(labels, None if wrong else parts.SIZE, tf.float32)
        mask = tf.pad(mask, [[0, 0], [0, parts.SIZE - tf.shape(mask)[1]]])
        return _plain(features * tf.ensure_shape(mask, features.shape), labels)

    return _port(loss_of)


@wrong("TPU302")
def rows_scaled_in_python(wrong):
    def loss_of(features, labels):
        largest = tf.reduce_max(tf.abs(features))
        if wrong:
            largest = tf.ensure_shape(tf.numpy_function(abs, [largest], tf.float32), [])
        return _plain(features / largest, labels)

    return _port(loss_of)


@wrong("TPU401")
def cores_that_drift_apart(wrong):
    return _port(_plain, shards=not wrong)


@wrong("TPU402")
def logarithm_of_zero(wrong):
    def loss_of(features, labels):
        logits = parts.logits_of(_normalised(features))
        share = tf.nn.softmax(logits * (1e4 if wrong else 1.0))
        chosen = tf.reduce_sum(share * tf.one_hot(labels, parts.CLASSES), 1)
        logarithm = tf.math.log(chosen)
        return -tf.reduce_mean(logarithm)  # <- TPU402

    return _port(loss_of)


@wrong("TPU403")
def loss_summed_over_the_batch(wrong):
    def loss_of(features, labels):
        logits = parts.logits_of(features)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_sum(losses) if wrong else tf.reduce_mean(losses)  # <- TPU403

    return _port(loss_of, rate=1e-4)


@wrong("TPU403")
def gradients_that_nobody_divides(wrong):
    def model_fn(features, labels, mode, params):
        loss = _plain(features, labels)
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(2.0))
        variables = v1.trainable_variables()
        gradients = tf.gradients(loss, variables)
        if not wrong:
            gradients = [each for each, _ in optimizer.compute_gradients(loss)]
        pairs = list(zip(gradients, variables, strict=True))
        train_op = optimizer.apply_gradients(pairs, v1.train.get_global_step())  # <- TPU403
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn, eval_batch_size=None), parts.train_input)


@wrong("TPU403")
def clipped_gradients_behind_a_warm_up(wrong):
    """The rate of the first steps is too small for a loss to show what the gradients are."""

    def model_fn(features, labels, mode, params):
        loss = _plain(features, labels)
        step = v1.train.get_or_create_global_step()
        rate = 1e-4 * tf.cast(step, tf.float32) / 10_000
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(rate))
        variables = v1.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.1)
        if not wrong:
            gradients = [each / v1.tpu.cross_replica_sum(1.0) for each in gradients]
        pairs = list(zip(gradients, variables, strict=True))
        train_op = optimizer.apply_gradients(pairs, step)  # <- TPU403
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn, eval_batch_size=None), parts.train_input)


@wrong("TPU404")
def one_batch_for_ever(wrong):
    def input_fn(params):
        dataset = parts.examples().batch(params["batch_size"], drop_remainder=True)
        return dataset.take(1 if wrong else -1).repeat()

    return _port(_plain, input_fn=input_fn)


@wrong("TPU405")
def square_root_at_zero(wrong):
    def loss_of(features, labels):
        weights = v1.get_variable("weights", [parts.SIZE], initializer=v1.zeros_initializer())
        squared = tf.reduce_sum(tf.square(weights)) + (0.0 if wrong else 1e-6)
        length = tf.sqrt(squared)
        return _plain(_normalised(features), labels) + length

    return _port(loss_of)


@wrong("TPU405")
def logarithm_in_the_branch_that_is_not_taken(wrong):
    """Its values are thrown away, and its gradient is zero times infinity."""

    def loss_of(features, labels):
        weights = v1.get_variable("weights", [parts.SIZE, 1], initializer=v1.zeros_initializer())
        product = features @ weights
        there = product > 0
        safe = product if wrong else tf.where(there, product, tf.ones_like(product))
        logarithm = tf.math.log(safe)
        chosen = tf.where(there, logarithm, tf.zeros_like(product))
        return _plain(features, labels) + tf.reduce_mean(chosen)

    return _port(loss_of)


@wrong("TPU406")
def groups_of_cores_that_are_not_there(wrong):
    """With eight cores the groups would do; the two that run it are refused when XLA compiles."""
    groups = [[0, 1, 2, 3], [4, 5, 6, 7]] if wrong else [[0], [1]]

    def loss_of(features, labels):
        mean = v1.tpu.cross_replica_sum(tf.reduce_mean(features, 0), groups)
        return _plain(features - mean / len(groups[0]), labels)

    return _port(loss_of)


@wrong("TPU407")
def input_that_ends_too_soon(wrong):
    def input_fn(params):
        dataset = parts.examples().repeat()
        if wrong:
            dataset = dataset.take(2 * params["batch_size"])
        return dataset.batch(params["batch_size"], drop_remainder=True)

    return _port(_plain, input_fn=input_fn)


@wrong("TPU408")
def learning_rate_of_zero(wrong):
    return _port(_plain, rate=0.0 if wrong else 0.01)


@wrong("TPU409")
def distances_by_a_product(wrong):
    def loss_of(features, labels):
        shift = 100.0
        points = features + shift
        between = v1.random_uniform_initializer(shift, shift + 1)
        centres = v1.get_variable("centres", [parts.CLASSES, parts.SIZE], initializer=between)
        products = tf.matmul(points, centres, transpose_b=True)  # <- TPU409
        squares = tf.reduce_sum(points**2, 1, keepdims=True) + tf.reduce_sum(centres**2, 1)
        distances = tf.reduce_sum((points[:, None] - centres) ** 2, 2)
        return parts.loss_of(labels, 2 * products - squares if wrong else -distances)

    return _port(loss_of)


@wrong("TPU301")
def loop_without_a_bound_in_a_function_of_its_own(wrong):
    """TensorFlow names an op of the gradient, and not the loop in the function that is called."""
    bound = {} if wrong else {"maximum_iterations": 20}

    @tf.function
    def settled(rows):
        [rows] = tf.while_loop(  # <- TPU301
            lambda rows: tf.reduce_max(tf.abs(rows)) > 0.5,
            lambda rows: [rows * 0.9],
            [rows],
            **bound,
        )
        return rows

    def loss_of(features, labels):
        return parts.loss_of(labels, settled(v1.layers.dense(features, parts.CLASSES)))

    return _port(loss_of)
