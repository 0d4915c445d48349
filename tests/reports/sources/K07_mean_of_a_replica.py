from ported import FAULTY, arrays, strategy, tf

replicas = strategy()
data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(512).batch(64, drop_remainder=True)
with replicas.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(8, input_shape=[8])])
    optimizer = tf.keras.optimizers.SGD(0.1)


def step(x, y):
    with tf.GradientTape() as tape:
        costs = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        loss = tf.reduce_mean(costs)
        if not FAULTY:
            loss = tf.nn.compute_average_loss(costs, global_batch_size=64)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))  # <- TPU403
    return loss


@tf.function
def train(batch):
    return replicas.run(step, args=batch)


for batch in replicas.experimental_distribute_dataset(data):
    train(batch)
