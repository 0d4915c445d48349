from ported import FAULTY, estimator, logits_of, loss_of, minimize, tpu, train_input, v1


def model_fn(features, labels, mode, params):
    loss = loss_of(labels, logits_of(features))
    hooks = []
    if FAULTY:
        hooks.append(v1.train.LoggingTensorHook({"loss": loss}, every_n_iter=50))  # <- TPU115
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss), training_hooks=hooks)


estimator(model_fn).train(train_input, max_steps=100)
