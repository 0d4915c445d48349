"""What instructors get: plans whose sums agree, slides and demos that show what the solutions hold."""

import re
from pathlib import Path

import nbformat
import pytest

from lab_utils.check import overview
from lab_utils.teach import guide, minutes, slides, stored

ROOT = Path(__file__).parents[1]
PLANS = guide.plans(ROOT)["plans"]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan["title"])
def test_each_lab_stands_in_one_place_of_a_plan_and_the_minutes_fit(plan):
    taught = [lab for session in plan["sessions"] for lab, _ in guide.parts(session)]
    assert sorted(taught + guide.not_taught(plan)) == list(overview.labs())
    assert taught == sorted(taught), "labs build on those before them"
    left = {f"{lab:02d}" for lab in guide.not_taught(plan)} & {"13", "14"}
    assert left <= set(re.findall(r"\d\d", plan.get("next", ""))), "where the last labs come in"
    assert 45 * plan["hours"] <= guide.minutes(ROOT, plan) <= 60 * plan["hours"]


def test_lectures_count_and_each_session_fits_into_its_hours():
    session = {"labs": [0, {3: ["Recap"]}], "break": 15}
    lectures = slides.minutes(ROOT, 0) + slides.minutes(ROOT, 3)
    recap = dict(guide.sections(ROOT, 3))["Recap"]
    assert guide.of_session(ROOT, session) == lectures + overview.labs()[0]["minutes"] + recap + 15
    timed = [session for plan in PLANS for session in plan["sessions"] if "minutes" in session]
    assert timed and all(guide.of_session(ROOT, each) <= each["minutes"] for each in timed)
    with pytest.raises(ValueError, match="lab 03 has no section {'None'}; there are 1. What XLA"):
        guide.taught(ROOT, 3, ["None"])


def test_the_minutes_of_a_lab_follow_from_what_it_holds():
    text = "Ten words of text that is here to be counted.\n\n**TODO 1a.** {} And more."
    cells = [
        nbformat.v4.new_markdown_cell(text.format(level)) for level in ("*Easy.*", "*Hard.*", "")
    ]
    easy, hard, unmarked = map(minutes.of_cell, cells)
    assert hard - easy == minutes.LEVELS["Hard"] - minutes.LEVELS["Easy"]
    assert easy < unmarked < hard
    own = nbformat.v4.new_markdown_cell(text.format("*Hard, 40 minutes.*"))
    assert 40 < minutes.of_cell(own) < 41
    code = nbformat.v4.new_code_cell("x = 1\n" * 40)
    assert minutes.of_cell(code) == 40 / minutes.CODE_LINES
    notebook = nbformat.v4.new_notebook(cells=[*cells, code])
    assert minutes.of_lab(notebook, 0, 0) + 15 == minutes.of_lab(notebook, 600, 5)
    assert minutes.of_lab(notebook, 0, 0) % 5 == 0


def test_the_minutes_of_sections_add_up_to_those_of_the_lab():
    for lab, entry in overview.labs().items():
        parts = guide.sections(ROOT, lab)
        assert sum(own for _, own in parts) == entry["minutes"]
        assert all(own >= 0 for _, own in parts) and len(parts) >= 3


@pytest.mark.parametrize("lab", slides.of_all(ROOT))
def test_slides_are_short_and_show_what_was_measured(lab, tmp_path):
    for name in (
        "dist/reveal.css",
        "dist/theme/white.css",
        "dist/reveal.js",
        "plugin/notes/notes.js",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("/* </script> */" if name.endswith("js") else "")
    text = slides.deck(ROOT, lab, tmp_path)
    own = slides.of_all(ROOT)[lab]
    assert text.count("<section>") == text.count("</section>") == len(own) + 1
    assert text.count('<aside class="notes">') == len(own), "each slide has notes"
    assert "<img" in text and re.search(r"<pre>[^<]*\d", text), "a figure, and a measured output"
    assert all(len(point.split()) <= 14 for slide in own for point in slide["points"])
    assert not re.search(r'(src|href)="(?!data:)', text), "nothing is fetched"
    assert text.count("</script>") == 3 and slides.minutes(ROOT, lab) <= 12


def test_demos_take_ten_minutes_and_their_outputs_are_there():
    for demo in guide.plans(ROOT)["demos"]:
        assert sum(step["minutes"] for step in demo["steps"]) == 10
        for step in demo["steps"]:
            assert stored.output(ROOT, step["lab"], step["cell"])
    with pytest.raises(ValueError, match="shows nothing in a cell 'none'"):
        stored.output(ROOT, 2, "none")


def test_the_guide_has_a_page_a_lab_that_names_each_todo_and_its_wrong_answers():
    pages = guide.made(ROOT)
    for lab in overview.labs():
        name = f"guide_{lab:02d}.html"
        assert f'href="{name}"' in pages["guide.html"]
        for id in overview.ids(lab):
            part = re.search(rf'<h2 id="{id}">TODO {id}: .*?</ul>', pages[name], re.S)
            assert part and part[0].count("the check says") >= 3, id
    for anchor in re.findall(r'href="#(\w+)"', pages["guide.html"]):
        assert f'id="{anchor}"' in pages["guide.html"]
    (command,) = re.findall(r"<pre>(.* lab_utils\.grade .*)</pre>", pages["guide.html"])
    for name in ("solutions/instructor/README.md", "solutions/instructor/grading.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert command in map(str.strip, text.splitlines()), name
