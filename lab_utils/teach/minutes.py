"""How long a lab takes: the one formula behind the labs' title cells, README's table and the plans.

Minutes are those of reading and of the exercises, rounded up to a multiple of 5:

- words of the text at 150 a minute, an assumption: 238 is the mean for English non-fiction (Brysbaert, "How
  many words do we read per minute?", Journal of Memory and Language 109, 2019), and one works along here;
- lines of given code at 20 a minute, an assumption;
- each exercise by its level, which stands behind its name (`**TODO 10a.** *Easy.*`), or by minutes of its
  own (`*Hard, 40 minutes.*`), all assumptions. Each exercise of the one-day route has minutes of its own, and
  most of them are fewer than those of its level: README and the guide say what the levels would give;
- a minute for each prediction, and a minute for each question at the end, assumptions;
- nothing for a code cell with the tag "folded", which draws or prepares, and is shown folded;
- nothing for a section whose heading begins with "Further" or "Sources", which a learner may leave out;
- nothing for waiting: with nothing cached, lab 09 takes 6 to 12 minutes, lab 12 three, and no other solution
  longer than 136 s (measured, `solutions/instructor/hub.md`); one reads on meanwhile.

Nobody has timed learners of these labs. Where minutes of other lessons were estimates, instructors took
longer: 6.5 hours in the place of 4.25 (datacarpentry/r-socialsci issue 75, 2018), "almost double"
(swcarpentry/make-novice issue 142, 2019; both read 2026-11-22). The guide passes this on.
"""

import math
import re

import nbformat

from lab_utils.check import programs
from lab_utils.teach import marks

WORDS, CODE_LINES = 150, 20  # a minute
LEVELS = {"Easy": 4, "Medium": 8, "Hard": 15}  # minutes of an exercise
PREDICTION = QUESTION = 1  # minutes
UNMARKED = "Medium"
LEFT_OUT = ("Further", "Sources")  # how the headings of sections begin that take no time
FOLDED = "folded"  # the tag of a code cell that only draws or prepares, which learners run and need not read
SPINE = 8  # labs of the one-day route, the first of the course
_EXERCISE = re.compile(
    r"\*\*TODO (\d+[a-z])\b[^*]*\*\*(?: \*(Easy|Medium|Hard)(?:, (\d+) minutes)?\.\*)?"
)
# The minutes of a title cell, and the sentence behind them that `stamp` writes.
_STATED = re.compile(r"^\*\*\d+ minutes\.\*\*(?: (?:Step|This elective).*?\.(?= |$))?", re.M)


def of_lab(source: nbformat.NotebookNode, questions: int) -> int:
    """Minutes that a lab takes, by its marked notebook and the number of its questions."""
    return 5 * math.ceil(sum(sections(source, questions).values()) / 5)


def sections(
    source: nbformat.NotebookNode, questions: int, by_level: bool = False
) -> dict[str, float]:
    """Minutes of each section of a marked notebook, by its heading; its questions belong to the recap.

    The opening, before the first heading, is "". Sections that may be left out take none.
    With `by_level`, each exercise takes the minutes of its level, whatever it states itself.
    """
    taken, heading = {"": 0.0}, ""
    for cell in source.cells:
        if cell.cell_type != "markdown":
            if FOLDED not in cell.metadata.get("tags", []):
                taken[heading] += of_code(cell.source)
            continue
        for part in re.split(r"^(?=## )", cell.source, flags=re.M):
            if part.startswith("## "):
                heading = part.partition("\n")[0].removeprefix("## ").strip()
                taken.setdefault(heading, 0.0)
            taken[heading] += of_text(part, by_level)
    taken = {name: 0.0 if name.startswith(LEFT_OUT) else each for name, each in taken.items()}
    counted = [name for name, each in taken.items() if each] or [""]
    taken[counted[-1]] += QUESTION * questions
    return taken


def of_code(source: str) -> float:
    """Minutes for a code cell of a marked notebook."""
    released = marks.REGION.sub("", programs.expand(source))
    lines = sum(bool(line.strip()) for line in released.splitlines())
    return lines / CODE_LINES + PREDICTION * source.count("# STARTER: predict(")


def of_text(text: str, by_level: bool = False) -> float:
    """Minutes for a text in Markdown and the exercises that it sets; a TODO's first mention sets it.

    With `by_level`, an exercise takes the minutes of its level, whatever it states itself.
    """
    text = _STATED.sub("", text)  # what the build writes itself
    text = re.sub(r"\]\([^)]*\)", "]", text)  # addresses are not read
    exercises: dict[str, int] = {}
    for id, level, stated in _EXERCISE.findall(text):
        own = int(stated) if stated and not by_level else LEVELS[level or UNMARKED]
        exercises.setdefault(id, own)
    return len(text.split()) / WORDS + sum(exercises.values())


def stamp(source: nbformat.NotebookNode, name: str, minutes: int, titles: dict[str, str]) -> None:
    """Writes the minutes and the lab's place in the course into its title cell.

    Args:
        source: the notebook.
        name: of its file.
        minutes: of the lab.
        titles: the title of each notebook by file name, in the course's order.
    """
    spine = list(titles)[:SPINE]
    place = f"This elective follows the one-day route (labs 00 to {SPINE - 1:02d})."
    if name in spine:
        after = dict(zip(spine, spine[1:], strict=False)).get(name)
        following = f"; next: [{after[:2]} · {titles[after]}]({after})" if after else ""
        place = f"Step {spine.index(name) + 1} of {len(spine)} of the one-day route{following}."
    title = source.cells[0]
    title.source = _STATED.sub(lambda _: f"**{minutes} minutes.** {place}", title.source, count=1)
