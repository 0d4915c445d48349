"""Answers by letter: a dict from the names of a few things to the letter of what is said of each."""

from collections.abc import Mapping
from typing import Any

from lab_utils.check.outcome import Wrong
from lab_utils.check.same import a
from lab_utils.check.tools import expect


def judge_letters(
    answer: Any, right: Mapping[Any, str], clues: Mapping[str, str], choices: str = "ABCD"
) -> None:
    """Raises `Wrong` with a clue for each wrong letter, which does not say the right one.

    Args:
        answer: the learner's dict; letters of either case.
        right: the letter of each name.
        clues: by "name" what to look at; by "name letter" what speaks against that letter.
        choices: the letters that there are.
    """
    expect(
        isinstance(answer, Mapping) and set(answer) == set(right),
        f"A dict with the keys {', '.join(map(repr, right))}; yours is {a(answer)}.",
    )
    letters = {name: str(answer[name]).strip().upper() for name in right}
    for name, letter in letters.items():
        expect(
            letter in {*choices},
            f"{name}: {answer[name]!r} is not one of the letters {', '.join(choices)}.",
        )
    wrong = {name: letter for name, letter in letters.items() if letter != right[name]}
    if wrong:
        told = [
            f"{name}: {clues.get(f'{name} {letter}', clues[str(name)])}"
            for name, letter in wrong.items()
        ]
        raise Wrong("\n".join([f"{len(right) - len(wrong)} of {len(right)} are right.", *told]))
