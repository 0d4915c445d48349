"""A judgement by letters: a dict from cases to the letters of the answers that the text lists."""

from collections.abc import Mapping
from typing import Any

from lab_utils.check.tools import expect


def expect_letters(said: Any, name: str, right: Mapping[str, tuple[str, str]], last: str) -> None:
    """Raises `Wrong` for the first case with another letter, and asks back.

    Args:
        said: what the learner wrote, a dict from the cases of `right` to letters.
        name: of that variable.
        right: the letter of each case, and a question for whoever gives another one.
        last: the last letter that there is; the first is A.
    """
    fits = isinstance(said, Mapping) and set(said) == set(right)
    expect(
        fits, f"{name} should be a dict with a letter for each of {', '.join(map(repr, right))}."
    )
    for case, (letter, question) in right.items():
        own = str(said[case]).strip().upper()
        expect(
            len(own) == 1 and "A" <= own <= last, f"{case}: {said[case]!r} is none of A to {last}."
        )
        expect(own == letter, f"{case}: not {own}. {question}")
