from ported import FAULTY, arrays, strategy, tf

tpus = strategy()
data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(512).batch(64, drop_remainder=True)
if FAULTY:
    mean = tf.keras.metrics.Mean()  # <- TPU230
with tpus.scope():
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(8)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)
    if not FAULTY:
        mean = tf.keras.metrics.Mean()


def step(x, y):
    with tf.GradientTape() as tape:
        costs = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x))
        loss = tf.nn.compute_average_loss(costs, global_batch_size=64)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    mean.update_state(costs)


@tf.function
def train(batch):
    tpus.run(step, args=batch)


for batch in tpus.experimental_distribute_dataset(data):
    train(batch)
print(mean.result())
