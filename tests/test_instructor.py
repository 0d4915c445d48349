"""What instructors get: plans whose sums agree, slides and demos that show what the solutions hold."""

import html
import json
import re
from pathlib import Path

import nbformat
import pytest
import wrong_answers
from wrong_answers import Right

from lab_utils.check import sources, todos
from lab_utils.teach import guide, minutes, pages, plans, quiz, slides

ROOT = Path(__file__).parents[1]
PLANS = plans.read(ROOT)["plans"]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan["title"])
def test_each_lab_stands_in_one_place_of_a_plan_and_the_minutes_fit(plan):
    taught = plans.labs(plan)
    assert sorted(taught + plans.not_taught(plan)) == list(sources.labs())
    assert taught == sorted(taught), "labs build on those before them"
    left = {f"{lab:02d}" for lab in plans.not_taught(plan)} & {"16", "17"}
    assert left <= set(re.findall(r"\d\d", plan.get("next", ""))), "where the last labs come in"
    assert 45 * plans.hours(plan) <= plans.takes(ROOT, plan) <= 60 * plans.hours(plan)
    stretches = [each.takes - each.pause for each in plans.sessions(ROOT, plan)]
    assert max(stretches) <= 120, "minutes without a break"


def test_lectures_count_and_a_short_plan_has_the_short_ones():
    plan = {"sessions": [{"title": "Both", "labs": [0, 3], "break": 15, "arrival": 20}]}
    labs = sources.labs()[0]["minutes"] + sources.labs()[3]["minutes"]
    lectures = slides.minutes(ROOT, 0) + slides.minutes(ROOT, 3)
    assert plans.takes(ROOT, plan) == 20 + lectures + labs + 15
    assert plans.takes(ROOT, plan | {"short": True}) == 20 + 10 + labs + 15


def test_meetings_end_at_sections_keep_a_reserve_and_leave_nothing_out():
    (plan,) = (plan for plan in PLANS if "meetings" in plan)
    meetings = plans.sessions(ROOT, plan)
    assert len(meetings) <= plan["meetings"] and plan["reserve"] >= 10
    assert all(each.takes <= plan["minutes"] - plan["reserve"] for each in meetings)
    for lab, entry in sources.labs().items():
        own = [part for meeting in meetings for part in meeting.parts if part.lab == lab]
        assert sum(part.own for part in own) == entry["minutes"]
        assert [part.lecture for part in own] == [slides.minutes(ROOT, lab)] + [0] * len(own[1:])
        assert [part.until for part in own] == [part.first for part in own[1:]] + [""]
        text = sources.paths()[lab].read_text(encoding="utf-8")
        assert all(f"## {json.dumps(part.first)[1:-1]}" in text for part in own[1:])
    with pytest.raises(ValueError, match="do not fit into 3 meetings of 110 minutes"):
        plans.sessions(ROOT, plan | {"meetings": 3})


def test_one_day_holds_the_spine_and_no_lab_of_it_is_long():
    (day,) = (plan for plan in PLANS if plan["title"] == "One day")
    spine = [lab for session in day["sessions"] for lab in session["labs"]]
    assert spine == list(range(minutes.SPINE))
    stated = {lab: entry["minutes"] for lab, entry in sources.labs().items()}
    assert sum(stated[lab] for lab in spine) <= 300 and max(stated[lab] for lab in spine) <= 60
    assert max(stated.values()) <= 60 and sum(stated.values()) <= 900
    for path in sorted((ROOT / "solutions/source").glob("*.ipynb"))[: minutes.SPINE]:
        assert len(nbformat.read(path, as_version=4).cells) <= 45, path.name


def test_readme_says_what_the_route_would_take_by_the_levels_of_its_exercises():
    route = sum(sources.labs()[lab]["minutes"] for lab in range(minutes.SPINE))
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"Labs 00 to 07 state {route} minutes in all" in readme
    assert f"these labs would take {plans.route_by_level(ROOT)}." in readme


def test_the_minutes_of_a_lab_follow_from_what_it_holds():
    text = "Ten words of text that is here to be counted.\n\n**TODO 1a.** {} And more."
    levels = ("*Easy.*", "", "*Hard.*", "*Hard, 40 minutes.*")
    cells = [nbformat.v4.new_markdown_cell(text.format(level)) for level in levels]
    easy, unmarked, hard, long = (minutes.of_text(cell.source) for cell in cells)
    by_level = [minutes.of_text(cell.source, by_level=True) for cell in cells]
    assert by_level[:3] == [easy, unmarked, hard] and by_level[3] - hard < 1
    assert hard - easy == minutes.LEVELS["Hard"] - minutes.LEVELS["Easy"]
    assert easy < unmarked < hard and 40 < long < 41
    notebook = nbformat.v4.new_notebook(cells=cells)
    whole = minutes.of_lab(notebook, 0)
    assert whole % 5 == 0 and whole + 5 == minutes.of_lab(notebook, 5)
    notebook.cells[-1].source = f"## Further\n{cells[-1].source}"
    assert minutes.of_lab(notebook, 0) < whole - 35, "a section that may be left out"


