import numpy as np
from ported import FAULTY, strategy, tf

replicas = strategy()
x = np.random.rand(512, 8, 8, 1).astype(np.float32)
data = tf.data.Dataset.from_tensor_slices((x, np.full([512], 16, np.int32))).repeat()
data = data.batch(64, drop_remainder=True)
with replicas.scope():
    scale = tf.Variable(1.0)


def step(x, size):
    side = size[0] if FAULTY else 16
    with tf.GradientTape() as tape:
        large = tf.image.resize(x * scale, [side, side], method="nearest")  # <- TPU301
        loss = tf.reduce_mean(tf.square(large)) / replicas.num_replicas_in_sync
    gradient = tape.gradient(loss, scale)
    gradient = tf.distribute.get_replica_context().all_reduce("sum", gradient)
    scale.assign_sub(0.1 * gradient)
    return loss


@tf.function
def train(batch):
    return replicas.run(step, args=batch)


for batch in replicas.experimental_distribute_dataset(data):
    train(batch)
