import tempfile

from ported import FAULTY, estimator, logits_of, loss_of, minimize, tf, tpu, train_input, v1


def earlier_run():
    """The checkpoint of another program, whose first layer is taken over."""
    with tf.Graph().as_default(), v1.Session() as session:
        logits_of(tf.zeros([1, 8]))
        session.run(v1.global_variables_initializer())
        return v1.train.Saver().save(session, tempfile.mkdtemp() + "/model")


CHECKPOINT = earlier_run()


def model_fn(features, labels, mode, params):
    loss = loss_of(labels, logits_of(features))

    def scaffold_fn():
        v1.train.init_from_checkpoint(CHECKPOINT, {"dense/": "dense/"})
        return v1.train.Scaffold()

    if FAULTY:
        v1.train.init_from_checkpoint(CHECKPOINT, {"dense/": "dense/"})  # <- TPU204
        scaffold_fn = None
    train_op = minimize(loss)
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)


estimator(model_fn).train(train_input, max_steps=100)
