"""A diffusion model of images: an object that holds model and settings, noise drawn on the cores, averaged weights.

model_fn is a bound method, its params are made into attributes; uint8 images are scaled on the core; the
host_call writes several steps' scalars; sampling by a loop on the device is what prediction does.
"""

import numpy as np
import tensorflow.compat.v1 as tf

SIDE, CHANNELS, STEPS = 8, 16, 20


def nin(x, name, num_units, init_scale=1.0):
    with tf.variable_scope(name):
        in_dim = int(x.shape[-1])
        w = tf.get_variable("W", [in_dim, num_units], initializer=tf.variance_scaling_initializer(max(init_scale, 1e-10), "fan_avg", "uniform"))
        b = tf.get_variable("b", [num_units], initializer=tf.zeros_initializer())
        return tf.tensordot(x, w, 1) + b


def timestep_embedding(timesteps, dim):
    half = dim // 2
    freqs = np.exp(np.arange(half, dtype=np.float32) * -(np.log(10000) / (half - 1)))
    args = tf.cast(timesteps, tf.float32)[:, None] * freqs[None, :]
    return tf.concat([tf.sin(args), tf.cos(args)], axis=1)


def normalize(x, name):
    with tf.variable_scope(name):
        b, h, w, c = x.shape.as_list()
        grouped = tf.reshape(x, [b, h, w, 4, c // 4])
        mean, var = tf.nn.moments(grouped, [1, 2, 4], keepdims=True)
        x = tf.reshape((grouped - mean) * tf.rsqrt(var + 1e-6), [b, h, w, c])
        return x * tf.get_variable("g", [c], initializer=tf.ones_initializer()) + tf.get_variable("b", [c], initializer=tf.zeros_initializer())


def unet(x, t, dropout):
    with tf.variable_scope("model", reuse=tf.AUTO_REUSE):
        temb = tf.nn.swish(nin(timestep_embedding(t, CHANNELS), "dense0", CHANNELS))
        h = nin(x, "in", CHANNELS)
        skips = []
        for level in range(2):
            h = h + nin(tf.nn.swish(normalize(h, "norm_%d" % level)), "block_%d" % level, CHANNELS)
            h = h + nin(temb, "temb_%d" % level, CHANNELS)[:, None, None, :]
            h = tf.nn.dropout(h, rate=dropout) if dropout else h
            skips.append(h)
            h = tf.nn.avg_pool(h, 2, 2, "SAME")
        for level in reversed(range(2)):
            b, hh, ww, c = h.shape.as_list()
            h = tf.image.resize_nearest_neighbor(h, [hh * 2, ww * 2])
            h = nin(tf.concat([h, skips[level]], -1), "up_%d" % level, CHANNELS)
        return nin(tf.nn.swish(normalize(h, "norm_out")), "out", 3, init_scale=0.0)


class GaussianDiffusion(object):
    def __init__(self, betas):
        assert isinstance(betas, np.ndarray)
        self.betas = betas.astype(np.float64)
        self.alphas_cumprod = np.cumprod(1.0 - self.betas)

    @staticmethod
    def _extract(a, t, x_shape):
        out = tf.gather(tf.convert_to_tensor(a, dtype=tf.float32), t)
        return tf.reshape(out, [x_shape[0]] + (len(x_shape) - 1) * [1])

    def q_sample(self, x_start, t, noise):
        shape = x_start.shape.as_list()
        return self._extract(np.sqrt(self.alphas_cumprod), t, shape) * x_start + self._extract(np.sqrt(1.0 - self.alphas_cumprod), t, shape) * noise

    def sample_loop(self, denoise, shape):
        alphas = tf.constant(1.0 - self.betas, tf.float32)
        totals = tf.constant(self.alphas_cumprod, tf.float32)

        def body(i, x):
            t = tf.fill([shape[0]], i)
            eps = denoise(x, t)
            mean = (x - (1 - alphas[i]) / tf.sqrt(1 - totals[i]) * eps) / tf.sqrt(alphas[i])
            noise = tf.random_normal(shape) * tf.cast(i > 0, tf.float32)
            return i - 1, mean + tf.sqrt(1 - alphas[i]) * noise

        _, final = tf.while_loop(lambda i, _: tf.greater_equal(i, 0), body, [tf.constant(len(self.betas) - 1), tf.random_normal(shape)], back_prop=False)
        return final


class TrainModel(object):
    def __init__(self, lr, warmup, grad_clip, ema_decay):
        self.lr, self.warmup, self.grad_clip, self.ema_decay = lr, warmup, grad_clip, ema_decay
        self.diffusion = GaussianDiffusion(np.linspace(1e-4, 0.02, STEPS))

    def model_fn(self, features, labels, mode, params):
        del labels
        local_bs = params["batch_size"]
        if mode == tf.estimator.ModeKeys.PREDICT:
            samples = self.diffusion.sample_loop(lambda x, t: unet(x, t, 0.0), [local_bs, SIDE, SIDE, 3])
            return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"samples": samples, "like": tf.cast(features["image"], tf.float32)})
        x = tf.cast(features["image"], tf.float32) / 127.5 - 1.0
        assert x.shape[0] == local_bs
        t = tf.random_uniform([local_bs], 0, STEPS, dtype=tf.int32)
        noise = tf.random_normal(x.shape)
        predicted = unet(self.diffusion.q_sample(x, t, noise), t, 0.1 if mode == tf.estimator.ModeKeys.TRAIN else 0.0)
        losses = tf.reduce_mean(tf.squared_difference(noise, predicted), axis=[1, 2, 3])
        loss = tf.reduce_mean(losses)
        if mode == tf.estimator.ModeKeys.EVAL:
            return tf.estimator.tpu.TPUEstimatorSpec(
                mode, loss=loss, eval_metrics=(lambda bpd: {"bpd": tf.metrics.mean(bpd)}, [losses])
            )
        global_step = tf.train.get_or_create_global_step()
        warmed = tf.minimum(tf.cast(global_step, tf.float32) / self.warmup, 1.0) if self.warmup else 1.0
        optimizer = tf.train.AdamOptimizer(self.lr * warmed)
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        trainable = tf.trainable_variables()
        grads = tf.gradients(loss, trainable)
        grads, gnorm = tf.clip_by_global_norm(grads, self.grad_clip)
        train_op = optimizer.apply_gradients(zip(grads, trainable), global_step=global_step)  # <- TPU201
        ema = tf.train.ExponentialMovingAverage(decay=self.ema_decay)
        with tf.control_dependencies([train_op]):
            train_op = ema.apply(trainable)  # <- TPU215
        tensors = {"train/loss": loss, "train/gnorm": gnorm, "train/lr": self.lr * warmed}
        return tf.estimator.tpu.TPUEstimatorSpec(mode, host_call=self.host_call(tensors, global_step), loss=loss, train_op=train_op)  # <- TPU111

    def host_call(self, scalars, global_step):
        names = sorted(scalars)

        def fn(gs, *values):
            step = tf.reduce_mean(tf.cast(gs, tf.float32))
            with tf2_writer("/tmp/diffusion").as_default():
                for name, value in zip(names, values):
                    tf.compat.v2.summary.scalar(name, tf.reduce_mean(value), step=tf.cast(step, tf.int64))
                return tf.summary.all_v2_summary_ops()

        as_vectors = [tf.reshape(tf.cast(scalars[name], tf.float32), [1]) for name in names]
        return fn, [tf.reshape(global_step, [1])] + as_vectors


