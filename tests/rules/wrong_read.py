"""Mistakes that no message tells of before a TPU compiles or runs the program: TPU2xx."""

import numpy as np

from rules import Port, parts, wrong
from rules.parts import tf, tpu, v1


def _port(logits_of, **settings):
    """A port whose only particular is how its model computes the logits from the features."""

    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, logits_of(features))

    return Port(parts.estimator(model_fn, **settings), parts.train_input, parts.eval_input)


def _training(train_op, **settings):
    """A port whose only particular is what train_op(loss) makes."""

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != parts.TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op(loss))

    return Port(parts.estimator(model_fn, **settings), parts.train_input, parts.eval_input)


# Gradients that are not summed over the cores.


@wrong("TPU201")
def optimizer_not_wrapped(wrong):
    def train_op(loss):
        optimizer = v1.train.AdamOptimizer(0.01)
        if not wrong:
            optimizer = v1.tpu.CrossShardOptimizer(optimizer)
        return optimizer.minimize(loss, v1.train.get_global_step())  # <- TPU201

    return _training(train_op)


@wrong("TPU201")
def second_optimizer_not_wrapped(wrong):
    def train_op(loss):
        hidden, logits = (v1.trainable_variables(name) for name in ("hidden", "logits"))
        first = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        second = v1.train.AdagradOptimizer(0.1)
        if not wrong:
            second = v1.tpu.CrossShardOptimizer(second)
        step = v1.train.get_global_step()
        return tf.group(
            first.minimize(loss, step, var_list=logits),
            second.minimize(loss, var_list=hidden),  # <- TPU201
        )

    return _training(train_op)


@wrong("TPU201")
def gradients_applied_by_hand(wrong):
    def train_op(loss):
        variables = v1.trainable_variables()
        updates = [v1.train.get_global_step().assign_add(1)]
        for variable, gradient in zip(variables, tf.gradients(loss, variables), strict=True):
            if not wrong:
                gradient = v1.tpu.cross_replica_sum(gradient)
            updates.append(variable.assign_sub(0.1 * gradient))  # <- TPU201
        return tf.group(*updates)

    return _training(train_op)


@wrong("TPU201")
def summed_gradients_scaled_by_a_core_s_own_norm(wrong):
    def train_op(loss):
        variables = v1.trainable_variables()
        own = tf.gradients(loss, variables)
        summed = [v1.tpu.cross_replica_sum(gradient) for gradient in own]
        norm = tf.linalg.global_norm(own if wrong else summed)
        clipped, _ = tf.clip_by_global_norm(summed, 1.0, use_norm=norm)
        optimizer = v1.train.GradientDescentOptimizer(0.1)
        pairs = zip(clipped, variables, strict=True)
        return optimizer.apply_gradients(pairs, v1.train.get_global_step())  # <- TPU201

    return _training(train_op)


@wrong("TPU201")
def keras_optimizer(wrong):
    def train_op(loss):
        optimizer = tf.keras.optimizers.legacy.SGD(0.1)
        optimizer.iterations = v1.train.get_or_create_global_step()
        variables = v1.trainable_variables()
        gradients = tf.gradients(loss, variables)
        if not wrong:
            gradients = [v1.tpu.cross_replica_sum(gradient) for gradient in gradients]
        return optimizer.apply_gradients(zip(gradients, variables, strict=True))  # <- TPU201

    return _training(train_op)


@wrong("TPU201")
def gradients_accumulated_and_never_summed(wrong):
    def train_op(loss):
        step = v1.train.get_global_step()
        updates = [step.assign_add(1)]
        for variable in v1.trainable_variables():
            gradient = tf.gradients(loss, variable)[0]
            total = v1.get_variable(
                variable.op.name + "_total",
                variable.shape,
                initializer=v1.zeros_initializer(),
                trainable=False,
            )

            def apply(variable=variable, total=total):
                value = total if wrong else v1.tpu.cross_replica_sum(total)
                with tf.control_dependencies([variable.assign_sub(0.1 * value)]):  # <- TPU201
                    return tf.group(total.assign(tf.zeros_like(total)))

            with tf.control_dependencies([total.assign_add(gradient)]):
                updates.append(tf.cond(tf.equal(step % 4, 3), apply, tf.no_op))
        return tf.group(*updates)

    return _training(train_op)


