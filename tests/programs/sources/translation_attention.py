"""Translation by recurrent nets with attention: words looked up in a table on the host, a decoder loop, beam search.

Hyperparameters are a string that is parsed; buckets become one length; the vocabulary is a file.
"""

import os

import numpy as np
import tensorflow.compat.v1 as tf

SRC_LEN, TGT_LEN, UNITS, VOCAB, BEAM = 10, 8, 16, 24, 3
HPARAMS = "num_units=16,learning_rate=0.002,label_smoothing=0.1,warmup_steps=100"


def parse_hparams(text):
    pairs = (item.split("=") for item in text.split(","))
    return {name: float(value) if "." in value else int(value) for name, value in pairs}


def embedding(ids, name):
    with tf.variable_scope("embeddings", reuse=tf.AUTO_REUSE):
        table = tf.get_variable(name, [VOCAB, UNITS], initializer=tf.random_uniform_initializer(-0.1, 0.1))
    return tf.gather(table, ids)


def encode(source, length):
    with tf.variable_scope("encoder"):
        cell_fw, cell_bw = tf.nn.rnn_cell.GRUCell(UNITS // 2), tf.nn.rnn_cell.GRUCell(UNITS // 2)
        outputs, states = tf.nn.bidirectional_dynamic_rnn(
            cell_fw, cell_bw, embedding(source, "source"), sequence_length=length, dtype=tf.float32
        )
        return tf.concat(outputs, 2), tf.concat(states, 1)


class Decoder(object):
    def __init__(self, memory, mask):
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            self.keys = tf.layers.dense(memory, UNITS, use_bias=False, name="memory_layer")
            self.cell = tf.nn.rnn_cell.BasicLSTMCell(UNITS, name="cell")
        self.memory, self.mask = memory, mask

    def step(self, words, context, state):
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            output, state = self.cell(tf.concat([embedding(words, "target"), context], 1), state)
            query = tf.layers.dense(output, UNITS, use_bias=False, name="query_layer")
            v = tf.get_variable("attention_v", [UNITS])
            score = tf.reduce_sum(v * tf.tanh(self.keys + tf.expand_dims(query, 1)), 2)
            weights = tf.nn.softmax(score + (1.0 - self.mask) * tf.float32.min)
            context = tf.squeeze(tf.matmul(tf.expand_dims(weights, 1), self.memory), 1)
            return tf.layers.dense(tf.concat([output, context], 1), VOCAB, name="projection"), context, state


def teacher_forced(decoder, first, targets):
    batch = targets.shape[0]
    inputs = tf.concat([tf.ones([batch, 1], tf.int32), targets[:, :-1]], 1)
    words = tf.TensorArray(tf.int32, TGT_LEN).unstack(tf.transpose(inputs))
    written = tf.TensorArray(tf.float32, TGT_LEN, element_shape=[batch, VOCAB])
    state = tf.nn.rnn_cell.LSTMStateTuple(tf.zeros_like(first), first)
    decoder.step(inputs[:, 0], tf.zeros_like(first), state)  # the variables, outside of the loop

    def body(time, context, state, written):
        logits, context, state = decoder.step(words.read(time), context, state)
        return time + 1, context, state, written.write(time, logits)

    loop = (tf.constant(0), tf.zeros_like(first), state, written)
    _, _, _, written = tf.while_loop(lambda time, *_: time < TGT_LEN, body, loop, maximum_iterations=TGT_LEN)
    return tf.transpose(written.stack(), [1, 0, 2])


def beam_search(decoder, first):
    batch = int(first.shape[0])
    rows = batch * BEAM
    state = tf.nn.rnn_cell.LSTMStateTuple(tf.zeros([rows, UNITS]), tf.repeat(first, BEAM, axis=0))
    words, context = tf.ones([rows], tf.int32), tf.zeros([rows, UNITS])
    scores = tf.tile([[0.0] + [-1e9] * (BEAM - 1)], [batch, 1])
    chosen = []
    for _ in range(TGT_LEN):
        logits, context, state = decoder.step(words, context, state)
        log_probs = tf.reshape(tf.nn.log_softmax(logits), [batch, BEAM * VOCAB])
        total = tf.reshape(tf.repeat(scores, VOCAB, axis=1), [batch, BEAM * VOCAB]) + log_probs
        scores, best = tf.nn.top_k(total, BEAM)
        words = tf.reshape(best % VOCAB, [rows])
        parents = tf.reshape(best // VOCAB + tf.range(batch)[:, None] * BEAM, [rows])
        context = tf.gather(context, parents)
        state = tf.nest.map_structure(lambda s: tf.gather(s, parents), state)
        chosen = [tf.gather(each, parents) for each in chosen] + [words]
    return tf.reshape(tf.stack(chosen, 1), [batch, BEAM, TGT_LEN]), scores


def get_metrics(losses, targets, logits):  # <- TPU112
    weights = tf.cast(tf.not_equal(targets, 0), tf.float32)
    return {
        "accuracy": tf.metrics.accuracy(targets, tf.argmax(logits, -1, output_type=tf.int32), weights=weights),
        "neg_log_perplexity": tf.metrics.mean(-losses, weights=weights),
    }


def model_fn(features, labels, mode, params):
    mask = tf.sequence_mask(features["source_length"], SRC_LEN, tf.float32)
    memory, first = encode(features["source"], features["source_length"])
    if mode == tf.estimator.ModeKeys.PREDICT:
        tiled = Decoder(tf.repeat(memory, BEAM, axis=0), tf.repeat(mask, BEAM, axis=0))
        translated, scores = beam_search(tiled, first)
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"translated": translated, "scores": scores})
    logits = teacher_forced(Decoder(memory, mask), first, labels)
    soft = tf.one_hot(labels, VOCAB, on_value=1.0 - params["label_smoothing"], off_value=params["label_smoothing"] / (VOCAB - 1))
    losses = tf.nn.softmax_cross_entropy_with_logits_v2(labels=soft, logits=logits)
    weights = tf.to_float(tf.not_equal(labels, 0))
    loss = tf.reduce_sum(losses * weights) / tf.maximum(tf.reduce_sum(weights), 1.0)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=(get_metrics, [losses, labels, logits]))
    step = tf.cast(tf.train.get_or_create_global_step(), tf.float32)
    rate = params["learning_rate"] * tf.minimum(1.0, step / params["warmup_steps"]) * tf.rsqrt(tf.maximum(step, params["warmup_steps"]))
    opt = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9))
    gradients, variables = zip(*opt.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)
    train_op = opt.apply_gradients(zip(clipped, variables), tf.train.get_or_create_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def make_input_fn(prefix, vocab_file, is_training):
    def input_fn(params):
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(vocab_file, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER),
            num_oov_buckets=1,
        )

        def ids(line, length):
            words = tf.cast(table.lookup(tf.string_split([line]).values), tf.int32)[:length]  # <- TPU102
            count = tf.size(words)
            return tf.reshape(tf.pad(words, [[0, length - count]]), [length]), count

        def pair(source, target):
            source, length = ids(source, SRC_LEN)
            target, _ = ids(target, TGT_LEN)
            return {"source": source, "source_length": length}, target

        lines = (tf.data.TextLineDataset(prefix + each) for each in (".src", ".tgt"))
        dataset = tf.data.Dataset.zip(tuple(lines))
        if is_training:
            dataset = dataset.shuffle(1000).repeat()
        dataset = dataset.map(pair, num_parallel_calls=8)
        return dataset.batch(params["batch_size"], drop_remainder=True).prefetch(2)  # <- TPU218

    return input_fn


