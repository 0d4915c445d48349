from ported import FAULTY, estimator, train_input

limit = {} if FAULTY else {"max_steps": 100}
estimator().train(train_input, **limit)  # <- TPU132