# Ops and types that a TPU lacks.


@wrong("TPU202")
def bicubic_resize(wrong):
    def logits_of(features):
        images = tf.reshape(features, [-1, 4, 4, 1])
        method = "bicubic" if wrong else "bilinear"
        larger = tf.image.resize(images, [8, 8], method)  # <- TPU202
        return parts.logits_of(tf.reshape(larger, [-1, 64]))

    return _port(logits_of)


@wrong("TPU202")
def crop_and_resize(wrong):
    def logits_of(features):
        images = tf.reshape(features, [-1, 4, 4, 1])
        if wrong:
            boxes = tf.tile([[0.0, 0.0, 0.5, 0.5]], [8, 1])
            crops = tf.image.crop_and_resize(images, boxes, tf.range(8), [4, 4])  # <- TPU202
        else:
            crops = tf.image.resize(images[:, :2, :2], [4, 4])
        return parts.logits_of(tf.reshape(crops, [-1, 16]))

    return _port(logits_of)


@wrong("TPU202")
def sum_over_sorted_segments(wrong):
    def logits_of(features):
        segments = tf.constant([0, 0, 1, 1] * 4)
        segments = tf.sort(segments)
        columns = tf.transpose(features)
        if wrong:
            sums = tf.math.segment_sum(columns, segments)  # <- TPU202
            sums = tf.ensure_shape(sums, [2, 8])
        else:
            sums = tf.math.unsorted_segment_sum(columns, segments, 2)
        return parts.logits_of(tf.transpose(sums))

    return _port(logits_of)


