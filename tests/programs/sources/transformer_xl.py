"""A language model with memory that trains only, though eval_batch_size is set by habit."""

import argparse

import numpy as np
import tensorflow.compat.v1 as tf

FLAGS = argparse.Namespace(
    train_batch_size=32,
    eval_batch_size=32,
    iterations=200,
    save_steps=10000,
    tgt_len=8,
    d_model=16,
    n_head=2,
    n_token=40,
    clip=0.25,
    learning_rate=2.5e-4,
    min_lr_ratio=0.004,
    warmup_steps=0,
    train_steps=100000,
    untie_r=False,
)


def rel_shift(x):
    x_size = tf.shape(x)
    x = tf.pad(x, [[0, 0], [1, 0], [0, 0], [0, 0]])
    x = tf.reshape(x, [x_size[1] + 1, x_size[0], x_size[2], x_size[3]])
    x = tf.slice(x, [1, 0, 0, 0], [-1, -1, -1, -1])
    return tf.reshape(x, x_size)


def positional_embedding(length, d_model):
    pos_seq = tf.range(length - 1, -1, -1.0)
    inv_freq = 1 / (10000 ** (tf.range(0, d_model, 2.0) / d_model))
    sinusoid = tf.einsum("i,j->ij", pos_seq, inv_freq)
    return tf.concat([tf.sin(sinusoid), tf.cos(sinusoid)], -1)[:, None, :]


def rel_attention(w, r, d_model, n_head, r_w_bias, r_r_bias, is_training):
    scale = 1 / ((d_model // n_head) ** 0.5)
    qlen, bsz = w.shape.as_list()[:2]
    w_heads = tf.layers.dense(w, 3 * d_model, use_bias=False, name="qkv")
    r_head_k = tf.layers.dense(r, d_model, use_bias=False, name="r")
    q, k, v = (tf.reshape(x, [qlen, bsz, n_head, -1]) for x in tf.split(w_heads, 3, -1))
    r_head_k = tf.reshape(r_head_k, [qlen, n_head, d_model // n_head])
    AC = tf.einsum("ibnd,jbnd->ijbn", q + r_w_bias, k)
    BD = rel_shift(tf.einsum("ibnd,jnd->ijbn", q + r_r_bias, r_head_k))
    attn_mask = tf.linalg.band_part(tf.ones([qlen, qlen]), 0, -1) - tf.linalg.band_part(tf.ones([qlen, qlen]), 0, 0)
    score = (AC + BD) * scale
    score = score * (1 - attn_mask[:, :, None, None]) - 1e30 * attn_mask[:, :, None, None]
    prob = tf.layers.dropout(tf.nn.softmax(score, 1), 0.1, training=is_training)
    vec = tf.reshape(tf.einsum("ijbn,jbnd->ibnd", prob, v), [qlen, bsz, d_model])
    return tf.layers.dense(vec, d_model, use_bias=False, name="o") + w


def get_model_fn():
    def model_fn(features, labels, mode, params):
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        if not is_training:
            raise ValueError("this program trains only")
        inp = tf.transpose(features["inputs"], [1, 0])
        tgt = tf.transpose(features["labels"], [1, 0])
        d_model, n_head = FLAGS.d_model, FLAGS.n_head
        initializer = tf.initializers.random_normal(stddev=0.02, seed=None)
        with tf.variable_scope("transformer", initializer=initializer):
            lookup_table = tf.get_variable("lookup_table", [FLAGS.n_token, d_model])
            embeddings = tf.einsum("ibn,nd->ibd", tf.one_hot(inp, FLAGS.n_token), lookup_table)
            biases = [tf.get_variable(name, [n_head, d_model // n_head]) for name in ("r_w_bias", "r_r_bias")]
            pos_emb = positional_embedding(FLAGS.tgt_len, d_model)
            output = rel_attention(embeddings, pos_emb, d_model, n_head, *biases, is_training)
            output = tf.layers.dense(output, d_model, tf.nn.relu, name="ff")
            output = tf.keras.layers.LayerNormalization(name="ln")(output)
            bias = tf.get_variable("bias", [FLAGS.n_token], initializer=tf.zeros_initializer())
            logits = tf.einsum("ibd,nd->ibn", output, lookup_table) + bias
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tgt, logits=logits)
        total_loss = tf.reduce_mean(loss)

        num_params = sum([np.prod(v.shape) for v in tf.trainable_variables()])
        tf.logging.info("#params: {}".format(num_params))
        all_vars = tf.trainable_variables()
        global_step = tf.train.get_or_create_global_step()
        decay_lr = tf.train.cosine_decay(
            FLAGS.learning_rate,
            global_step=global_step - FLAGS.warmup_steps,
            decay_steps=FLAGS.train_steps - FLAGS.warmup_steps,
            alpha=FLAGS.min_lr_ratio,
        )
        learning_rate = tf.where(global_step < FLAGS.warmup_steps, 0.0, decay_lr)
        optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(learning_rate=learning_rate))
        grads = tf.gradients(total_loss, all_vars)
        clipped, gnorm = tf.clip_by_global_norm(grads, FLAGS.clip)
        train_op = optimizer.apply_gradients(list(zip(clipped, all_vars)), global_step=global_step)  # <- TPU201
        return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=total_loss, train_op=train_op)

    return model_fn


def get_input_fn(split, tgt_len):
    def input_fn(params):
        batch_size = params["batch_size"]
        tf.logging.info("[{}] batch size {}".format(split, batch_size))
        data = np.random.RandomState(0).randint(0, FLAGS.n_token, [4096]).astype(np.int32)
        rows = data[: len(data) // (tgt_len + 1) * (tgt_len + 1)].reshape([-1, tgt_len + 1])
        dataset = tf.data.Dataset.from_tensor_slices({"inputs": rows[:, :-1], "labels": rows[:, 1:]})
        dataset = dataset.shuffle(512)
        dataset = dataset.cache().repeat()
        dataset = dataset.batch(batch_size, drop_remainder=True)  # <- TPU218
        return dataset.prefetch(params["prefetch"])

    return input_fn


def main(data_dir):
    tpu_config = tf.estimator.tpu.TPUConfig(
        iterations_per_loop=FLAGS.iterations,
        per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
    )
    run_config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/xl",
        session_config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=True),
        tpu_config=tpu_config,
        save_checkpoints_steps=FLAGS.save_steps,
    )
    estimator = tf.estimator.tpu.TPUEstimator(  # <- TPU105
        model_fn=get_model_fn(),
        use_tpu=True,
        config=run_config,
        params={"prefetch": 2},
        train_batch_size=FLAGS.train_batch_size,  # <- TPU106
        eval_batch_size=FLAGS.eval_batch_size,
    )
    return estimator, get_input_fn("train", FLAGS.tgt_len)


FAULTS = [
    ("TPU201", "tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(learning_rate=learning_rate))", "tf.train.AdamOptimizer(learning_rate=learning_rate)"),
    ("TPU105", "params={\"prefetch\": 2},", "params={\"prefetch\": 2, \"batch_size\": 32},"),
    ("TPU106", "    train_batch_size=32,\n", "    train_batch_size=30,\n"),
    ("TPU205", "        total_loss = tf.reduce_mean(loss)\n", "        total_loss = tf.reduce_mean(tf.Print(loss, [loss]))\n"),
    ("TPU218", "        dataset = dataset.cache().repeat()\n", "        dataset = dataset.cache()\n"),
]
