"""Mistakes that TPUEstimator itself refuses while it builds the graph: TPU1xx."""

from rules import Port, parts, wrong
from rules.parts import tf, tpu, v1


@wrong("TPU101")
def last_batch_is_shorter(wrong):
    def input_fn(params):
        dataset = parts.examples().shuffle(64).repeat()
        return dataset.batch(params["batch_size"], drop_remainder=not wrong)  # <- TPU101

    return Port(parts.estimator(), input_fn, parts.eval_input)


@wrong("TPU102")
def generator_without_shapes(wrong):
    def numbers():
        while True:
            yield [0.0] * parts.SIZE, 1

    def input_fn(params):
        shape = None if wrong else [parts.SIZE]
        signature = (tf.TensorSpec(shape), tf.TensorSpec([], tf.int32))
        dataset = tf.data.Dataset.from_generator(numbers, output_signature=signature)  # <- TPU102
        return dataset.batch(params["batch_size"], drop_remainder=True)

    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, parts.logits_of(tf.reshape(features, [-1, parts.SIZE])))

    return Port(parts.estimator(model_fn), input_fn, parts.eval_input)


@wrong("TPU102")
def shape_lost_in_python(wrong):
    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, parts.logits_of(features["x"]))

    def input_fn(params):
        def root(features, labels):
            x = tf.numpy_function(lambda x: abs(x) ** 0.5, [features], tf.float32)  # <- TPU102
            return {"x": x if wrong else tf.ensure_shape(x, features.shape)}, labels

        return parts.train_input(params).map(root)

    return Port(parts.estimator(model_fn), input_fn, input_fn)


@wrong("TPU102")
def sequences_padded_to_the_longest(wrong):
    def input_fn(params):
        dataset = tf.data.Dataset.range(1, 100).map(lambda n: (tf.range(n), n % 2))
        length = None if wrong else 100
        return dataset.repeat().padded_batch(  # <- TPU102
            params["batch_size"], padded_shapes=([length], []), drop_remainder=True
        )

    def model_fn(features, labels, mode, params):
        table = v1.get_variable("table", [100, 8])
        words = tf.nn.embedding_lookup(table, tf.cast(features, tf.int32))
        return parts.spec(mode, labels, parts.logits_of(tf.reduce_mean(words, 1)))

    return Port(parts.estimator(model_fn, eval_batch_size=None), input_fn)


@wrong("TPU103")
def input_fn_without_params(wrong):
    def no_params():  # <- TPU103
        return parts.train_input({"batch_size": 64})

    return Port(parts.estimator(), no_params if wrong else parts.train_input, parts.eval_input)


@wrong("TPU104")
def model_fn_without_params(wrong):
    def no_params(features, labels, mode):  # <- TPU104
        return parts.spec(mode, labels, parts.logits_of(features))

    model_fn = no_params if wrong else parts.model_fn
    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU105")
def reserved_key_in_params(wrong):
    settings = {"config": tpu.RunConfig(model_dir="never_written"), "train_batch_size": 64}
    settings["params"] = {"batch_size": 64} if wrong else {"rate": 0.1}
    return Port(tpu.TPUEstimator(parts.model_fn, **settings), parts.train_input)  # <- TPU105


@wrong("TPU106", place="return tpu.TPUEstimator(")
def batch_not_a_multiple_of_the_cores(wrong):
    estimator = parts.estimator(train_batch_size=60 if wrong else 64)
    return Port(estimator, parts.train_input, parts.eval_input)


@wrong("TPU107", place="return tpu.TPUEstimator(")
def no_batch_size_for_evaluation(wrong):
    estimator = parts.estimator(eval_batch_size=None if wrong else 64)
    return Port(estimator, parts.train_input, parts.eval_input)


@wrong("TPU109", place="parts.py")
def plain_estimator(wrong):
    estimator = tf.estimator.Estimator(parts.model_fn) if wrong else parts.estimator()
    return Port(estimator, parts.train_input, parts.eval_input)