@wrong("TPU202")
def lookup_table_in_the_model(wrong):
    def logits_of(features):
        ids = tf.argmax(features, 1)
        if wrong:
            keys = tf.range(parts.SIZE, dtype=tf.int64)
            pairs = tf.lookup.KeyValueTensorInitializer(keys, keys // 2)
            groups = tf.lookup.StaticHashTable(pairs, 0).lookup(ids)  # <- TPU202
        else:
            groups = tf.gather(tf.range(parts.SIZE) // 2, ids)
        return parts.logits_of(tf.one_hot(groups, parts.SIZE))

    return _port(logits_of)


@wrong("TPU202")
def sampled_softmax(wrong):
    def model_fn(features, labels, mode, params):
        hidden = v1.layers.dense(features, 8)
        weights = v1.get_variable("weights", [parts.CLASSES, 8])
        biases = v1.get_variable("biases", [parts.CLASSES])
        logits = tf.matmul(hidden, weights, transpose_b=True) + biases
        if mode != parts.TRAIN:
            return parts.spec(mode, labels, logits)
        if wrong:
            ids = tf.cast(labels, tf.int64)[:, None]
            losses = tf.nn.sampled_softmax_loss(  # <- TPU202
                weights, biases, ids, hidden, num_sampled=2, num_classes=parts.CLASSES
            )
        else:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(losses)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU202")
def refused_op_within_a_loop(wrong):
    def logits_of(features):
        def body(values):
            if wrong:
                return tf.math.segment_max(values, tf.range(8))  # <- TPU202
            return tf.math.unsorted_segment_max(values, tf.range(8), 8)

        result = tf.while_loop(
            lambda i, x: i < 3,
            lambda i, x: (i + 1, tf.ensure_shape(body(x), x.shape)),
            [0, features],
        )
        return parts.logits_of(result[1])

    return _port(logits_of)


@wrong("TPU203")
def double_complex_numbers(wrong):
    def logits_of(features):
        kind = tf.complex128 if wrong else tf.complex64
        numbers = tf.cast(features, kind)  # <- TPU203
        return parts.logits_of(tf.cast(tf.abs(numbers), tf.float32))

    port = _port(logits_of)
    return port


@wrong("TPU204")
def class_names_gathered_in_the_model(wrong):
    names = ["daisy", "dandelion", "rose", "tulip"]

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        classes = tf.argmax(logits, 1)
        if mode == parts.PREDICT:
            predictions = {"class": classes}
            if wrong:
                predictions["name"] = tf.gather(tf.constant(names), classes)  # <- TPU204
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        return parts.spec(mode, labels, logits)

    estimator = parts.estimator(model_fn, predict_batch_size=64)
    return Port(estimator, parts.train_input, parts.eval_input, parts.predict_input)


@wrong("TPU204")
def class_names_in_the_predictions_of_every_mode(wrong):
    names = ["daisy", "dandelion", "rose", "tulip"]

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        name = tf.argmax(logits, 1)
        if wrong:
            name = tf.gather(names, name)  # <- TPU204
        spec = parts.spec(mode, labels, logits)
        return spec._replace(predictions={"name": name})

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU204")
def ids_hashed_in_the_model(wrong):
    def logits_of(features):
        ids = tf.argmax(features, 1)
        if wrong:
            ids = tf.strings.to_hash_bucket_fast(tf.strings.as_string(ids), 8)  # <- TPU204
        return parts.logits_of(tf.one_hot(ids, 16))

    return _port(logits_of)


@wrong("TPU205")
def numpy_in_the_model(wrong):
    def logits_of(features):
        tanh = tf.tanh
        if wrong:

            def tanh(x):
                return tf.numpy_function(np.tanh, [x], tf.float32)  # <- TPU205

        features = tanh(features)
        return parts.logits_of(tf.ensure_shape(features, [8, parts.SIZE]))

    return _port(logits_of)


@wrong("TPU205")
def python_in_the_model(wrong):
    def logits_of(features):
        if wrong:
            features = tf.py_function(lambda x: x * 2, [features], tf.float32)  # <- TPU205
        return parts.logits_of(tf.ensure_shape(features, [8, parts.SIZE]))

    return _port(logits_of)


@wrong("TPU205")
def printing_in_the_model(wrong):
    def logits_of(features):
        logits = parts.logits_of(features)
        if wrong:
            with tf.control_dependencies([tf.print("logits", logits)]):  # <- TPU205
                logits = tf.identity(logits)
        return logits

    return _port(logits_of)


@wrong("TPU205")
def old_print_in_the_model(wrong):
    def logits_of(features):
        logits = parts.logits_of(features)
        return v1.Print(logits, [logits]) if wrong else logits  # <- TPU205

    return _port(logits_of)


@wrong("TPU206")
def summaries_in_the_model(wrong):
    def train_op(loss):
        if wrong:
            v1.summary.scalar("my_loss", loss)  # <- TPU206
        return parts.minimize(loss)

    return _training(train_op)


@wrong("TPU207")
def images_encoded_in_the_model(wrong):
    def logits_of(features):
        images = tf.cast(tf.reshape(features, [-1, 4, 4, 1]) * 255, tf.uint8)
        if wrong:
            image = tf.io.decode_jpeg(tf.io.encode_jpeg(images[0]))  # <- TPU207
            images += tf.ensure_shape(image, [4, 4, 1])
        return parts.logits_of(tf.reshape(tf.cast(images, tf.float32), [-1, 16]))

    return _port(logits_of)


@wrong("TPU208")
def double_precision_in_the_model(wrong):
    def logits_of(features):
        scale = np.linspace(0, 1, parts.SIZE)
        if not wrong:
            scale = scale.astype(np.float32)
        scaled = tf.cast(features, scale.dtype) * scale  # <- TPU208
        return parts.logits_of(tf.cast(scaled, tf.float32))

    return _port(logits_of)


# Settings.


@wrong("TPU210")
def checkpoints_within_a_loop(wrong):
    def model_fn(features, labels, mode, params):
        return parts.model_fn(features, labels, mode, params)

    config = tpu.RunConfig(
        model_dir="never_written",
        save_checkpoints_steps=100,  # <- TPU210
        tpu_config=tpu.TPUConfig(iterations_per_loop=200 if wrong else 50),
    )
    sizes = {"train_batch_size": 64, "eval_batch_size": 64}
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, **sizes)
    return Port(estimator, parts.train_input, parts.eval_input)


# The input pipeline.


@wrong("TPU211")
def training_data_shorter_than_a_loop(wrong):
    def input_fn(params):
        dataset = parts.examples(256).repeat(2 if wrong else None)
        return dataset.batch(params["batch_size"], drop_remainder=True)  # <- TPU211

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU211")
def evaluation_smaller_than_a_batch(wrong):
    def eval_input(params):
        dataset = parts.examples(60 if wrong else 128)
        return dataset.batch(params["batch_size"], drop_remainder=True)  # <- TPU211

    return Port(parts.estimator(), parts.train_input, eval_input)


def _noisy(features, labels):
    return features + tf.random.normal([parts.SIZE]), labels  # <- TPU212


@wrong("TPU212", place="wrong_read.py")
def evaluation_input_augmented(wrong):
    def input_fn(params, training):
        dataset = parts.examples().repeat() if training else parts.examples()
        if training or wrong:
            dataset = dataset.map(_noisy)
        return dataset.batch(params["batch_size"], drop_remainder=True)

    def train_input(params):
        return input_fn(params, True)

    def eval_input(params):
        return input_fn(params, False)

    return Port(parts.estimator(), train_input, eval_input)


@wrong("TPU212")
def evaluation_augmented_in_the_model(wrong):
    def model_fn(features, labels, mode, params):
        if mode == parts.TRAIN or wrong:
            images = tf.reshape(features, [-1, 4, 4, 1])
            images = tf.image.random_brightness(images, 0.2)  # <- TPU212
            features = tf.reshape(images, [-1, 16])
        return parts.spec(mode, labels, parts.logits_of(features))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU213")
def prediction_augmented_in_the_model(wrong):
    def model_fn(features, labels, mode, params):
        if mode == parts.TRAIN or (wrong and mode == parts.PREDICT):
            images = tf.reshape(features, [-1, 4, 4, 1])
            images = tf.image.random_flip_left_right(images)  # <- TPU213
            features = tf.reshape(images, [-1, 16])
        return parts.spec(mode, labels, parts.logits_of(features))

    estimator = parts.estimator(model_fn, predict_batch_size=64)
    return Port(estimator, parts.train_input, parts.eval_input, parts.predict_input)


def _served(images):
    placeholder = v1.placeholder(tf.string, [None], name="jpeg")
    features = tf.reshape(tf.map_fn(images, placeholder, fn_output_signature=tf.float32), [-1, 16])
    return tf.estimator.export.TensorServingInputReceiver(features, {"jpeg": placeholder})


@wrong("TPU213")
def serving_input_augmented(wrong):
    def decode(jpeg):
        image = tf.image.resize(tf.image.decode_jpeg(jpeg, channels=1), [4, 4])
        return tf.image.random_flip_left_right(image) if wrong else image  # <- TPU213

    estimator = parts.estimator(export_to_tpu=False)
    receiver = lambda: _served(decode)  # noqa: E731
    return Port(estimator, parts.train_input, parts.eval_input, None, receiver)


@wrong("TPU213")
def serving_augmented_in_the_model(wrong):
    def model_fn(features, labels, mode, params):
        if mode == parts.TRAIN or (wrong and mode == parts.PREDICT):
            features = features + tf.random.normal(features.shape[1:])  # <- TPU213
        return parts.spec(mode, labels, parts.logits_of(features))

    estimator = parts.estimator(model_fn)
    return Port(estimator, parts.train_input, parts.eval_input, None, parts.receiver)


@wrong("TPU214")
def batch_divided_once_more(wrong):
    def input_fn(params):
        size = params["batch_size"] // 8 if wrong else params["batch_size"]  # <- TPU214
        dataset = parts.examples().repeat()
        return dataset.batch(size, drop_remainder=True)

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU226")
def batch_size_written_into_input_fn(wrong):
    def input_fn(params):
        dataset = parts.examples().repeat()
        size = 64 if wrong else params["batch_size"]
        return dataset.batch(size, drop_remainder=True)  # <- TPU226

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU216")
def batches_shuffled(wrong):
    def input_fn(params):
        dataset = parts.examples()
        if not wrong:
            dataset = dataset.shuffle(64)
        dataset = dataset.repeat().batch(params["batch_size"], drop_remainder=True)
        return dataset.shuffle(4) if wrong else dataset  # <- TPU216

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU218")
def training_data_given_once(wrong):
    def input_fn(params):
        dataset = parts.examples(1024).shuffle(64)
        if not wrong:
            dataset = dataset.repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True)  # <- TPU218

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU222")
def data_as_a_constant(wrong):
    array = np.zeros([2**15 if wrong else 2**10, parts.SIZE], np.float32)

    def input_fn(params):
        labels = tf.data.Dataset.range(len(array)).map(lambda n: tf.cast(n % 4, tf.int32))
        features = tf.data.Dataset.from_tensor_slices(array)  # <- TPU222
        return parts.batched(tf.data.Dataset.zip((features, labels)), params)

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU225")
def last_examples_of_evaluation_dropped(wrong):
    def eval_input(params):
        dataset = parts.examples(150 if wrong else 128)
        return dataset.batch(params["batch_size"], drop_remainder=True)  # <- TPU225

    return Port(parts.estimator(), parts.train_input, eval_input)


