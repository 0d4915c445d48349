from ported import FAULTY, strategy, tf

picture = tf.io.encode_jpeg(tf.zeros([8, 8, 3], tf.uint8))
replicas = strategy()
with replicas.scope():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(4)])
    model.build([None, 8, 8, 3])
    optimizer = tf.keras.optimizers.SGD(0.1)


def decoded(bytes):
    return tf.ensure_shape(tf.io.decode_jpeg(bytes, channels=3), [8, 8, 3])


data = tf.data.Dataset.from_tensors((picture, 1)).repeat(640)
if not FAULTY:
    data = data.map(lambda bytes, label: (decoded(bytes), label))
data = data.batch(64, drop_remainder=True)


def step(pictures, labels):
    if FAULTY:
        pictures = tf.map_fn(decoded, pictures, tf.uint8)
    with tf.GradientTape() as tape:
        logits = model(tf.cast(pictures, tf.float32))
        costs = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.nn.compute_average_loss(costs, global_batch_size=64)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def train(batch):
    return replicas.run(step, args=batch)  # <- TPU119


for batch in replicas.experimental_distribute_dataset(data):
    train(batch)
