from ported import FAULTY, config, model_fn, predict_input, tpu, train_input

port = tpu.TPUEstimator(  # <- TPU107
    model_fn,
    config=config(),
    use_tpu=True,
    train_batch_size=64,
    predict_batch_size=None if FAULTY else 64,
)
port.train(train_input, max_steps=100)
print(len(list(port.predict(predict_input))))