# What train_op leaves out, and what stands in the model that should not.


@wrong("TPU215")
def global_step_not_given(wrong):
    def train_op(loss):
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        step = None if wrong else v1.train.get_global_step()
        return optimizer.minimize(loss, step)  # <- TPU215

    return _training(train_op)


@wrong("TPU219")
def train_op_that_only_counts(wrong):
    def train_op(loss):
        train_op = parts.minimize(loss)
        if wrong:
            return v1.train.get_global_step().assign_add(1)  # <- TPU219
        return train_op

    return _training(train_op)


@wrong("TPU220", place="return optimizer.minimize(")
def batch_norm_averages_left_alone(wrong):
    def model_fn(features, labels, mode, params):
        training = mode == parts.TRAIN
        normal = v1.layers.batch_normalization(features, training=training)
        logits = parts.logits_of(normal)
        if not training:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        updates = [] if wrong else v1.get_collection(v1.GraphKeys.UPDATE_OPS)
        with tf.control_dependencies(updates):
            train_op = parts.minimize(loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU223")
def dropout_in_evaluation(wrong):
    def model_fn(features, labels, mode, params):
        hidden = v1.layers.dense(features, 32)
        training = wrong or mode == parts.TRAIN
        hidden = v1.layers.dropout(hidden, training=training)  # <- TPU223
        return parts.spec(mode, labels, v1.layers.dense(hidden, parts.CLASSES))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU224")
def metrics_in_training(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.TRAIN and wrong:
            accuracy = v1.metrics.accuracy(labels, tf.argmax(logits, 1))  # <- TPU224
            with tf.control_dependencies([accuracy[1]]):
                logits = tf.identity(logits)
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU227")
def column_against_row(wrong):
    def model_fn(features, labels, mode, params):
        values = v1.layers.dense(features, 1)
        if mode == parts.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"value": values})
        rows = values if wrong else tf.squeeze(values, axis=-1)
        loss = tf.reduce_mean(tf.square(rows - tf.cast(labels, tf.float32)))  # <- TPU227
        if mode == parts.EVAL:
            mean = lambda labels: {"mean": v1.metrics.mean(labels)}  # noqa: E731
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(mean, [labels]))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU228")
def numpy_in_input_fn(wrong):
    def input_fn(params):
        tanh = tf.tanh
        if wrong:

            def tanh(x):
                return tf.numpy_function(np.tanh, [x], tf.float32)  # <- TPU228

        def change(features, labels):
            return tf.ensure_shape(tanh(features), features.shape), labels

        return parts.train_input(params).map(change)

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU211")
def fewer_batches_than_steps(wrong):
    """Enough for a loop on the device, but not for the call of train."""

    def input_fn(params):
        dataset = parts.examples(256).repeat(4)
        return dataset.batch(params["batch_size"], drop_remainder=True)  # <- TPU211

    def main():
        estimator = parts.estimator()
        estimator.train(input_fn, max_steps=10)  # then 16 more, as many as there are batches
        estimator.train(input_fn, max_steps=27 if wrong else 26)

    return Port(main=main)


@wrong("TPU231")
def global_step_given_to_two_optimizers(wrong):
    def train_op(loss):
        step = v1.train.get_global_step()
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        first = optimizer.minimize(loss, step)
        other = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(0.1))
        return tf.group(first, other.minimize(loss, step if wrong else None))  # <- TPU231

    return _training(train_op)


@wrong("TPU211")
def evaluation_that_repeats_no_batch(wrong):
    """A filter tells nobody how many examples it leaves, and to repeat no batch gives none."""

    def eval_input(params):
        dataset = parts.examples(60 if wrong else 128).filter(lambda features, label: label >= 0)
        return dataset.batch(params["batch_size"], drop_remainder=True).repeat()  # <- TPU211

    return Port(parts.estimator(), parts.train_input, eval_input)
