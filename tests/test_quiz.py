"""The questions at the end of the labs: five each, one right answer, and figures that the tables give."""

import math
import re
from pathlib import Path

import pytest

from lab_utils.check import sources
from lab_utils.runtime import chips
from lab_utils.teach import quiz

ROOT = Path(__file__).parents[1]
ASKED = quiz.questions(ROOT)
EACH = [(lab, question) for lab, own in ASKED.items() for question in own]


def test_each_lab_has_five():
    assert {int(lab): len(own) for lab, own in ASKED.items()} == dict.fromkeys(sources.labs(), 5)


@pytest.mark.parametrize(("lab", "question"), EACH, ids=lambda each: str(each)[:2])
def test_a_question_has_one_right_answer_and_two_wrong_ones_with_reasons(lab, question):
    answers = [question["right"], *question["wrong"]]
    assert len(answers) == 3 and all(
        len(each) == 2 and all(isinstance(part, str) for part in each) for each in answers
    )
    assert len({text for text, _ in answers}) == 3 and question["ask"].rstrip().endswith(("?", "."))


@pytest.mark.parametrize(
    ("question"), [each for _, each in EACH if "figure" in each], ids=lambda each: each["ask"][:30]
)
def test_a_figure_is_what_can_be_worked_out(question):
    expression, value = question["figure"]
    assert eval(expression, {"chips": chips, "math": math}) == value
    assert re.search(rf"(?<![\d.]){re.escape(str(value))}(?![\d]|\.\d)", question["right"][0])


def test_right_answers_stand_in_all_places():
    shown = [quiz.cell([question]).source for _, question in EACH]
    places = [re.findall(r"</summary>(Yes|No)\.", text).index("Yes") for text in shown]
    assert all(places.count(place) > len(places) / 6 for place in range(3))


def test_an_answer_is_hidden_until_it_is_chosen():
    text = quiz.cell(ASKED["02"]).source
    assert text.count("<details>") == text.count("</details>") == 15 and "<script" not in text
