from ported import FAULTY, config, model_fn, tpu, train_input

settings = {"width": 16, "learning_rate": 0.1}
if FAULTY:
    settings["batch_size"] = None
port = tpu.TPUEstimator(  # <- TPU105
    model_fn,
    config=config(),
    use_tpu=False,
    params=settings,
    train_batch_size=64,
)
port.train(train_input, max_steps=100)