def write_corpus(data_dir):
    vocab = os.path.join(data_dir, "translation_vocab.txt")
    if not os.path.exists(vocab):
        words = ["<pad>", "<s>"] + ["w%d" % i for i in range(VOCAB - 3)]
        open(vocab, "w").write("\n".join(words) + "\n")
        random = np.random.RandomState(3)
        for ending, most in ((".src", SRC_LEN + 2), (".tgt", TGT_LEN)):
            with open(os.path.join(data_dir, "translation" + ending), "w") as f:
                for _ in range(128):
                    f.write(" ".join(random.choice(words[2:], random.randint(3, most))) + "\n")
    return os.path.join(data_dir, "translation"), vocab


def main(data_dir):
    prefix, vocab = write_corpus(data_dir)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model_fn,
        params=parse_hparams(HPARAMS),
        config=tf.estimator.tpu.RunConfig(
            model_dir="/tmp/translation", save_checkpoints_steps=500,
            tpu_config=tf.estimator.tpu.TPUConfig(500, per_host_input_for_training=2),
        ),
        train_batch_size=32, eval_batch_size=32, predict_batch_size=16,
    )  # fmt: skip
    return estimator, make_input_fn(prefix, vocab, True), {"eval_input_fn": make_input_fn(prefix, vocab, False)}


FAULTS = [
    ("TPU201", "    opt = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9))\n    gradients, variables = zip(*opt.compute_gradients(loss))\n    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)\n    train_op", "    opt = tf.train.AdamOptimizer(rate, 0.9, 0.98, 1e-9)\n    gradients, variables = zip(*opt.compute_gradients(loss))\n    clipped, _ = tf.clip_by_global_norm(gradients, 5.0)\n    train_op"),
    ("TPU102", "return tf.reshape(tf.pad(words, [[0, length - count]]), [length]), count", "return tf.pad(words, [[0, length - count]]), count"),
    ("TPU119", "return {\"source\": source, \"source_length\": length}, target", "return {\"source\": source, \"source_length\": length, \"line\": tf.constant(prefix)}, target"),
    ("TPU111", "(get_metrics, [losses, labels, logits])", "(lambda l, p: {\"loss\": tf.metrics.mean(l)}, [loss, logits])"),
    ("TPU218", "dataset = dataset.shuffle(1000).repeat()", "dataset = dataset.shuffle(1000)"),
    ("TPU112", "(get_metrics, [losses, labels, logits])", "(get_metrics, {\"losses\": losses, \"labels\": labels, \"logits\": logits})"),
]
