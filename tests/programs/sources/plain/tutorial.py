"""A digits classifier as the tutorials of 2018 wrote it: batch size in params, metrics in a dict."""
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.WARN)


def cnn_model_fn(features, labels, mode, params):
  """Model function for CNN."""
  net = tf.reshape(features["x"], [-1, 8, 8, 1])
  net = tf.layers.conv2d(inputs=net, filters=8, kernel_size=[5, 5], padding="same", activation=tf.nn.relu)
  net = tf.layers.max_pooling2d(inputs=net, pool_size=[2, 2], strides=2)
  logits = tf.layers.dense(inputs=tf.layers.flatten(net), units=10)
  predictions = {"classes": tf.argmax(logits, axis=1, output_type=tf.int32)}
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(mode=mode, predictions=predictions)

  # Calculate Loss (for both TRAIN and EVAL modes)
  loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
  if mode == tf.estimator.ModeKeys.TRAIN:
    optimizer = tf.train.GradientDescentOptimizer(learning_rate=params["rate"])
    train_op = optimizer.minimize(loss=loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode=mode, loss=loss, train_op=train_op)

  classes = predictions["classes"]
  eval_metric_ops = {"accuracy": tf.metrics.accuracy(labels=labels, predictions=classes)}
  return tf.estimator.EstimatorSpec(mode=mode, loss=loss, eval_metric_ops=eval_metric_ops)


def train_input_fn():
  data = tf.data.Dataset.from_tensor_slices(({"x": np.zeros([300, 64], np.float32)}, np.zeros([300], np.int32)))
  return data.shuffle(300).repeat().batch(100)  # the tutorial's


def eval_input_fn():
  data = tf.data.Dataset.from_tensor_slices(({"x": np.zeros([304, 64], np.float32)}, np.zeros([304], np.int32)))
  return data.batch(100)


def main(unused_argv):
  classifier = tf.estimator.Estimator(
      model_fn=cnn_model_fn, model_dir="/tmp/mnist_convnet_model", params={"rate": 0.001})
  classifier.train(input_fn=train_input_fn, steps=200)
  print(classifier.evaluate(input_fn=eval_input_fn, steps=2))


if __name__ == "__main__":
  tf.app.run()
