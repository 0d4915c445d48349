"""Answers to lab 00: right ones in other habits, and wrong ones with the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "0a": [
        Mutant(", drop_remainder=True", "", "size of a batch is still unknown"),
        Mutant("drop_remainder=True", "drop_remainder=False", "size of a batch is still unknown"),
        Mutant('params["batch_size"]', "128", "Shapes in a batch of 4"),
        Mutant("train_input(params).unbatch()", "train_input(params)", "Shapes in a batch of 4"),
        Mutant("pictures.batch(", "pictures.take(7).batch(", "Pictures in five batches"),
        Wrong("def input_after(params):\n    return input_before(params)", "NameError"),
        Wrong(
            "def input_after(params):\n    return next(iter(train_input(params)))",
            "should return a dataset",
        ),
        Right("def input_after(params):\n    return train_input(params)"),
        Right(
            "input_after = lambda params: train_input(params).unbatch().batch(params['batch_size'], True)"
        ),
        Right("""
            def input_after(params):
                size = params["batch_size"]

                def fixed(image, label):
                    image.set_shape([size, *image.shape[1:]])
                    label.set_shape([size])
                    return image, label

                return train_input(params).unbatch().batch(size).map(fixed)
        """),
    ],
    "0b": [
        Wrong('on_a_tpu = {"TPU101": "B", "TPU201": "A"}', "Right: 0 of 2."),
        Wrong('on_a_tpu = {"TPU101": "A", "TPU201": "E"}', "nothing compares the weights"),
        Wrong('on_a_tpu = {"TPU101": "D", "TPU201": "B"}', "before a single picture is read"),
        Wrong('on_a_tpu = {"TPU101": "A", "TPU201": "F"}', "is not one of A, B, C, D, E"),
        Wrong('on_a_tpu = {"TPU101": "A"}', "Not decided yet: TPU201"),
        Wrong('on_a_tpu = ["A", "B"]', "Expected a dict"),
        Right('on_a_tpu = dict(TPU201=" b", TPU101="a")'),
    ],
    "0c": [
        Wrong("cheapest = {question: 'dry run' for question in cheapest}", "Right: 4 of 6."),
        Wrong("cheapest = {question: 'tpu' for question in cheapest}", "the TPU's compiler does"),
        Wrong(
            "cheapest |= {'how many pictures a second does it train, to within 5 %?': 'dry run'}",
            "only estimates the time",
        ),
        Wrong(
            "cheapest |= {'do the eight cores sum their gradients?': 'cpu'}", "A CPU has one copy"
        ),
        Wrong("cheapest |= {'does every op exist on a TPU?': 'gpu'}", "is not one of cpu, dry run"),
        Wrong("cheapest = 'dry run'", "Expected a dict"),
        Wrong(
            'cheapest |= {"does a TPU\'s rounding of matmuls spoil the training?": "cpu"}',
            "computes matmuls in float32 on a CPU",
        ),
        Wrong(
            'cheapest |= {"does a TPU\'s rounding of matmuls spoil the training?": "tpu"}',
            "still without a TPU",
        ),
        Right("cheapest = {question: answer.upper() for question, answer in cheapest.items()}"),
        Right("cheapest = dict(reversed(cheapest.items()))"),
    ],
}
