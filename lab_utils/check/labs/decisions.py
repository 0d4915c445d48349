"""Decisions as TODOs: a dict from questions to one of a few answers, judged one by one with a reason."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lab_utils.check.tools import a, expect, expect_keys, several


def expect_decisions(
    answers: Any,
    right: Mapping[Any, tuple[str, str]],
    choices: Sequence[str],
    against: Mapping[str, str] | None = None,
) -> None:
    """Raises `Wrong` unless the learner decided each question as we do.

    Args:
        answers: the learner's dict; case and spaces around an answer do not count.
        right: for each question our answer, and a sentence that leads to it without naming it.
        choices: all answers that there are; a string of letters will do.
        against: by "question answer" what speaks against that one, in the place of the general sentence.
    """
    questions = ", ".join(map(repr, right))
    expect(
        isinstance(answers, Mapping),
        f"Expected a dict with an answer for each of {questions}; yours is {a(answers)}.",
    )
    lacking = [str(question) for question in right if question not in answers]
    expect(not lacking, f"Not decided yet: {'; '.join(lacking)}.")
    spellings = {choice.lower(): choice for choice in choices}
    picks = {question: spellings.get(str(answers[question]).strip().lower()) for question in right}
    for question, answer in picks.items():
        expect(
            answer is not None,
            f"{question}: {answers[question]!r} is not one of {', '.join(choices)}.",
        )
    wrong = [q for q, (ours, _) in right.items() if picks[q].lower() != ours.lower()]
    reasons = "\n".join(
        f"{q}: not {picks[q]}. {(against or {}).get(f'{q} {picks[q]}', right[q][1])}" for q in wrong
    )
    expect(not wrong, f"Right: {len(right) - len(wrong)} of {len(right)}.\n{reasons}")


def pairs(decisions: Any, questions: Collection[str], first: str) -> Iterator[tuple[str, Any, Any]]:
    """Yields each question with the two things that the learner says of it: a number and a letter.

    Args:
        decisions: the learner's dict from the questions to pairs.
        questions: in the order in which they are judged.
        first: what the number counts, such as "files".

    Raises:
        Wrong: it is not such a dict, or the next question's answer is not a pair.
    """
    expect_keys(decisions, questions, "decisions")
    for question in questions:
        pair = decisions[question]
        expect(several(pair, 2), f"{question}: expected a pair, ({first}, letter), not {pair!r}.")
        yield question, *pair
