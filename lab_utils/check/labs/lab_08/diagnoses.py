"""What is wrong, and what would help: five versions in bfloat16 (TODO 8c), and four reports (TODO 8d)."""

from typing import Any

from lab_utils.check.labs.decisions import expect_decisions
from lab_utils.check.todos import todo

_OTHER_TYPES = (
    "Which type have the images when the first layer is built, and is the scope still open there?"
)


@todo(
    "8c",
    hints=(
        "For each version: which type has the input of the first layer, and is the layer built in the scope?",
        "The loss has the type of the logits that the function returns.",
    ),
    why="The layers' input has to be bfloat16, all layers are built in the scope, and the logits leave as float32.",
)
def bfloat16(bfloat16_diagnosis: Any) -> str:
    """Five versions, two of them with the same fault."""
    clues = {
        "one": "The scope does not cast anything: which type do the layers get?",
        "two": "No scope at all. Which type do the layers give their variables?",
        "three": "The scope and the cast at its entry are right. Which type has the result?",
        "four": "Follow the types: at the first layer, of the variables, of the result.",
        "five": _OTHER_TYPES,
        "five A": f"The layers get bfloat16 all the same. {_OTHER_TYPES}",
        "five D": f"The scope ends before the network is built. {_OTHER_TYPES}",
    }
    right = {"one": "A", "two": "B", "three": "C", "four": "D", "five": "B"}
    expect_decisions(
        bfloat16_diagnosis, {n: (c, clues[n]) for n, c in right.items()}, "ABCD", clues
    )
    return (
        "bfloat16 between the layers, float32 variables and logits: only version four has it all."
    )


@todo(
    "8d",
    hints=(
        "Arithmetic or HBM traffic: which takes longer, and what does each change take away from it?",
        "Where do the bytes come from: padding, weights with their gradients and slots, or activations?",
    ),
    why="A change helps where it takes away what bounds the step; all else is work for nothing.",
)
def next_change(next_change: Any) -> str:
    """Four reports; the factors are computed by the TPU compiler (libtpu 0.0.42.1, 2026-11-23)."""
    clues = {
        "1": "Memory is the limit, and the layers are in bfloat16 with a pooled head already. What does the compiler "
        "do to a batch of 16?",
        "2": "Memory is the limit. Which bytes are they: pictures, activations, or weights?",
        "2 A": "That raises the bound 3.0 times, as weights are read once a step. Another raises it 12 times.",
        "2 B": "That raises the bound 1.01 times: most bytes are those of weights, which stay float32.",
        "2 D": "The memory needs four times as long as the arithmetic.",
        "3": "Compare the two times: which one would have to fall?",
        "3 A": "That raises the bound 1.00 times: four times the pictures have four times the FLOP.",
        "4": "Memory is the limit, the batch is full, and the weights are few. Which bytes are left?",
        "4 A": "That lowers the bound by 5 %: from 128 on nothing is padded, and the weights are few.",
    }
    right = {1: "A", 2: "C", 3: "D", 4: "B"}
    expect_decisions(next_change, {n: (c, clues[str(n)]) for n, c in right.items()}, "ABCD", clues)
    return (
        "By the compiler the bound rises 1.98 times in step 1, 12.2 in step 2 and 1.36 in step 4; in step 3 no change "
        "of these raises it."
    )