@wrong("TPU110")
def estimator_spec_in_evaluation(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.EVAL and wrong:
            metrics = parts.metric_fn(labels, logits)
            loss = parts.loss_of(labels, logits)
            return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)  # <- TPU110
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU110")
def estimator_spec_in_prediction(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.PREDICT:
            predictions = {"class": tf.argmax(logits, 1)}
            if wrong:
                return tf.estimator.EstimatorSpec(mode, predictions=predictions)  # <- TPU110
            return tpu.TPUEstimatorSpec(mode, predictions=predictions)
        return parts.spec(mode, labels, logits)

    estimator = parts.estimator(model_fn, predict_batch_size=64)
    return Port(estimator, parts.train_input, parts.eval_input, parts.predict_input)


@wrong("TPU111")
def loss_in_eval_metrics(wrong):
    def metric_fn(values):
        return {"mean_loss": v1.metrics.mean(values)}

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.EVAL:
            loss = parts.loss_of(labels, logits)
            values = loss if wrong else tf.reshape(loss, [1])
            return tpu.TPUEstimatorSpec(  # <- TPU111
                mode,
                loss=loss,
                eval_metrics=(metric_fn, [values]),
            )
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU111")
def loss_beside_a_lambda(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        loss = parts.loss_of(labels, logits)
        mean = lambda values: {"mean_loss": v1.metrics.mean(values)}  # noqa: E731
        if mode == parts.EVAL:
            metrics = (mean, [loss if wrong else tf.reshape(loss, [1])])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)  # <- TPU111
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU111")
def loss_beside_a_lambda_in_place(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        loss = parts.loss_of(labels, logits)
        if mode == parts.EVAL:
            return tpu.TPUEstimatorSpec(  # <- TPU111
                mode,
                loss=loss,
                eval_metrics=(
                    lambda values: {"mean_loss": v1.metrics.mean(values)},
                    [loss if wrong else tf.reshape(loss, [1])],
                ),
            )
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


def _summaries(rate, step):
    with tf.summary.create_file_writer("never_written").as_default():
        tf.summary.scalar("rate", tf.reduce_mean(rate), step=tf.cast(step[0], tf.int64))
        return v1.summary.all_v2_summary_ops()


@wrong("TPU111", place="in spec")
def scalar_in_host_call(wrong):
    def host_fn(rate, step):
        return _summaries(rate, tf.reshape(step, [-1]))

    def model_fn(features, labels, mode, params):
        rate, step = tf.constant([0.1]), v1.train.get_or_create_global_step()
        tensors = [rate, step if wrong else tf.reshape(step, [1])]
        return parts.spec(mode, labels, parts.logits_of(features), host_call=(host_fn, tensors))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU112")
def metric_fn_with_one_parameter(wrong):
    def one(labels):
        return {"mean": v1.metrics.mean(labels)}

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.EVAL:
            metrics = (one if wrong else parts.metric_fn, [labels, logits])
            loss = parts.loss_of(labels, logits)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)  # <- TPU112
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU112")
def metric_fn_with_other_names(wrong):
    def by_name(labels, logits):  # <- TPU112
        return parts.metric_fn(labels, logits)

    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.EVAL:
            tensors = {"labels": labels, "scores" if wrong else "logits": logits}
            loss = parts.loss_of(labels, logits)
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(by_name, tensors))
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU113")
def old_summary_in_host_call(wrong):
    def host_fn(rate, step):
        if wrong:
            v1.summary.scalar("rate", tf.reduce_mean(rate))  # <- TPU113
            return v1.summary.merge_all()
        return _summaries(rate, step)

    def model_fn(features, labels, mode, params):
        step = tf.reshape(v1.train.get_or_create_global_step(), [1])
        host_call = (host_fn, [tf.constant([0.1]), step])
        return parts.spec(mode, labels, parts.logits_of(features), host_call=host_call)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


class _Nothing(v1.train.SessionRunHook):
    pass


