"""Right ports of many kinds, each close to some mistake: none may yield a finding."""

import numpy as np

from rules import Port, parts, right
from rules.parts import EVAL, PREDICT, TRAIN, tf, tpu, v1

BATCH = 64


def _input(make, count=256, training=True):
    """An input_fn of `count` examples, the n-th of them make(n)."""

    def input_fn(params):
        dataset = tf.data.Dataset.range(count).map(make, num_parallel_calls=tf.data.AUTOTUNE)
        if training:
            dataset = dataset.shuffle(64).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(1)

    return input_fn


def _port(model_fn, make, **settings):
    estimator = parts.estimator(model_fn, predict_batch_size=BATCH, **settings)

    def predict_input(params):
        dataset = tf.data.Dataset.range(100).map(lambda n: make(n)[0])
        return dataset.batch(params["batch_size"])

    return Port(estimator, _input(make), _input(make, training=False), predict_input)


def _image(n):
    image = tf.random.stateless_uniform([32, 32, 3], tf.stack([n, n]))
    return image, tf.cast(n % 4, tf.int32)


def _words(n):
    ids = tf.random.stateless_uniform([12], tf.stack([n, n]), maxval=50, dtype=tf.int32)
    return {"ids": ids, "length": tf.cast(n % 12 + 1, tf.int32)}, tf.cast(n % 4, tf.int32)


@right
def image_cnn_with_batch_norm():
    def model_fn(features, labels, mode, params):
        training = mode == TRAIN
        net = features
        for filters in (8, 16):
            net = v1.layers.conv2d(net, filters, 3, padding="same", use_bias=False)
            net = tf.nn.relu(v1.layers.batch_normalization(net, training=training))
            net = v1.layers.max_pooling2d(net, 2, 2)
        net = v1.layers.dropout(v1.layers.flatten(net), 0.4, training=training)
        logits = v1.layers.dense(net, 4)
        if not training:
            return parts.spec(mode, labels, logits)
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            train_op = parts.minimize(parts.loss_of(labels, logits), v1.train.AdamOptimizer())
        return tpu.TPUEstimatorSpec(mode, loss=parts.loss_of(labels, logits), train_op=train_op)

    return _port(model_fn, _image)


@right
def images_augmented_where_a_constant_says_so():
    """As the public UDA has it: TensorFlow 1 knows no condition in Python there."""

    def pipeline(training):
        def changed(image, label):
            brighter = lambda: tf.image.random_brightness(image, 0.2)  # noqa: E731
            return tf.cond(is_training, brighter, lambda: image), label

        def input_fn(params):
            nonlocal is_training
            is_training = tf.constant(training)
            return images(params).map(changed)

        is_training, images = None, _input(_image, training=training)
        return input_fn

    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, parts.logits_of(v1.layers.flatten(features)))

    return Port(parts.estimator(model_fn), pipeline(True), pipeline(False))


@right
def images_augmented_for_training_alone():
    def make(training):
        def example(n):
            image, label = _image(n)
            if training:
                image = tf.image.random_flip_left_right(image)
                image = tf.image.random_contrast(image, 0.8, 1.2)
            return tf.image.resize(image, [24, 24]), label

        return example

    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, parts.logits_of(v1.layers.flatten(features)))

    estimator = parts.estimator(model_fn)
    return Port(estimator, _input(make(True)), _input(make(False), training=False))


@right
def text_with_embeddings():
    def model_fn(features, labels, mode, params):
        table = v1.get_variable("table", [50, 16])
        words = tf.nn.embedding_lookup(table, features["ids"])
        mask = tf.sequence_mask(features["length"], 12, tf.float32)[:, :, None]
        mean = tf.reduce_sum(words * mask, 1) / tf.reduce_sum(mask, 1)
        return parts.spec(mode, labels, parts.logits_of(mean))

    return _port(model_fn, _words)


@right
def lstm_of_keras():
    def model_fn(features, labels, mode, params):
        words = tf.keras.layers.Embedding(50, 16)(features["ids"])
        state = tf.keras.layers.LSTM(8)(words)
        return parts.spec(mode, labels, parts.logits_of(state))

    return _port(model_fn, _words)


