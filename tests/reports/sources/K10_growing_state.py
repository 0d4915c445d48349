import numpy as np
from ported import FAULTY, strategy, tf

replicas = strategy()
x = np.random.rand(512, 8).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices((x, x)).repeat().batch(64, drop_remainder=True)
with replicas.scope():
    weight = tf.Variable(0.9 * tf.eye(8))


def rollout(x):
    if FAULTY:
        path = x[:, None]
        for _ in tf.range(4):
            tf.autograph.experimental.set_loop_options(
                shape_invariants=[(path, tf.TensorShape([8, None, 8]))]
            )
            path = tf.concat([path, tf.matmul(path[:, -1], weight)[:, None]], 1)  # <- TPU302
        return path[:, -1]
    states = tf.TensorArray(tf.float32, 4, element_shape=[8, 8])
    for turn in tf.range(4):
        x = tf.matmul(x, weight)
        states = states.write(turn, x)
    return states.read(3)


roll = tf.function(rollout)


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(roll(x) - y)) / 8
    gradient = tape.gradient(loss, weight)
    weight.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("sum", gradient))
    return loss


@tf.function
def train(batch):
    return replicas.run(step, args=batch)


for batch in replicas.experimental_distribute_dataset(data):
    train(batch)
