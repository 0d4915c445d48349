"""Decisions as TODOs: a dict from questions to one of a few answers, judged one by one with a reason."""

from collections.abc import Mapping, Sequence
from typing import Any

from lab_utils.check.tools import a, expect


def expect_decisions(
    answers: Any, right: Mapping[str, tuple[str, str]], choices: Sequence[str]
) -> None:
    """Raises `Wrong` unless the learner decided each question as we do.

    Args:
        answers: the learner's dict.
        right: for each question our answer, and a sentence that leads to it without naming it.
        choices: all answers that there are.
    """
    expect(
        isinstance(answers, Mapping),
        f"Expected a dict from {len(right)} questions to answers; yours is {a(answers)}.",
    )
    lacking = [question for question in right if question not in answers]
    expect(not lacking, f"Not decided yet: {'; '.join(lacking)}.")
    known = {choice.lower() for choice in choices}
    for question in right:
        answer = str(answers[question]).strip().lower()
        told = f"{question}: {answers[question]!r} is not one of {', '.join(choices)}."
        expect(answer in known, told)
    wrong = [q for q, (ours, _) in right.items() if str(answers[q]).strip().lower() != ours.lower()]
    reasons = "\n".join(
        f"{question}: not {answers[question]!r}. {right[question][1]}" for question in wrong
    )
    expect(not wrong, f"{len(right) - len(wrong)} of {len(right)} are right.\n{reasons}")
