"""Question answering: training and prediction, and no evaluation branch at all."""

import numpy as np
import tensorflow.compat.v1 as tf

from programs import records

LENGTH, VOCAB, HIDDEN = 12, 40, 16


def create_model(input_ids, segment_ids, input_mask, is_training):
    table = tf.get_variable("word_embeddings", [VOCAB, HIDDEN])
    types = tf.get_variable("type_embeddings", [2, HIDDEN])
    x = tf.gather(table, tf.reshape(input_ids, [-1]))
    x = tf.reshape(x, [-1, LENGTH, HIDDEN]) + tf.gather(types, segment_ids)
    x = tf.layers.dropout(x, 0.1, training=is_training)
    query, key, value = tf.split(tf.layers.dense(x, 3 * HIDDEN), 3, -1)
    adder = (1.0 - tf.cast(tf.expand_dims(input_mask, 1), tf.float32)) * -10000.0
    final_hidden = tf.matmul(tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / 4.0 + adder), value) + x
    batch_size, seq_length, hidden_size = final_hidden.shape.as_list()
    output_weights = tf.get_variable(
        "cls/squad/output_weights", [2, hidden_size], initializer=tf.truncated_normal_initializer(stddev=0.02)
    )
    output_bias = tf.get_variable("cls/squad/output_bias", [2], initializer=tf.zeros_initializer())
    final_hidden_matrix = tf.reshape(final_hidden, [batch_size * seq_length, hidden_size])
    logits = tf.matmul(final_hidden_matrix, output_weights, transpose_b=True)
    logits = tf.nn.bias_add(logits, output_bias)
    logits = tf.transpose(tf.reshape(logits, [batch_size, seq_length, 2]), [2, 0, 1])
    unstacked_logits = tf.unstack(logits, axis=0)
    return unstacked_logits[0], unstacked_logits[1]


def model_fn_builder(learning_rate, use_tpu):
    def model_fn(features, labels, mode, params):
        unique_ids = features["unique_ids"]
        is_training = mode == tf.estimator.ModeKeys.TRAIN
        start_logits, end_logits = create_model(
            features["input_ids"], features["segment_ids"], features["input_mask"], is_training
        )
        if mode == tf.estimator.ModeKeys.TRAIN:
            seq_length = LENGTH

            def compute_loss(logits, positions):
                one_hot_positions = tf.one_hot(positions, depth=seq_length, dtype=tf.float32)
                log_probs = tf.nn.log_softmax(logits, axis=-1)
                return -tf.reduce_mean(tf.reduce_sum(one_hot_positions * log_probs, axis=-1))

            start_loss = compute_loss(start_logits, features["start_positions"])
            end_loss = compute_loss(end_logits, features["end_positions"])
            total_loss = (start_loss + end_loss) / 2.0
            optimizer = tf.train.AdamOptimizer(learning_rate)
            if use_tpu:
                optimizer = tf.tpu.CrossShardOptimizer(optimizer)
            train_op = optimizer.minimize(total_loss, tf.train.get_global_step())  # <- TPU201
            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, loss=total_loss, train_op=train_op)
        elif mode == tf.estimator.ModeKeys.PREDICT:
            predictions = {
                "unique_ids": unique_ids,
                "start_logits": start_logits,
                "end_logits": end_logits,
            }
            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)
        else:
            raise ValueError("Only TRAIN and PREDICT modes are supported: %s" % (mode))

    return model_fn


def input_fn_builder(input_file, seq_length, is_training, drop_remainder):
    name_to_features = {
        "unique_ids": tf.FixedLenFeature([], tf.int64),
        "input_ids": tf.FixedLenFeature([seq_length], tf.int64),
        "input_mask": tf.FixedLenFeature([seq_length], tf.int64),
        "segment_ids": tf.FixedLenFeature([seq_length], tf.int64),
    }
    if is_training:
        name_to_features["start_positions"] = tf.FixedLenFeature([], tf.int64)
        name_to_features["end_positions"] = tf.FixedLenFeature([], tf.int64)

    def _decode_record(record, name_to_features):
        example = tf.parse_single_example(record, name_to_features)  # <- TPU102
        for name in list(example.keys()):
            t = example[name]
            if t.dtype == tf.int64:
                t = tf.to_int32(t)
            example[name] = t
        return example

    def input_fn(params):
        batch_size = params["batch_size"]
        d = tf.data.TFRecordDataset(input_file)
        if is_training:
            d = d.repeat()
            d = d.shuffle(buffer_size=100)
        d = d.map(lambda record: _decode_record(record, name_to_features))  # <- TPU128
        d = d.batch(batch_size=batch_size, drop_remainder=drop_remainder)
        return d

    return input_fn


def example(random):
    return {
        "unique_ids": random.randint(1000),
        "input_ids": random.randint(0, VOCAB, LENGTH),
        "input_mask": np.ones(LENGTH, int),
        "segment_ids": random.randint(0, 2, LENGTH),
        "start_positions": random.randint(0, LENGTH),
        "end_positions": random.randint(0, LENGTH),
    }


def main(data_dir):
    train_file = records.write(f"{data_dir}/squad_train.tf_record", 60, example)
    predict_file = records.write(f"{data_dir}/squad_eval.tf_record", 30, example)
    run_config = tf.estimator.tpu.RunConfig(
        model_dir="/tmp/squad",
        tpu_config=tf.estimator.tpu.TPUConfig(
            iterations_per_loop=1000,
            num_shards=8,
            per_host_input_for_training=tf.estimator.tpu.InputPipelineConfig.PER_HOST_V2,
        ),
    )
    estimator = tf.estimator.tpu.TPUEstimator(
        use_tpu=True,
        model_fn=model_fn_builder(5e-5, True),
        config=run_config,
        train_batch_size=16,
        eval_batch_size=8,
        predict_batch_size=8,
    )
    return (
        estimator,
        input_fn_builder(train_file, LENGTH, True, drop_remainder=True),
        {"predict_input_fn": input_fn_builder(predict_file, LENGTH, False, drop_remainder=False)},
    )


FAULTS = [
    ("TPU201", "            if use_tpu:\n                optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU122", "            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=predictions)", "            return tf.estimator.tpu.TPUEstimatorSpec(mode=mode, predictions=start_logits)"),
    ("TPU102", "        \"input_mask\": tf.FixedLenFeature([seq_length], tf.int64),", "        \"input_mask\": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),"),
    ("TPU128", "        \"segment_ids\": tf.FixedLenFeature([seq_length], tf.int64),", "        \"segment_ids\": tf.VarLenFeature(tf.int64),"),
    ("TPU204", "\"unique_ids\": unique_ids,\n", "\"unique_ids\": tf.as_string(unique_ids),\n"),
]
