"""A library of problems and models: summaries that are collected for a host_call, metrics over padded targets.

The spec is made by methods of a model class; summaries stand in the model, and the host writes their inputs.
"""

import functools

import tensorflow.compat.v1 as tf

VOCAB, LENGTH, HIDDEN = 48, 16, 32


class HParams(dict):
    __getattr__ = dict.__getitem__

    def add_hparam(self, name, value):
        self[name] = value


def basic_params():
    return HParams(
        hidden_size=HIDDEN, num_layers=2, dropout=0.1, learning_rate=0.2, warmup_steps=100, label_smoothing=0.1
    )


class Problem(object):
    def __init__(self, examples):
        self._examples = examples

    def example(self, index):
        length = 4 + tf.cast(index % 12, tf.int32)
        inputs = tf.random.stateless_uniform([length], tf.stack([index, 1]), 2, VOCAB, tf.int32)
        inputs = tf.concat([inputs, [1]], 0)
        return {"inputs": inputs, "targets": tf.reverse(inputs, [0])}

    def make_estimator_input_fn(self, mode, hparams):
        def estimator_input_fn(params, config):
            return self.input_fn(mode, hparams, params, config)

        return estimator_input_fn

    def input_fn(self, mode, hparams, params=None, config=None):
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        dataset = tf.data.Dataset.range(self._examples)
        context = (params or {}).get("context")
        if is_training and context is not None and context.num_hosts > 1:
            dataset = dataset.shard(context.num_hosts, context.current_host)
        if is_training:
            dataset = dataset.repeat().shuffle(50)
        dataset = dataset.map(self.example, num_parallel_calls=4)
        dataset = dataset.filter(lambda ex: tf.less_equal(tf.shape(ex["inputs"])[0], LENGTH))

        def define_shapes(example):
            return {key: tf.reshape(value, [-1, LENGTH, 1, 1]) for key, value in example.items()}

        dataset = dataset.padded_batch(params["batch_size"], {"inputs": [LENGTH], "targets": [LENGTH]}, drop_remainder=True)  # <- TPU101
        dataset = dataset.map(define_shapes)

        def prepare(example):
            return example, example["targets"]

        return dataset.map(prepare).prefetch(2)


class Model(object):
    def __init__(self, hparams, mode):
        self.hparams, self.mode = hparams, mode

    @property
    def is_training(self):
        return self.mode == tf.estimator.ModeKeys.TRAIN

    def body(self, features):
        table = tf.get_variable("symbols", [VOCAB, self.hparams.hidden_size])
        x = tf.gather(table, tf.squeeze(features["inputs"], [2, 3]))
        if self.is_training:
            x = tf.nn.dropout(x, rate=self.hparams.dropout)
        for layer in range(self.hparams.num_layers):
            with tf.variable_scope("layer_%d" % layer):
                y = tf.layers.conv1d(x, self.hparams.hidden_size, 3, padding="same", activation=tf.nn.relu)
                tf.summary.scalar("activation", tf.reduce_mean(y))
                tf.summary.histogram("activations", y)
                x += y
        return x

    def top(self, body):
        logits = tf.layers.dense(body, VOCAB, name="softmax")
        return logits[:, :, None, None, :]

    def loss(self, logits, targets):
        labels = tf.squeeze(targets, [2, 3])
        smoothed = tf.one_hot(
            labels,
            VOCAB,
            1.0 - self.hparams.label_smoothing,
            self.hparams.label_smoothing / (VOCAB - 1),
        )
        xent = tf.nn.softmax_cross_entropy_with_logits_v2(smoothed, tf.squeeze(logits, [2, 3]))
        weights = tf.to_float(tf.not_equal(labels, 0))
        return tf.reduce_sum(xent * weights), tf.reduce_sum(weights)

    @classmethod
    def estimator_model_fn(cls, hparams, features, labels, mode, config=None, params=None):
        features = dict(features)
        model = cls(hparams, mode)
        with tf.variable_scope("model"):
            logits = model.top(model.body(features))
        if mode == tf.estimator.ModeKeys.PREDICT:
            outputs = tf.argmax(logits, -1, output_type=tf.int32)
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode, predictions={"outputs": outputs, "inputs": features["inputs"]}
            )
        numerator, denominator = model.loss(logits, labels)
        loss = numerator / tf.maximum(1.0, denominator)
        tf.summary.scalar("loss/training", loss)
        if mode == tf.estimator.ModeKeys.EVAL:
            return model.estimator_spec_eval(features, logits, labels, loss)
        return model.estimator_spec_train(loss, params)

    def estimator_spec_train(self, loss, params):
        step = tf.to_float(tf.train.get_or_create_global_step())
        rate = self.hparams.learning_rate * tf.minimum(1.0, (step + 1.0) / self.hparams.warmup_steps)
        rate *= tf.rsqrt(tf.maximum(step, self.hparams.warmup_steps))
        tf.summary.scalar("learning_rate", rate)
        opt = tf.train.AdamOptimizer(rate, beta2=0.997, epsilon=1e-9)
        if params["use_tpu"]:
            opt = tf.tpu.CrossShardOptimizer(opt)
        variables = sorted(tf.trainable_variables(), key=lambda v: v.name)
        gradients = opt.compute_gradients(loss, variables, colocate_gradients_with_ops=True)
        train_op = opt.apply_gradients(gradients, global_step=tf.train.get_global_step())  # <- TPU201
        host_call = create_host_call("/tmp/problem_library")
        remove_summaries()
        return tf.estimator.tpu.TPUEstimatorSpec(  # <- TPU111
            tf.estimator.ModeKeys.TRAIN, loss=loss, train_op=train_op, host_call=host_call
        )

    def estimator_spec_eval(self, features, logits, labels, loss):
        def accuracy(predictions, labels):
            weights = tf.to_float(tf.not_equal(labels, 0))
            outputs = tf.argmax(predictions, -1, output_type=tf.int32)
            return tf.to_float(tf.equal(outputs, labels)), weights

        def log_perplexity(predictions, labels):
            weights = tf.to_float(tf.not_equal(labels, 0))
            xent = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=predictions)
            return xent, weights

        def tpu_metric_fn(named, logits, labels):
            metrics = {}
            for name, metric in named:
                scores, weights = metric(logits, labels)
                metrics["metrics/" + name] = tf.metrics.mean(scores, weights)
            return metrics

        named = [("accuracy", accuracy), ("neg_log_perplexity", log_perplexity)]
        metric_fn = functools.partial(tpu_metric_fn, named)
        remove_summaries()
        return tf.estimator.tpu.TPUEstimatorSpec(
            tf.estimator.ModeKeys.EVAL,
            loss=loss,
            eval_metrics=(metric_fn, {"logits": logits, "labels": labels}),
        )