@wrong("TPU199")
def hooks_of_the_chief(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != parts.TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        hooks = {"training_chief_hooks" if wrong else "training_hooks": [_Nothing()]}
        return tf.estimator.EstimatorSpec(  # <- TPU199
            mode, loss=loss, train_op=parts.minimize(loss), **hooks
        )

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU115")
def hook_that_fetches_the_loss(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != parts.TRAIN:
            return parts.spec(mode, labels, logits)
        loss = parts.loss_of(labels, logits)
        hooks = [v1.train.LoggingTensorHook({"loss": loss}, every_n_iter=10)] if wrong else []
        return tpu.TPUEstimatorSpec(  # <- TPU115
            mode, loss=loss, train_op=parts.minimize(loss), training_hooks=hooks
        )

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU115")
def hook_that_fetches_by_name(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != parts.TRAIN:
            return parts.spec(mode, labels, logits)
        loss = tf.identity(parts.loss_of(labels, logits), "my_loss")
        hooks = [v1.train.LoggingTensorHook(["my_loss"], every_n_iter=10)] if wrong else []
        return tpu.TPUEstimatorSpec(  # <- TPU115
            mode, loss=loss, train_op=parts.minimize(loss), training_hooks=hooks
        )

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU117")
def scaffold_fn_without_return(wrong):
    def scaffold_fn():  # <- TPU117
        scaffold = v1.train.Scaffold()
        if not wrong:
            return scaffold

    def model_fn(features, labels, mode, params):
        return parts.spec(mode, labels, parts.logits_of(features), scaffold_fn=scaffold_fn)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU118")
def metric_fn_that_closes_over_the_model(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)

        def metric_fn(labels, scores):
            classes = tf.argmax(logits if wrong else scores, 1)
            return {"accuracy": v1.metrics.accuracy(labels, classes)}  # <- TPU118

        if mode == parts.EVAL:
            loss = parts.loss_of(labels, logits)
            metrics = (metric_fn, [labels, logits])
            return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU118")
def metric_fn_with_a_metric_of_a_captured_loss_alone(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode != parts.EVAL:
            return parts.spec(mode, labels, logits)
        each = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(each)

        def metric_fn(labels, logits, each):
            accuracy = v1.metrics.accuracy(labels, tf.argmax(logits, 1))
            mean = v1.metrics.mean(loss if wrong else each)  # <- TPU118
            return {"accuracy": accuracy, "mean_loss": mean}

        metrics = (metric_fn, [labels, logits, each])
        return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU118")
def scaffold_fn_that_closes_over_the_model(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)

        def scaffold_fn():
            if wrong:
                return v1.train.Scaffold(init_op=tf.reduce_sum(logits).op)  # <- TPU118
            return v1.train.Scaffold()

        return parts.spec(mode, labels, logits, scaffold_fn=scaffold_fn)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU118")
def host_call_that_closes_over_the_model(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        step = tf.reshape(v1.train.get_or_create_global_step(), [1])

        def host_fn(scores, step):
            mean = tf.reduce_mean(logits if wrong else scores)  # <- TPU118
            return _summaries(mean, step)

        return parts.spec(mode, labels, logits, host_call=(host_fn, [logits, step]))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


def _with(**more):
    """An input_fn whose features are a dict with `more`, functions of the features."""

    def input_fn(params):
        def as_dict(features, labels):
            return {"x": features, **{key: make(features) for key, make in more.items()}}, labels

        return parts.batched(parts.examples().map(as_dict), params)

    return input_fn


def _of_dict(features, labels, mode, params):
    return parts.spec(mode, labels, parts.logits_of(features["x"]))


@wrong("TPU119")
def file_names_as_a_feature(wrong):
    def input_fn(params):
        more = {"name": lambda x: tf.constant("a.jpg")} if wrong else {}  # <- TPU119
        return _with(**more)(params)

    return Port(parts.estimator(_of_dict, eval_batch_size=None), input_fn)


@wrong("TPU119")
def file_names_left_in_parsed_records(wrong):
    parsed = {"x": tf.io.FixedLenFeature([parts.SIZE], tf.float32)}
    parsed["label"] = tf.io.FixedLenFeature([], tf.int64)
    parsed["name"] = tf.io.FixedLenFeature([], tf.string)

    def input_fn(params):
        def example(record):
            features = tf.io.parse_single_example(record, parsed)  # <- TPU119
            if not wrong:
                features.pop("name")
            return features, tf.cast(features.pop("label"), tf.int32)

        records = tf.data.TFRecordDataset(["never read"]).map(example)
        return parts.batched(records, params)

    return Port(parts.estimator(_of_dict, eval_batch_size=None), input_fn)


@wrong("TPU120")
def double_precision_features(wrong):
    def weight(x):
        return tf.cast(x[0], tf.float64 if wrong else tf.float32)  # <- TPU120

    def input_fn(params):
        return _with(weight=weight)(params)

    return Port(parts.estimator(_of_dict, eval_batch_size=None), input_fn)


@wrong("TPU120")
def sixteen_bit_labels(wrong):
    def input_fn(params):
        def cast(features, labels):
            return features, tf.cast(labels, tf.int16 if wrong else tf.int32)  # <- TPU120

        return parts.batched(parts.examples().map(cast), params)

    def model_fn(features, labels, mode, params):
        return parts.spec(mode, tf.cast(labels, tf.int32), parts.logits_of(features))

    return Port(parts.estimator(model_fn, eval_batch_size=None), input_fn)


@wrong("TPU121")
def tensors_for_prediction(wrong):
    def predict_input(params):  # <- TPU121
        dataset = parts.predict_input(params)
        return v1.data.make_one_shot_iterator(dataset).get_next() if wrong else dataset

    estimator = parts.estimator(predict_batch_size=64)
    return Port(estimator, parts.train_input, parts.eval_input, predict_input)


def _predicting(make):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if mode == parts.PREDICT:
            return tpu.TPUEstimatorSpec(mode, predictions=make(logits))
        return parts.spec(mode, labels, logits)

    estimator = parts.estimator(model_fn, predict_batch_size=64)
    return Port(estimator, parts.train_input, parts.eval_input, parts.predict_input)


@wrong("TPU122", place="wrong_trace.py")
def predictions_as_a_tensor(wrong):
    return _predicting(lambda logits: logits if wrong else {"logits": logits})


@wrong("TPU123", place="wrong_trace.py")
def predictions_of_unknown_length(wrong):
    def predictions(logits):
        likely = tf.boolean_mask(logits, logits[:, 0] > 0) if wrong else tf.nn.relu(logits)
        return {"likely": likely}

    return _predicting(predictions)


@wrong("TPU126")
def no_train_op(wrong):
    def model_fn(features, labels, mode, params):  # <- TPU126
        logits = parts.logits_of(features)
        if mode == parts.TRAIN and wrong:
            return tpu.TPUEstimatorSpec(mode, loss=parts.loss_of(labels, logits))  # <- TPU126
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU127")
def dense_layer_on_a_shape_from_data(wrong):
    def model_fn(features, labels, mode, params):
        if wrong:
            chosen = tf.boolean_mask(features, features[0] > 0, axis=1)
        else:
            chosen = features * tf.cast(features[0] > 0, tf.float32)
        logits = v1.layers.dense(chosen, parts.CLASSES)  # <- TPU127
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU128")
def sparse_ids(wrong):
    def input_fn(params):
        def example(n):
            ids = tf.stack([n % 5, 0, 1])
            return tf.sparse.from_dense(ids) if wrong else ids, tf.cast(n % 4, tf.int32)

        return parts.batched(tf.data.Dataset.range(256).map(example), params)  # <- TPU128

    def model_fn(features, labels, mode, params):
        table = v1.get_variable("table", [5, 8])
        if wrong:
            words = tf.nn.embedding_lookup_sparse(table, features, None)
        else:
            words = tf.reduce_mean(tf.nn.embedding_lookup(table, features), 1)
        return parts.spec(mode, labels, parts.logits_of(words))

    return Port(parts.estimator(model_fn, eval_batch_size=None), input_fn)


@wrong("TPU128")
def ragged_ids(wrong):
    def input_fn(params):
        def example(n):
            ids = tf.RaggedTensor.from_row_splits(tf.range(n % 5), [0, n % 5])
            return ids if wrong else ids.to_tensor(shape=[1, 5]), tf.cast(n % 4, tf.int32)

        return parts.batched(tf.data.Dataset.range(256).map(example), params)  # <- TPU128

    def model_fn(features, labels, mode, params):
        ids = features.to_tensor() if wrong else features
        return parts.spec(mode, labels, parts.logits_of(tf.cast(ids[:, 0], tf.float32)))

    return Port(parts.estimator(model_fn, eval_batch_size=None), input_fn)


@wrong("TPU129", place="TPUConfig")
def half_the_shards(wrong):
    loop = {"num_shards": 4 if wrong else 8}
    return Port(parts.estimator(run_config={"loop": loop}), parts.train_input, parts.eval_input)


@wrong("TPU130")
def width_as_in_version_one(wrong):
    def model_fn(features, labels, mode, params):
        width = features.shape[-1]
        if wrong:
            width = width.value  # <- TPU130
        weights = v1.get_variable("weights", [width, parts.CLASSES])
        return parts.spec(mode, labels, tf.matmul(features, weights))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU131")
def batch_as_the_last_dimension(wrong):
    def input_fn(params):
        dataset = parts.batched(parts.examples(), params)
        if wrong:
            dataset = dataset.map(lambda x, y: (tf.transpose(x[:, :3]), y))  # <- TPU131
        return dataset

    return Port(parts.estimator(eval_batch_size=None), input_fn)


@wrong("TPU199")
def python_branch_on_a_tensor(wrong):
    def model_fn(features, labels, mode, params):
        logits = parts.logits_of(features)
        if wrong:
            if tf.reduce_mean(logits) > 0:  # <- TPU199
                logits = -logits
        else:
            logits = tf.where(tf.reduce_mean(logits) > 0, -logits, logits)
        return parts.spec(mode, labels, logits)

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU130")
def value_of_a_dimension(wrong):
    def model_fn(features, labels, mode, params):
        size = features.shape[-1]
        if wrong:
            size = size.value  # <- TPU130
        return parts.spec(mode, labels, parts.logits_of(features / size))

    return Port(parts.estimator(model_fn), parts.train_input, parts.eval_input)


@wrong("TPU119")
def labels_as_strings_before_the_dataset(wrong):
    """As in a template of cloudml-samples: a map only puts them into another structure."""

    def input_fn(params):
        features = tf.random.stateless_uniform([64, parts.SIZE], (1, 2))
        labels = tf.range(64) % parts.CLASSES
        shown = tf.as_string(labels) if wrong else labels  # <- TPU119
        data = tf.data.Dataset.from_tensor_slices((features, labels, shown)).repeat()
        data = data.batch(params["batch_size"], drop_remainder=True)
        return data.map(lambda x, label, shown: ({"shown": shown, "x": x}, label)).prefetch(1)

    return Port(parts.estimator(_of_dict, eval_batch_size=None), input_fn)


@wrong("TPU122", place="wrong_trace.py")
def predictions_in_a_list(wrong):
    return _predicting(lambda logits: [logits] if wrong else {"logits": logits})


@wrong("TPU122", place="wrong_trace.py")
def a_prediction_that_is_no_tensor(wrong):
    return _predicting(lambda logits: {"logits": [logits] if wrong else logits})


@wrong("TPU199")
def a_number_among_the_features(wrong):
    """As in a public GAN that grows: tensors and a number in one dict; without a TPU, model_fn gets both."""

    def input_fn(params):  # <- TPU199
        data = v1.data.make_one_shot_iterator(parts.train_input(params))
        features, labels = data.get_next()
        return {"x": features, **({"size": 8} if wrong else {})}, labels

    return Port(parts.estimator(_of_dict, eval_batch_size=None), input_fn)