@right
def lstm_of_version_one():
    def model_fn(features, labels, mode, params):
        words = tf.one_hot(features["ids"], 50)
        cell = v1.nn.rnn_cell.LSTMCell(8, name="cell")
        _, state = v1.nn.dynamic_rnn(cell, words, features["length"], dtype=tf.float32)
        return parts.spec(mode, labels, parts.logits_of(state.h))

    return _port(model_fn, _words)


@right
def regression_with_dict_features():
    def make(n):
        x = tf.cast(n, tf.float32) / 256
        features = {"size": tf.reshape(x, [1]), "rooms": n % 5, "sold": n % 2 == 0}
        return features, 3 * x + 1

    def model_fn(features, labels, mode, params):
        rooms = tf.one_hot(features["rooms"], 5)
        sold = tf.cast(features["sold"], tf.float32)[:, None]
        price = v1.layers.dense(tf.concat([features["size"], rooms, sold], 1), 1)[:, 0]
        if mode == PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"price": price})
        loss = v1.losses.mean_squared_error(labels, price)
        if mode == EVAL:

            def metric_fn(labels, price):
                return {"rmse": v1.metrics.root_mean_squared_error(labels, price)}

            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, [labels, price]))
        optimizer = v1.train.FtrlOptimizer(0.1, l2_regularization_strength=0.01)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss, optimizer))

    return _port(model_fn, make)


@right
def weighted_metrics_of_a_padded_evaluation():
    def make(n):
        features = tf.one_hot(n % 16, 16)
        weight = tf.cast(n < 100, tf.float32)
        return {"x": features, "weight": weight}, tf.cast(n % 4, tf.int32)

    def metric_fn(labels, logits, weights):
        classes = tf.argmax(logits, 1)
        return {
            "accuracy": v1.metrics.accuracy(labels, classes, weights),
            "recall": v1.metrics.mean_per_class_accuracy(labels, classes, 4, weights),
        }

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features["x"])
        if mode != EVAL:
            return parts.spec(mode, labels, logits)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits, features["weight"])
        tensors = {"labels": labels, "logits": logits, "weights": features["weight"]}
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(metric_fn, tensors))

    estimator = parts.estimator(model_fn)
    return Port(estimator, _input(make), _input(make, 128, training=False))