def create_host_call(model_dir):
    """The scalars of all summaries so far, written by the host."""
    graph = tf.get_default_graph()
    summaries = graph.get_collection(tf.GraphKeys.SUMMARIES)
    gs_t = tf.reshape(tf.to_int32(tf.train.get_global_step()), [1])
    summary_kwargs = {}
    for t in summaries:
        if t.op.type not in ("ScalarSummary",):
            continue
        name, tensor = t.op.name, t.op.inputs[1]
        if tensor.dtype == tf.bfloat16:
            tensor = tf.to_float(tensor)
        summary_kwargs["ScalarSummary" + name] = tf.reshape(tensor, [1])
    summary_kwargs["global_step"] = gs_t

    def host_call_fn(**kwargs):
        gs = tf.to_int64(kwargs.pop("global_step")[0])
        with tf.compat.v2.summary.create_file_writer(model_dir).as_default():
            for name, value in sorted(kwargs.items()):
                tf.compat.v2.summary.scalar(name.replace("ScalarSummary", ""), tf.reduce_mean(value), step=gs)
            return tf.summary.all_v2_summary_ops()

    return (host_call_fn, summary_kwargs)


def remove_summaries():
    graph = tf.get_default_graph()
    for key in (tf.GraphKeys.SUMMARIES, "eval_summaries"):
        del graph.get_collection_ref(key)[:]


def main(data_dir):
    hparams = basic_params()
    hparams.add_hparam("data_dir", data_dir)
    problem = Problem(256)
    config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/problem_library",
        save_checkpoints_steps=1000,
        keep_checkpoint_max=20,
        session_config=tf.ConfigProto(allow_soft_placement=True),
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=100,
            num_shards=8,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=functools.partial(Model.estimator_model_fn, hparams),
        model_dir=config.model_dir,
        config=config,
        use_tpu=True,
        train_batch_size=64,
        eval_batch_size=32,
        predict_batch_size=16,
        params={"use_tpu": True},
    )
    train = problem.make_estimator_input_fn(tf.estimator.ModeKeys.TRAIN, hparams)
    evaluate = problem.make_estimator_input_fn(tf.estimator.ModeKeys.EVAL, hparams)
    return estimator, train, {"eval_input_fn": evaluate}


FAULTS = [
    ("TPU111", "summary_kwargs[\"ScalarSummary\" + name] = tf.reshape(tensor, [1])", "summary_kwargs[\"ScalarSummary\" + name] = tensor"),
    ("TPU201", "        if params[\"use_tpu\"]:\n            opt = tf.tpu.CrossShardOptimizer(opt)\n", ""),
    ("TPU101", "\"targets\": [LENGTH]}, drop_remainder=True)", "\"targets\": [LENGTH]})"),
]
