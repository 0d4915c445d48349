"""The finished example: photographs of five kinds of flower, from TFRecords to a served prediction.

To read it, in this order:

1. `records` and `input_pipeline`: what the converter wrote, as batches of a static shape
2. `recipe` and `model`: the inference function, and the model_fn around it
3. `augment`: random views, inside the model
4. `settings` and `task`: a training run, by flags or YAML; `checkpoints` and `progress` help it
5. `predict`, `rest` and `page`: what an export answers, over the network, and in pictures
6. `port`: the same port, judged by the dry run
7. `__main__`: all of it in one command
8. `keras_model` and `jax_port`: the same model with today's API
"""