@right
def host_call_with_summaries():
    def host_fn(step, loss, rate):
        step = step[0]
        with tf.summary.create_file_writer("never_written", max_queue=10).as_default():
            with tf.summary.record_if(tf.equal(step % 10, 0)):
                tf.summary.scalar("loss", tf.reduce_mean(loss), step=step)
                tf.summary.scalar("rate", rate[0], step=step)
            return v1.summary.all_v2_summary_ops()

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        step = v1.train.get_global_step()
        rate = v1.train.exponential_decay(0.1, step, 100, 0.9)
        optimizer = v1.train.MomentumOptimizer(rate, 0.9)
        tensors = [tf.reshape(t, [1]) for t in (step, loss, rate)]
        train_op = parts.minimize(loss, optimizer)
        return tpu.TPUEstimatorSpec(
            mode, loss=loss, train_op=train_op, host_call=(host_fn, tensors)
        )

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def scaffold_fn_that_restores_variables():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)

        def scaffold_fn():
            saver = v1.train.Saver(v1.trainable_variables("hidden"))
            return v1.train.Scaffold(init_fn=lambda scaffold, session: saver.restore(session, "x"))

        return parts.spec(mode, labels, logits, scaffold_fn=scaffold_fn)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def several_optimizers():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        groups = [v1.trainable_variables(name) for name in ("hidden", "logits")]
        optimizers = [
            v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(0.01)),
            v1.tpu.CrossShardOptimizer(v1.train.RMSPropOptimizer(0.01)),
        ]
        updates = [o.minimize(loss, var_list=g) for o, g in zip(optimizers, groups, strict=True)]
        with tf.control_dependencies(updates):
            train_op = v1.train.get_global_step().assign_add(1).op
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def gradients_clipped_before_they_are_summed():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer(0.01))
        gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
        pairs = zip(clipped, variables, strict=True)
        train_op = optimizer.apply_gradients(pairs, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def gradients_summed_then_clipped():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        variables = v1.trainable_variables()
        gradients = [v1.tpu.cross_replica_sum(g) / 8 for g in tf.gradients(loss, variables)]
        clipped, _ = tf.clip_by_global_norm(gradients, 1.0)
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        pairs = zip(clipped, variables, strict=True)
        train_op = optimizer.apply_gradients(pairs, v1.train.get_global_step())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def gradients_accumulated_over_steps():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss, step = parts.loss_of(labels, logits), v1.train.get_global_step()
        optimizer = v1.tpu.CrossShardOptimizer(v1.train.GradientDescentOptimizer(0.1))
        totals, added = [], []
        for gradient, variable in optimizer.compute_gradients(loss):
            zeros, name = v1.zeros_initializer(), variable.op.name + "_total"
            total = v1.get_variable(name, variable.shape, initializer=zeros, trainable=False)
            totals.append((total, variable))
            added.append(total.assign_add(gradient))

        def apply():
            pairs = [(total.read_value() / 4, variable) for total, variable in totals]
            with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
                return tf.group(*[total.assign(tf.zeros_like(total)) for total, _ in totals])

        with tf.control_dependencies(added):
            update = tf.cond(tf.equal(step % 4, 3), apply, tf.no_op)
        train_op = tf.group(update, step.assign_add(1))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def learning_rate_schedule_with_warm_up():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss, step = parts.loss_of(labels, logits), v1.train.get_global_step()
        rate = v1.train.polynomial_decay(0.1, step, 1000, 0.0)
        warm = tf.cast(step, tf.float32) / 100 * 0.1
        rate = tf.where(step < 100, warm, rate)
        train_op = parts.minimize(loss, v1.train.AdamOptimizer(rate))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def bfloat16_model():
    def make(n):
        image, label = _image(n)
        return tf.cast(image, tf.bfloat16), label

    def model_fn(features, labels, mode, params):
        with v1.tpu.bfloat16_scope():
            net = v1.layers.conv2d(features, 8, 3, 2)
            logits = v1.layers.dense(v1.layers.flatten(net), 4)
        return parts.spec(mode, labels, tf.cast(logits, tf.float32))

    return _port(model_fn, make)


@right
def exported_for_the_cpu_with_class_names():
    names = ["daisy", "dandelion", "rose", "tulip"]

    def model_fn(features, labels, mode, params):
        if mode == PREDICT:
            features = v1.layers.dropout(features, 0.4, training=False)
            logits = parts.logits_of(features)
            predictions = {"class": tf.argmax(logits, 1)}
            if not params["use_tpu"]:
                predictions["name"] = tf.gather(names, predictions["class"])
            outputs = {"serving": tf.estimator.export.PredictOutput(predictions)}
            return tpu.TPUEstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
        return parts.spec(mode, labels, parts.logits_of(features))

    estimator = parts.estimator(model_fn, predict_batch_size=BATCH, export_to_tpu=False)
    inputs = (parts.train_input, parts.eval_input, parts.predict_input, parts.receiver)
    return Port(estimator, *inputs)


@right
def moving_averages_of_the_variables():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss, step = parts.loss_of(labels, logits), v1.train.get_global_step()
        averages = tf.train.ExponentialMovingAverage(0.99, step)
        with tf.control_dependencies([parts.minimize(loss)]):
            train_op = averages.apply(v1.trainable_variables())
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


class _AdamWeightDecay(v1.train.Optimizer):
    """Adam as BERT has it: made of assignments, and without a global step of its own."""

    def __init__(self):
        super().__init__(False, "AdamWeightDecay")

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        updates = []
        for gradient, variable in grads_and_vars:
            if gradient is None:
                continue
            first, second = (
                v1.get_variable(
                    variable.op.name + slot,
                    variable.shape,
                    trainable=False,
                    initializer=v1.zeros_initializer(),
                )
                for slot in ("/m", "/v")
            )
            next_first = 0.9 * first + 0.1 * gradient
            next_second = 0.999 * second + 0.001 * tf.square(gradient)
            update = next_first / (tf.sqrt(next_second) + 1e-6) + 0.01 * variable
            updates += [
                variable.assign(variable - 0.01 * update),
                first.assign(next_first),
                second.assign(next_second),
            ]
        return tf.group(*updates, name=name)


@right
def bert_like_optimizer():
    def model_fn(features, labels, mode, params):
        table = v1.get_variable("table", [50, 16])
        words = tf.gather(table, features["ids"]) + v1.get_variable("position", [12, 16])
        scores = tf.nn.softmax(tf.matmul(words, words, transpose_b=True) / 4.0)
        words = tf.matmul(v1.nn.dropout(scores, rate=0.1 if mode == TRAIN else 0.0), words)
        words = tf.keras.layers.LayerNormalization(name="norm")(words)
        logits = parts.logits_of(words[:, 0])
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss, step = parts.loss_of(labels, logits), v1.train.get_or_create_global_step()
        optimizer = v1.tpu.CrossShardOptimizer(_AdamWeightDecay())
        variables = v1.trainable_variables()
        gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
        pairs = zip(gradients, variables, strict=True)
        train_op = optimizer.apply_gradients(pairs, global_step=step)
        train_op = tf.group(train_op, [step.assign(step + 1)])
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return _port(model_fn, _words)


@right
def keras_layers_in_model_fn():
    def model_fn(features, labels, mode, params):
        training = mode == TRAIN
        net = tf.keras.layers.Conv2D(8, 3)(features)
        normal = tf.keras.layers.BatchNormalization()
        net = tf.nn.relu(normal(net, training=training))
        net = tf.keras.layers.GlobalAveragePooling2D()(net)
        net = tf.keras.layers.Dropout(0.2)(net, training=training)
        logits = tf.keras.layers.Dense(4)(net)
        if not training:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        with tf.control_dependencies(normal.updates):
            train_op = parts.minimize(loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return _port(model_fn, _image)


@right
def characters_in_windows():
    def input_fn(params):
        text = tf.data.Dataset.range(2000).map(lambda n: tf.cast(n % 30, tf.int32))
        windows = text.batch(17, drop_remainder=True).map(lambda ids: (ids[:-1], ids[1:]))
        windows = windows.shuffle(50).repeat()
        return windows.batch(params["batch_size"], drop_remainder=True)

    def model_fn(features, labels, mode, params):
        net = v1.layers.dense(tf.one_hot(features, 30), 16)
        logits = v1.layers.dense(tf.cumsum(net, 1), 30)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    return Port(parts.estimator(model_fn, eval_batch_size=None), input_fn)


@right
def auto_encoder_that_samples_in_evaluation():
    def model_fn(features, labels, mode, params):
        mean, width = (v1.layers.dense(features, 4, name=name) for name in ("mean", "width"))
        code = mean + tf.exp(width) * tf.random.normal(tf.shape(mean))
        loss = tf.reduce_mean(tf.square(v1.layers.dense(code, parts.SIZE) - features))
        if mode == EVAL:
            metrics = (lambda mean: {"mean": v1.metrics.mean(mean)}, [mean])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def printing_outside_the_compiled_program():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        v1.tpu.outside_compilation(lambda x: tf.print("mean", tf.reduce_mean(x)), logits)
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def table_of_numbers_in_the_model():
    table = np.random.default_rng(0).normal(size=[100, 8]).astype(np.float32)

    def model_fn(features, labels, mode, params):
        near = tf.gather(tf.constant(table), tf.argmax(features, 1))
        tf.debugging.assert_all_finite(near, "table")
        return parts.spec(mode, labels, parts.logits_of(near))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def keras_model_and_estimator_spec_in_training():
    def model_fn(features, labels, mode, params):
        layers = tf.keras.layers
        model = tf.keras.Sequential(
            [
                layers.Conv2D(8, 3, activation="relu", input_shape=(32, 32, 3)),
                layers.Flatten(),
                layers.Dropout(0.4),
                layers.Dense(4),
            ]
        )
        logits = model(features, training=mode == TRAIN)
        if mode != TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    return _port(model_fn, _image)


@right
def images_transposed_for_the_tpu():
    def input_fn(params):
        dataset = tf.data.Dataset.range(256).map(_image).shuffle(64).repeat()
        dataset = dataset.batch(params["batch_size"], drop_remainder=True)
        dataset = dataset.map(lambda images, labels: (tf.transpose(images, [1, 2, 3, 0]), labels))
        return dataset.prefetch(1)

    def model_fn(features, labels, mode, params):
        images = tf.transpose(features, [3, 0, 1, 2])
        logits = v1.layers.dense(v1.layers.flatten(images), 4)
        loss = parts.loss_of(labels, logits)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    return Port(parts.estimator(model_fn, batch_axis=[3, 0], eval_batch_size=None), input_fn)


@right
def one_batch_a_core():
    loop = {"per_host_input_for_training": tpu.InputPipelineConfig.PER_HOST_V2}
    estimator = parts.estimator(run_config={"loop": loop})
    return Port(estimator, parts.train_input, parts.eval_input)


@right
def input_as_tensors_of_an_iterator():
    def input_fn(params):
        return v1.data.make_one_shot_iterator(parts.train_input(params)).get_next()

    return Port(parts.estimator(), input_fn, parts.eval_input)


@right
def examples_drawn_at_random():
    centres = np.random.default_rng(0).normal(size=[4, parts.SIZE]).astype(np.float32)

    def make(n):
        label = tf.random.uniform([], 0, 4, tf.int32)
        return tf.gather(centres, label) + tf.random.normal([parts.SIZE]), label

    return Port(parts.estimator(), _input(make), _input(make, training=False))


@right
def generator_and_critic():
    def model_fn(features, labels, mode, params):
        with v1.variable_scope("generator"):
            made = v1.layers.dense(tf.random.normal([tf.shape(features)[0], 4]), parts.SIZE)
        with v1.variable_scope("critic", reuse=v1.AUTO_REUSE):
            real, fake = (v1.layers.dense(x, 1, name="score") for x in (features, made))
        critic_loss = tf.reduce_mean(tf.nn.softplus(-real) + tf.nn.softplus(fake))
        if mode == EVAL:
            metrics = (lambda scores: {"score": v1.metrics.mean(scores)}, [real])
            return tpu.TPUEstimatorSpec(mode, loss=critic_loss, eval_metrics=metrics)
        first, second = (v1.tpu.CrossShardOptimizer(v1.train.AdamOptimizer()) for _ in range(2))
        update = first.minimize(critic_loss, var_list=v1.trainable_variables("critic"))
        loss, step = tf.reduce_mean(tf.nn.softplus(-fake)), v1.train.get_global_step()
        with tf.control_dependencies([update]):
            train_op = second.minimize(loss, step, v1.trainable_variables("generator"))
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@right
def evaluation_from_a_generator():
    """Python numbers, whose datasets lie within functions of the pipeline, in evaluation too."""

    def numbers():
        for number in range(256):
            yield [float(number)] * parts.SIZE, number % parts.CLASSES

    def input_fn(params):
        signature = (tf.TensorSpec([parts.SIZE]), tf.TensorSpec([], tf.int32))
        data = tf.data.Dataset.from_generator(numbers, output_signature=signature)
        return data.repeat().batch(params["batch_size"], drop_remainder=True)

    return Port(parts.estimator(), input_fn, input_fn)


@right
def noise_beside_the_class_in_evaluation():
    """A generator of given classes is fed noise in each mode: no example is changed by it."""

    def model_fn(features, labels, mode, params):
        labels = features["class"] if labels is None else labels
        noise = tf.random.normal([labels.shape[0], 8])
        given = 2.0 * tf.concat([noise, tf.one_hot(labels, 4)], 1)
        made = v1.layers.dense(tf.reshape(given, [-1, 12]), 16)
        if mode == PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions={"made": made})
        loss = tf.reduce_mean(tf.square(made - tf.reduce_mean(features["row"], 0)))
        if mode == EVAL:
            metrics = (lambda made: {"mean": v1.metrics.mean(made)}, [made])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=parts.minimize(loss))

    def example(n):
        row = tf.random.stateless_uniform([16], tf.stack([n, n]))
        return {"row": row, "class": tf.cast(n % 4, tf.int32)}, tf.cast(n % 4, tf.int32)

    return _port(model_fn, example)


