from ported import FAULTY, arrays, strategy, tf

# Some random weights, and a smaller penalty, keep the difference within the tolerance for losses.
tf.keras.utils.set_random_seed(1)
tpus = strategy()
data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(512).batch(64, drop_remainder=True)
with tpus.scope():
    penalty = tf.keras.regularizers.L2(0.02)
    layer = tf.keras.layers.Dense(8, kernel_regularizer=penalty)
    model = tf.keras.Sequential([tf.keras.Input([8]), layer])
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)


def step(x, y):
    with tf.GradientTape() as tape:
        costs = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        loss = tf.nn.compute_average_loss(costs, global_batch_size=64)
        if FAULTY:
            loss += tf.add_n(model.losses)  # <- TPU403
        else:
            loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def train(batch):
    return tpus.run(step, args=batch)


for batch in tpus.experimental_distribute_dataset(data):
    train(batch)
