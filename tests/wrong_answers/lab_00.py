"""Answers to lab 00: right ones in other habits, and wrong ones with the words that they must hear."""

from wrong_answers import Mutant, Right, Wrong

ANSWERS = {
    "0a": [
        Wrong('on_a_tpu = {"TPU101": "B", "TPU201": "A"}', "Right: 0 of 2."),
        Wrong('on_a_tpu = {"TPU101": "A", "TPU201": "E"}', "Nothing compares the cores"),
        Wrong('on_a_tpu = {"TPU101": "D", "TPU201": "B"}', "before a single picture is read"),
        Wrong('on_a_tpu = {"TPU101": "A", "TPU201": "F"}', "is not one of A, B, C, D, E"),
        Wrong('on_a_tpu = {"TPU101": "A"}', "Not decided yet: TPU201"),
        Wrong('on_a_tpu = ["A", "B"]', "Expected a dict"),
        Right('on_a_tpu = dict(TPU201=" b", TPU101="a")'),
    ],
    "0b": [
        Mutant("return 2 * m * k * n", "return 2 * (m * k + k * n)", "sum of 5 products"),
        Mutant("return 2 * m * k * n", "return 2 * m * k * m", "[3, 5] times [5, 7]"),
        Right(
            "def matmul_flop(m, k, n):\n    multiplications = additions = m * n * k\n    return multiplications + additions"
        ),
        Right("import numpy as np\nmatmul_flop = lambda m, k, n: 2 * np.prod([m, k, n])"),
        Right(
            "def per_entry(k):\n    return 2.0 * k\n\n\ndef matmul_flop(m, k, n):\n    return per_entry(k) * m * n"
        ),
        Right(
            "def matmul_flop(m, k, n):\n    return sum(2 * k for row in range(m) for column in range(n))"
        ),
        Wrong("def matmul_flop(m, k, n):\n    return 2 * 3 * 5 * 7", "[11, 2]"),
        Wrong("def matmul_flop(m, k, n):\n    print(2 * m * k * n)", "return missing"),
        Wrong("def matmul_flop(m, k, n):\n    return 2 * m * k, 2 * k * n", "a number"),
    ],
    "0c": [
        Wrong("cheapest = {question: 'dry run' for question in cheapest}", "Right: 3 of 6."),
        Wrong("cheapest = {question: 'tpu' for question in cheapest}", "the TPU's compiler does"),
        Wrong(
            "cheapest |= {'how many pictures a second does it train?': 'dry run'}",
            "computes only an upper bound",
        ),
        Wrong(
            "cheapest |= {'do the eight cores sum their gradients?': 'cpu'}", "A CPU has one copy"
        ),
        Wrong("cheapest |= {'does every op exist on a TPU?': 'gpu'}", "is not one of cpu, dry run"),
        Wrong("cheapest = 'dry run'", "Expected a dict"),
        Right("cheapest = {question: answer.upper() for question, answer in cheapest.items()}"),
    ],
}