@right
def evaluation_in_padded_batches():
    """padded_batch has lists among its inputs, before drop_remainder and after batch_size."""

    def input_fn(params):
        dataset = parts.examples(128)
        return dataset.padded_batch(params["batch_size"], ([parts.SIZE], []), drop_remainder=True)

    return Port(parts.estimator(), parts.train_input, input_fn)


@right
def batch_norm_averages_updated_with_the_loss():
    def model_fn(features, labels, mode, params):
        training = mode == TRAIN
        net = v1.layers.batch_normalization(v1.layers.flatten(features), training=training)
        logits = v1.layers.dense(net, 4)
        if not training:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        train_op = parts.minimize(loss)
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            loss = tf.identity(loss)
        return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return _port(model_fn, _image)


def _called(estimator, **arguments):
    """A port whose program trains and evaluates, with `arguments` of train."""

    def main():
        estimator.train(parts.train_input, **{"max_steps": np.int64(100)} | arguments)
        estimator.evaluate(parts.eval_input)

    return Port(main=main)


@right
def evaluation_to_the_end_of_the_data_on_the_host():
    return _called(parts.estimator(use_tpu=True, eval_on_tpu=False))


class Watching(v1.train.SessionRunHook):
    """A hook that needs a session from the start, and then asks for what stands outside of the loop."""

    def begin(self):
        self.step = v1.train.get_global_step()

    def after_create_session(self, session, coord):
        self.first = session.run(self.step)

    def before_run(self, context):
        assert context.session.graph is self.step.graph
        return v1.train.SessionRunArgs([self.step, "global_step:0", self.step.op])


