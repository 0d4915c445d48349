"""How long a lab takes: the one formula behind the labs' title cells, README's table and the plans.

Minutes are those of reading, of the exercises, and of waiting for the cells, rounded up to a multiple of 5:

- words of the text at 150 a minute, an assumption: 238 is the mean for English non-fiction (Brysbaert, "How
  many words do we read per minute?", Journal of Memory and Language 109, 2019), and one works along here;
- lines of given code at 20 a minute, an assumption;
- each exercise by its level, which stands behind its name (`**TODO 10a.** *Easy.*`), or by minutes of its
  own (`*Hard, 40 minutes.*`), all assumptions;
- a minute for each prediction, and a minute for each question at the end, assumptions;
- nothing for a section whose heading begins with "Further", which a learner may leave out;
- the running time of the solution beyond its first minute, in which one reads on (an assumption);
  `build --execute` measures it (`solutions/instructor/seconds.yaml`).

Nobody has timed learners of these labs. Where minutes of other lessons were estimates, instructors took
longer: 6.5 hours in the place of 4.25 (datacarpentry/r-socialsci issue 75, 2018), "almost double"
(swcarpentry/make-novice issue 142, 2019; both read 2026-11-22). The guide passes this on.
"""

import math
import re
from pathlib import Path

import nbformat
import yaml

from lab_utils.common import files
from lab_utils.teach import marks

WORDS, CODE_LINES = 150, 20  # a minute
LEVELS = {"Easy": 4, "Medium": 8, "Hard": 15}  # minutes of an exercise
PREDICTION = QUESTION = 1  # minutes
UNMARKED = "Medium"
SECONDS = Path("solutions/instructor/seconds.yaml")
_EXERCISE = re.compile(
    r"\*\*TODO (\d+[a-z])\b[^*]*\*\*(?: \*(Easy|Medium|Hard)(?:, (\d+) minutes)?\.\*)?"
)
SPINE = 8  # labs of the one-day route, the first of the course
_BEHIND = f"An elective, behind the one-day route (labs 00 to {SPINE - 1:02d})."
_STATED = re.compile(
    r"^\*\*\d+ minutes\.\*\*"
    r"(?: Step \d of \d of the one-day route(?:, its last|; next: \[[^]]*\]\([^)]*\))\."
    rf"| {re.escape(_BEHIND)})?",
    re.M,
)


def of_lab(source: nbformat.NotebookNode, seconds: float, questions: int) -> int:
    """Minutes that a lab takes, by its marked notebook, the seconds of its solution, and its questions."""
    parts = [minutes for _, minutes in sections(source)]
    waiting = max(0.0, seconds - 60) / 60
    return 5 * math.ceil((sum(parts) + waiting + QUESTION * questions) / 5)


def sections(source: nbformat.NotebookNode) -> list[tuple[str, float]]:
    """Minutes of each section of a notebook, by its heading; "" is what stands above the first."""
    parts: list[tuple[str, float]] = [("", 0.0)]
    for cell in source.cells:
        if cell.cell_type == "markdown":
            head, *tail = re.split(r"^(?=## )", cell.source, flags=re.M)
            parts[-1] = parts[-1][0], parts[-1][1] + of_text(head)
            parts += [(part.partition("\n")[0][3:], of_text(part)) for part in tail]
        else:
            parts[-1] = parts[-1][0], parts[-1][1] + of_cell(cell)
    return [(name, 0.0 if name.startswith("Further") else own) for name, own in parts]


def of_cell(cell: nbformat.NotebookNode) -> float:
    """Minutes for one cell of a marked notebook, without its running time."""
    if cell.cell_type == "markdown":
        return of_text(cell.source)
    given = marks.REGION.sub("", cell.source)
    lines = sum(bool(line.strip()) for line in given.splitlines())
    return lines / CODE_LINES + PREDICTION * len(re.findall(r"# STARTER: predict\(", cell.source))


def of_text(text: str) -> float:
    """Minutes for a text in Markdown and the exercises that it sets; a TODO's first mention sets it."""
    text = _STATED.sub("", text)  # what the build writes itself
    text = re.sub(r"\]\([^)]*\)", "]", text)  # addresses are not read
    exercises: dict[str, int] = {}
    for id, level, stated in _EXERCISE.findall(text):
        exercises.setdefault(id, int(stated) if stated else LEVELS[level or UNMARKED])
    return len(text.split()) / WORDS + sum(exercises.values())


def seconds(root: Path) -> dict[str, int]:
    """How long each solution runs, by the lab's number ("09"), as measured; none where nothing is noted."""
    path = root / SECONDS
    return (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}


def note_seconds(root: Path, lab: str, took: int) -> None:
    """Enters how many seconds the solution of a lab, by its number, ran."""
    path = root / SECONDS
    comment = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    rows = [f'"{number}": {own}' for number, own in sorted((seconds(root) | {lab: took}).items())]
    files.write(path, "\n".join([*comment, *rows, ""]))


def stamp(source: nbformat.NotebookNode, name: str, minutes: int, titles: dict[str, str]) -> None:
    """Writes the minutes and the lab's place in the course into its title cell.

    Args:
        source: the notebook.
        name: of its file.
        minutes: of the lab.
        titles: the title of each notebook by file name, in the course's order.
    """
    place = f"**{minutes} minutes.** {_place(name, titles)}"
    title = source.cells[0]
    title.source = _STATED.sub(lambda _: place, title.source, count=1)


def _place(name: str, titles: dict[str, str]) -> str:
    """The lab's place on the route, in a sentence."""
    spine = list(titles)[:SPINE]
    if name not in spine:
        return _BEHIND
    step = spine.index(name) + 1
    sentence = f"Step {step} of {len(spine)} of the one-day route"
    if step == len(spine):
        return f"{sentence}, its last."
    after = spine[step]
    return f"{sentence}; next: [{after[:2]} · {titles[after]}]({after})."
