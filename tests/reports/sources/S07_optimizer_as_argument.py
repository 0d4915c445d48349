from ported import FAULTY, arrays, strategy, tf

tpus = strategy()
data = tf.data.Dataset.from_tensor_slices(arrays()).shuffle(512).batch(64, drop_remainder=True)


class Trainer:
    def __init__(self):
        with tpus.scope():
            self.model = tf.keras.Sequential([tf.keras.Input([8]), tf.keras.layers.Dense(8)])
            self.optimizer = tf.keras.optimizers.SGD(0.1)
            self.optimizer.build(self.model.trainable_variables)

    def step(self, optimizer, x, y):
        with tf.GradientTape() as tape:
            costs = tf.nn.sparse_softmax_cross_entropy_with_logits(y, self.model(x))
            loss = tf.nn.compute_average_loss(costs, global_batch_size=64)
        gradients = tape.gradient(loss, self.model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
        return loss

    def step_of_mine(self, x, y):
        return self.step(self.optimizer, x, y)

    @tf.function
    def train(self, x, y):
        if FAULTY:
            return tpus.run(self.step, args=(self.optimizer, x, y))
        return tpus.run(self.step_of_mine, args=(x, y))


trainer = Trainer()
for x, y in tpus.experimental_distribute_dataset(data):
    trainer.train(x, y)