@right
def hooks_that_fetch_the_global_step():
    hooks = [Watching(), v1.train.LoggingTensorHook(["global_step"], every_n_iter=10)]
    return _called(parts.estimator(use_tpu=True, eval_on_tpu=False), hooks=hooks)


@right
def hook_that_asks_the_session_itself():
    class Asking(v1.train.SessionRunHook):
        def before_run(self, context):
            context.session.run(context.session.graph.get_tensor_by_name("global_step:0"))

    return _called(parts.estimator(use_tpu=True, eval_on_tpu=False), hooks=[Asking()])


@right
def keras_in_a_scope_set_for_the_whole_program():
    def main():
        strategy = tf.distribute.TPUStrategy(
            tf.distribute.cluster_resolver.TPUClusterResolver.connect("")
        )
        with strategy.scope():
            base = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=[8])])
            base.trainable = False
            model = tf.keras.Sequential(
                [base, tf.keras.layers.Dropout(0.1), tf.keras.layers.Dense(1)]
            )
        model.compile("sgd", "mse")
        model.fit(
            np.zeros([64, 8], np.float32), np.zeros([64], np.float32), epochs=2, batch_size=64
        )

    return Port(main=main)


def _normalised_always(averages_in=()):
    """A model that normalises with the batch's own statistics, but in some modes; it updates no averages."""

    def model_fn(features, labels, mode, params):
        training = mode not in averages_in
        net = v1.layers.batch_normalization(v1.layers.flatten(features), training=training)
        return parts.spec(mode, labels, v1.layers.dense(net, 4))

    return model_fn


@right
def batch_norm_whose_averages_no_mode_reads():
    return _port(_normalised_always(), _image)


def _run(port, evaluates=True, **steps):
    """The port as a program that trains, evaluates or not, and never predicts."""

    def main():
        port.estimator.train(port.input_fn, **(steps or {"max_steps": 100}))
        if evaluates:
            port.estimator.evaluate(port.eval_input_fn, steps=4)

    return Port(main=main)


@right
def batch_norm_of_a_program_that_only_trains():
    """A later evaluation would read the averages: a note."""
    return _run(_port(_normalised_always({EVAL, PREDICT}), _image), evaluates=False)


@right
def predictions_of_no_dict_in_a_program_that_never_predicts():
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(v1.layers.flatten(features))
        if mode == PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions=logits)
        return parts.spec(mode, labels, logits)

    return _run(_port(model_fn, _image))


@right
def an_epoch_a_call_of_train():
    """With as many steps as there are batches, fewer than a loop on the device has."""

    def input_fn(params):
        return parts.examples(256).shuffle(256).batch(params["batch_size"], drop_remainder=True)

    return _run(Port(parts.estimator(), input_fn, parts.eval_input), steps=4)
