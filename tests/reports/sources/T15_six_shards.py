from ported import FAULTY, logits_of, spec, tpu, train_input


def model_fn(features, labels, mode, params):
    return spec(mode, labels, logits_of(features))


shards = {"num_shards": 6 if FAULTY else 8}
settings = tpu.TPUConfig(iterations_per_loop=10, **shards)  # <- TPU129
port = tpu.TPUEstimator(
    model_fn,
    config=tpu.RunConfig(tpu_config=settings),
    use_tpu=True,
    train_batch_size=6 if FAULTY else 8,
)
port.train(train_input, max_steps=100)
