from ported import FAULTY, model_fn, tf, tpu, train_input

folder = "runs/first" if FAULTY else "gs://our-bucket/runs/first"
resolver = tf.distribute.cluster_resolver.TPUClusterResolver("grpc://10.0.0.2:8470")
config = tpu.RunConfig(
    cluster=resolver,
    model_dir=folder,  # <- TPU237
    tpu_config=tpu.TPUConfig(iterations_per_loop=100),
)
port = tpu.TPUEstimator(model_fn, config=config, use_tpu=True, train_batch_size=64)
port.train(train_input, max_steps=1000)
