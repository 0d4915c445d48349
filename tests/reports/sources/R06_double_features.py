import numpy as np
from ported import FAULTY, strategy, tf

rows = np.random.rand(512, 8)
if not FAULTY:
    rows = rows.astype(np.float32)
replicas = strategy()
data = tf.data.Dataset.from_tensor_slices((rows, rows[:, 0])).batch(64, drop_remainder=True)
with replicas.scope():
    weight = tf.Variable(tf.zeros([8, 1], rows.dtype))


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square((x @ weight)[:, 0] - y)) / 64  # <- TPU208
    gradient = tape.gradient(loss, weight)
    weight.assign_sub(0.1 * tf.distribute.get_replica_context().all_reduce("sum", gradient))
    return loss


@tf.function
def train(batch):
    return replicas.run(step, args=batch)


for batch in replicas.experimental_distribute_dataset(data):
    train(batch)
