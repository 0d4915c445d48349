"""The questions at the end of each lab, from solutions/instructor/quiz.yaml.

Each answer is an HTML <details>: what is to be said of it shows when it is chosen. That needs no server, no
script and no trust in the notebook.
"""

import zlib
from pathlib import Path
from typing import Any

import nbformat
import yaml

from lab_utils.notebook import look

QUIZ = Path("solutions/instructor/quiz.yaml")
_HEAD = "## Questions\n\nOpen an answer to see our comment. Your answers are not counted."


def questions(root: Path) -> dict[str, list[dict[str, Any]]]:
    """The questions by the lab's number ("09"); none where the file is missing."""
    path = root / QUIZ
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.exists() else {}


def cell(entries: list[dict[str, Any]]) -> nbformat.NotebookNode:
    """The questions of one lab as a cell of text."""
    blocks = [_block(number, entry) for number, entry in enumerate(entries, 1)]
    # A <details> has no margin: a question would stand nearer to the answers above it than to its own.
    text = f"{_HEAD}\n\n" + "\n<br>\n\n".join(blocks)
    return nbformat.v4.new_markdown_cell(text, id="quiz")


def _block(number: int, question: dict[str, Any]) -> str:
    """One question. The right answer's place follows from the question, so that a build repeats it."""
    answers = [("No.", text, why) for text, why in question["wrong"]]
    place = zlib.crc32(question["ask"].encode()) % (len(answers) + 1)
    answers.insert(place, ("Yes.", *question["right"]))
    lines = [f"**{number}.** {question['ask']}\n"]
    for verdict, text, why in answers:
        # Inside HTML, Markdown's marks mean nothing.
        shown, body = look.with_code(str(text)), look.with_code(f"{verdict} {why}")
        lines.append(f"<details><summary>{shown}</summary>{body}</details>")
    return "\n".join(lines)
