from ported import FAULTY, config, logits_of, predict_input, tpu


def model_fn(features, labels, mode, params):
    return tpu.TPUEstimatorSpec(mode, predictions={"vector": logits_of(features)})


sizes = {"predict_batch_size": 64}
if not FAULTY:
    sizes["train_batch_size"] = 64  # never used, and needed all the same
port = tpu.TPUEstimator(model_fn, config=config(), use_tpu=True, **sizes)  # <- TPU107
for row in port.predict(predict_input):
    print(row["vector"])
