"""Windows line ends; a class; predictions."""
import numpy as np
import tensorflow
from tensorflow.python.estimator import estimator as estimator_lib


class Job:
    def __init__(self, rate):
        self.rate = rate

    def model_fn(self, features, labels, mode):
        logits = tensorflow.layers.dense(features, 2)
        if mode == tensorflow.estimator.ModeKeys.PREDICT:
            return tensorflow.estimator.EstimatorSpec(mode, predictions={"logits": logits})
        loss = tensorflow.losses.softmax_cross_entropy(labels, logits)
        op = tensorflow.train.RMSPropOptimizer(self.rate).minimize(
            loss, global_step=tensorflow.train.get_global_step())
        return tensorflow.estimator.EstimatorSpec(mode, loss=loss, train_op=op)

    def read(self):
        rows = np.zeros([96, 3], np.float32), np.zeros([96, 2], np.float32)
        return tensorflow.data.Dataset.from_tensor_slices(rows).repeat().batch(48)

    def run(self):
        made = estimator_lib.Estimator(self.model_fn)
        made.train(input_fn=self.read, steps=10)


Job(0.1).run()