@pytest.mark.parametrize("lab", slides.read(ROOT))
def test_slides_are_short_and_show_what_was_measured(lab, tmp_path):
    for name in slides.STYLES + slides.SCRIPTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("/* </script> */" if name.endswith("js") else "")
    text = slides.deck(ROOT, lab, tmp_path)
    own = slides.read(ROOT)[lab]
    assert text.count("<section") == text.count("</section>") == len(own) + 1
    assert text.count('<aside class="notes">') == len(own), "each slide has notes"
    assert "&lt;Report" not in text, "a result's repr"
    assert "<img" in text and re.search(r"<pre>[^<]*\d", text), "a figure, and a measured output"
    assert all(len(point.split()) <= 14 for slide in own for point in slide.get("points", ()))
    assert not re.search(r'(src|href)="(?!data:)', text), "nothing is fetched"
    assert text.count("</script>") == len(slides.SCRIPTS) + 1 and slides.minutes(ROOT, lab) <= 12
    code = re.findall(r'<code class="language-python"[^>]*>(.*?)</code>', text, re.S)
    widest = max(
        (len(html.unescape(line)) for part in code for line in part.splitlines()), default=0
    )
    assert widest <= 108, "a slide of 1280 pixels cuts a longer line of code"
    short = sum(slide["minutes"] for slide in own if slide.get("short"))
    marked = [slide for slide in own if slide.get("short")]
    assert short == 5 and text.count("Part of the short talk.") == len(marked)
    assert text.count('<section class="long">') == len(own) - len(marked)
    assert "short" in own[-1] and own[-1]["title"] == "Now you"
    if lab < minutes.SPINE:
        assert 10 <= len(own) <= 15 and any("code" in slide for slide in own)
        assert sum("ask" in slide for slide in own) == 1


def test_demos_take_ten_minutes_and_their_outputs_are_there():
    for demo in plans.read(ROOT)["demos"]:
        assert sum(step["minutes"] for step in demo["steps"]) == 10
        for step in demo["steps"]:
            assert pages.output(ROOT, step["lab"], step["cell"])
    with pytest.raises(ValueError, match="shows nothing in a cell 'none'"):
        pages.output(ROOT, 2, "none")


@pytest.mark.parametrize("lab", sources.labs())
def test_the_guide_tells_what_each_wrong_answer_heard(lab):
    """STORE_MESSAGES=1 python -m pytest tests/test_labs.py -k "answers and all" -m slow writes them."""
    stored_messages = wrong_answers.messages(lab)
    for todo in todos.of_lab(lab):
        wrong = [each for each in wrong_answers.of_todo(todo) if type(each) is not Right]
        for answer in wrong:
            message = stored_messages.get(wrong_answers.key(todo.id, answer), "nothing is stored")
            assert wrong_answers.heard(answer.says, message), f"{todo.id}: {answer}"


@pytest.mark.parametrize("lab", sources.labs())
def test_what_is_said_in_a_lab_is_about_a_todo_or_a_section_of_it(lab):
    """The live script takes its mistake from the wrong answers; a place that is gone would mislead."""
    spoken = guide.teaching(ROOT)[lab]
    places = {*sources.ids(lab), *plans.section_minutes(ROOT, lab)}
    assert {each["at"] for each in spoken["stuck"]} <= places and spoken["live"]["todo"] in places


@pytest.mark.parametrize("lab", sources.labs())
def test_a_mistake_beside_other_faults_is_made_in_the_solution(lab):
    """The check of a program with several faults names all that are left, so the message comes only there."""
    live = guide.teaching(ROOT)[lab]["live"]
    several = len(sources.regions(lab)[live["todo"]]) > 1
    (named,) = re.findall(r"`(solutions/\S+)`", live["say"]) or [""]
    assert several == bool(named) and (ROOT / named).exists()
    assert not several or f'check(\\"{live["todo"]}\\"' in (ROOT / named).read_text("utf-8")


def test_the_questions_before_and_after_are_those_of_the_labs():
    pages = guide.texts(ROOT)
    page, answers = (html.unescape(pages[name]) for name in ("questions.html", "guide.html"))
    groups = plans.read(ROOT)["questions"]
    for lab, number in [pair for group in groups for pair in group["ask"]]:
        question = quiz.questions(ROOT)[f"{lab:02d}"][number - 1]
        right = question["right"][0]
        assert page.count(f"☐ {right}<") == 1 and f"<li>{right}</li>" in answers
        assert f"<li>{right}</li>" not in page  # learners get that page
        assert all(f"☐ {wrong[0]}<" in page for wrong in question["wrong"])


def test_the_guide_has_a_page_a_lab_that_names_each_todo_and_its_wrong_answers():
    pages = guide.texts(ROOT)
    for lab in sources.labs():
        name = f"guide_{lab:02d}.html"
        assert f'href="{name}"' in pages["guide.html"]
        for id in sources.ids(lab):
            part = re.search(rf'<h2 id="{id}">TODO {id}: .*?</ul>', pages[name], re.S)
            assert part and part[0].count("the check says") >= 3, id
    for anchor in re.findall(r'href="#(\w+)"', pages["guide.html"]):
        assert f'id="{anchor}"' in pages["guide.html"]
    (command,) = re.findall(r"<pre>(.* lab_utils\.grade .*)</pre>", pages["guide.html"])
    for name in ("solutions/instructor/README.md", "solutions/instructor/grading.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert command in map(str.strip, text.splitlines()), name
