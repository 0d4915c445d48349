"""`make site`: a folder of sources for Jupyter Book 1, made of labs, solutions, rule pages and the glossary.

Nothing is written twice: notebooks and pages are copied from where they stand. The book runs nothing: what it
shows is what the solutions hold.
"""

import json
import re
import shutil
import sys
from itertools import groupby
from pathlib import Path

from lab_utils.dry_run import rules
from lab_utils.teach import guide

ROOT = Path(__file__).parents[2]
_BOOK = Path(__file__).with_name("book")  # what is written for the book only
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]*)\)")  # to a file of the clone


def write_source(folder: Path) -> None:
    """Writes the book's sources into `folder`, which is made new.

    Raises:
        OSError: a notebook is missing, or the folder cannot be written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(_BOOK, folder)
    front = (_BOOK / "index.md").read_text("utf-8")
    texts = {"index.md": front.replace("TRACKS", _tracks()), "rules/index.md": _rule_list()}
    texts |= {f"rules/{id}.md": rules.page(id) for id in rules.catalogue()}
    texts |= {f"labs/{page.name}": page.read_text("utf-8") for page in (ROOT / "labs").glob("*.md")}
    for kind in ("labs", "solutions"):
        for path in (ROOT / kind).glob("*.ipynb"):
            texts[f"{kind}/{path.name}"] = notebook(path, kind)
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def notebook(path: Path, kind: str) -> str:
    """A notebook for the book: solutions say so in their title, links into the clone become code.

    The set-up cell, the same in all labs, is folded.
    """
    content = json.loads(path.read_text(encoding="utf-8"))
    for cell in content["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.endswith("\nready()"):
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
        elif cell["cell_type"] == "markdown":
            source = _LINK.sub(_inside, source)
            if kind == "solutions":
                source = re.sub(r"^# (\d\d · .+)$", r"# \1, solved", source, flags=re.M)
            cell["source"] = source
    return json.dumps(content)


def _inside(match: re.Match) -> str:
    """A link to a file of the clone: one to a lab or a page beside it works in the book, others are named."""
    name = match[2].rpartition("/")[2]
    works = name.endswith(".ipynb") or (ROOT / "labs" / match[2]).exists()
    return f"[{match[1]}]({name})" if works else f"{match[1]} (`{match[2]}`)"


def _rule_list() -> str:
    lines = ["# Rules of the dry run\n\nA number is never used again.\n"]
    for stage, group in groupby(rules.catalogue().values(), key=lambda rule: rule.stage):
        lines.append(f"## {str(stage).capitalize()}\n")
        lines.append("| rule | what it says | severity |\n| --- | --- | --- |")
        lines += [f"| [{r.id}]({r.id}.md) | {r.title} | {r.severity} |" for r in group] + [""]
    return "\n".join(lines)


def _tracks() -> str:
    lines = ["| track | for whom | hours | labs |\n| --- | --- | --- | --- |"]
    for plan in guide.plans(ROOT)["plans"]:
        labs = " ".join(f"{lab:02d}" for s in plan["sessions"] for lab in s["labs"])
        about = f"{plan['for']} {plan.get('next', '')}"
        lines.append(f"| {plan['title']} | {about} | {plan['hours']} | {labs} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_source(Path(sys.argv[1]))