def tf2_writer(logdir):
    return tf.compat.v2.summary.create_file_writer(logdir, max_queue=1000)


def train_input_fn(params):
    random = np.random.RandomState(0)
    images = random.randint(0, 255, (96, SIDE, SIDE, 3), dtype=np.uint8)
    labels = random.randint(0, 10, 96).astype(np.int32)
    ds = tf.data.Dataset.from_tensor_slices({"image": images, "label": labels})
    ds = ds.map(lambda each: {"image": tf.image.random_flip_left_right(each["image"]), "label": each["label"]})
    return ds.shuffle(96).repeat().batch(params["batch_size"], drop_remainder=True).prefetch(tf.data.experimental.AUTOTUNE)


def main(data_dir):
    model = TrainModel(lr=2e-4, warmup=500, grad_clip=1.0, ema_decay=0.999)
    estimator = tf.estimator.tpu.TPUEstimator(
        model_fn=model.model_fn,
        use_tpu=True,
        config=tf.estimator.tpu.RunConfig(
            cluster=None,
            model_dir="/tmp/diffusion",
            session_config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=False),
            tpu_config=tf.estimator.tpu.TPUConfig(iterations_per_loop=100, num_shards=None),
            save_checkpoints_secs=1600,
            save_summary_steps=100,
        ),
        train_batch_size=32,
        predict_batch_size=16,
    )
    return estimator, train_input_fn


FAULTS = [
    ("TPU201", "        optimizer = tf.tpu.CrossShardOptimizer(optimizer)\n", ""),
    ("TPU111", "tf.reshape(tf.cast(scalars[name], tf.float32), [1]) for name", "tf.cast(scalars[name], tf.float32) for name"),
    ("TPU215", "apply_gradients(zip(grads, trainable), global_step=global_step)", "apply_gradients(zip(grads, trainable))"),
    ("TPU101", ".batch(params[\"batch_size\"], drop_remainder=True).prefetch", ".batch(params[\"batch_size\"]).prefetch"),
    ("TPU103", "def train_input_fn(params):\n", "def train_input_fn():\n    params = {\"batch_size\": 32}\n"),
    ("TPU122", "predictions={\"samples\": samples, \"like\": tf.cast(features[\"image\"], tf.float32)}", "predictions=samples"),
]
