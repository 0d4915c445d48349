from ported import FAULTY, arrays, strategy, tf

tpus = strategy()
data = tf.data.Dataset.from_tensor_slices(arrays()).batch(64, drop_remainder=True)
with tpus.scope():
    model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(8)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)


def step(features, labels):
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, model(features))
        loss = tf.nn.compute_average_loss(losses, global_batch_size=64)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def train(features, labels):
    return tpus.run(step, args=(features, labels))  # <- TPU234


if not FAULTY:
    train = tf.function(train)
for _ in range(2):
    for features, labels in tpus.experimental_distribute_dataset(data):
        train(features, labels)
