from ported import FAULTY, estimator, logits_of, loss_of, minimize, tpu, train_input, v1


def model_fn(features, labels, mode, params):
    loss = loss_of(labels, logits_of(features))
    hooks = []
    if FAULTY:
        v1.summary.scalar("loss", loss)
        merged = v1.summary.merge_all()
        saver = v1.train.SummarySaverHook(9, output_dir="/none", summary_op=merged)  # <- TPU115
        hooks.append(saver)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=minimize(loss), training_hooks=hooks)


estimator(model_fn).train(train_input, max_steps=100)
