"""Mistakes that show when input batches are read: TPU5xx."""

import time

from rules import Port, parts, wrong
from rules.parts import tf


def _port(input_fn):
    return Port(parts.estimator(eval_batch_size=None), input_fn)


def _rows(slow_row):
    """An input_fn whose examples each pass through `slow_row` in Python, where there is one."""

    def input_fn(params):
        dataset = parts.examples()
        if slow_row:
            dataset = dataset.map(
                lambda row, label: (tf.numpy_function(slow_row, [row], tf.float32), label)
            )
        return dataset.repeat().batch(params["batch_size"], drop_remainder=True)

    return _port(input_fn)


def _waits(row):
    time.sleep(0.02)  # at most 50 rows/s
    return row


@wrong("TPU501")
def rows_one_at_a_time(wrong):
    return _rows(_waits if wrong else None)


@wrong("TPU502")
def rows_too_slow_on_a_busy_machine(wrong):
    return _rows(_waits if wrong else None)


@wrong("TPU503")
def generator_that_raises(wrong):
    def rows():
        for number in range(1000):
            if wrong and number == 40:
                raise ValueError("row 40 has 15 numbers")  # <- TPU503
            yield [1.0] * parts.SIZE, number % parts.CLASSES

    def input_fn(params):
        signature = (tf.TensorSpec([parts.SIZE]), tf.TensorSpec([], tf.int32))
        dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)
        return dataset.repeat().batch(params["batch_size"], drop_remainder=True)

    return _port(input_fn)


@wrong("TPU504")
def fewer_examples_than_a_batch(wrong):
    def input_fn(params):
        dataset = parts.examples(60)
        if not wrong:
            dataset = dataset.repeat()
        return dataset.batch(params["batch_size"], drop_remainder=True).repeat()

    return _port(input_fn)
