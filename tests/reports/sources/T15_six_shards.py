from ported import FAULTY, config, model_fn, tpu, train_input

shards = {"num_shards": 6 if FAULTY else 8}
port = tpu.TPUEstimator(
    model_fn, config=config(**shards), use_tpu=True, train_batch_size=6 if FAULTY else 8
)
port.train(train_input, max_steps=100)
