"""`make site`: a folder of sources for Jupyter Book 1, made of labs, solutions, rule pages and the glossary.

Nothing is written twice: notebooks and pages are copied from where they stand. The book runs nothing: what it
shows is what the solutions hold.
"""

import json
import re
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import yaml

from lab_utils.common import files
from lab_utils.dry_run import rules
from lab_utils.teach.setup_cell import Course

ROOT = Path(__file__).parents[3]
_OWN = Path(__file__).parent
_RULE = re.compile(r"\bTPU\d{3}\b")
_UNLINKED = ("a", "script", "style", "title", "svg", "button", "h1")
_REPORT = 2, "dry-spec"  # the cell of a solution whose report the first page shows


def write_source(folder: Path) -> None:
    """Writes the book's sources into `folder`, which is made new.

    Raises:
        OSError: a notebook is missing, or the folder cannot be written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for kind in ("labs", "solutions"):
        (folder / kind).mkdir(parents=True)
        for path in sorted((ROOT / kind).glob("*.ipynb")):
            (folder / kind / path.name).write_text(_notebook(path, kind), encoding="utf-8")
    (folder / "rules").mkdir()
    for id in rules.catalogue():
        (folder / "rules" / f"{id}.md").write_text(rules.page(id), encoding="utf-8")
    (folder / "rules" / "index.md").write_text("\n".join(_rule_list()), encoding="utf-8")
    shutil.copy(_OWN / "glossary.md", folder)
    (folder / "_static").mkdir()  # from there the book takes style sheets by itself
    shutil.copy(_OWN / "site.css", folder / "_static")
    front = (_OWN / "index.md").read_text(encoding="utf-8")
    front = front.replace("TRACKS", "\n".join(_tracks())).replace("REPORT", _report())
    (folder / "index.md").write_text(front, encoding="utf-8")
    (folder / "_toc.yml").write_text(yaml.safe_dump(_contents(), sort_keys=False), encoding="utf-8")
    (folder / "_config.yml").write_text(
        yaml.safe_dump(_config(), sort_keys=False), encoding="utf-8"
    )


def link_rules(folder: Path) -> int:
    """Makes each id of a rule in built pages a link to the rule's page; returns how many."""
    count = 0
    for path in sorted(folder.rglob("*.html")):
        if path.parent.name not in ("labs", "solutions", "rules", folder.name):
            continue
        up = "" if path.parent == folder else "../"
        text, linked = _linked(path.read_text(encoding="utf-8"), f"{up}rules/", path.stem)
        if linked:
            files.write(path, text)
        count += linked
    return count


def _linked(html: str, rules_at: str, own: str) -> tuple[str, int]:
    count, open_tags, parts = 0, [], []

    def link(found: re.Match) -> str:
        nonlocal count
        if found[0] == own or found[0] not in rules.catalogue():
            return found[0]
        count += 1
        # Important, since a report's own sheet is.
        return (
            f'<a style="color: inherit !important" href="{rules_at}{found[0]}.html">{found[0]}</a>'
        )

    head, body, rest = html.partition("<article")
    for part in re.split(r"(<!--.*?-->|<[^>]*>)", body + rest, flags=re.S):
        if tag := re.match(r"<(/?)(\w+)", part):
            if tag[2] in _UNLINKED and not tag[1] and not part.endswith("/>"):
                open_tags.append(tag[2])
            elif tag[1] and open_tags and tag[2] == open_tags[-1]:
                open_tags.pop()
            parts.append(part)
        else:
            parts.append(part if open_tags else _RULE.sub(link, part))
    return head + "".join(parts), count


def _notebook(path: Path, kind: str) -> str:
    """A notebook for the book: solutions say so in their title, links into the clone become code.

    The set-up cell, the same in all labs, is folded.
    """
    made = json.loads(path.read_text(encoding="utf-8"))
    for cell in made["cells"]:
        if cell["cell_type"] == "code" and "".join(cell["source"]).endswith("\nready()"):
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
        elif cell["cell_type"] == "markdown":
            source = re.sub(
                r"\[([^\]]+)\]\((?!https?:|#)([^)]*)\)", _inside, "".join(cell["source"])
            )
            if kind == "solutions":
                source = re.sub(r"^# (\d\d · .+)$", r"# \1, solved", source, flags=re.M)
            cell["source"] = source
    return json.dumps(made)


def _inside(found: re.Match) -> str:
    """A link to a file of the clone: one to a lab works in the book, others are named."""
    name = found[2].rpartition("/")[2]
    return f"[{found[1]}]({name})" if name.endswith(".ipynb") else f"{found[1]} (`{found[2]}`)"


def _rule_list() -> Iterator[str]:
    yield "# Rules of the dry run\n\nEach finding bears the id of a rule. A number is never used again.\n"
    for stage, group in groupby(rules.catalogue().values(), key=lambda rule: rule.stage):
        yield f"## {str(stage).capitalize()}\n\n| rule | what it says | severity |\n| --- | --- | --- |"
        yield from (f"| [{r.id}]({r.id}.md) | {r.title} | {r.severity} |" for r in group)
        yield ""


def _tracks() -> Iterator[str]:
    from lab_utils.teach import guide  # here, so that `command` can tell what is missing

    yield "| track | for whom | hours | labs |\n| --- | --- | --- | --- |"
    for plan in guide.plans(ROOT)["plans"]:
        labs = [f"{lab:02d}" for session in plan["sessions"] for lab, _ in guide.parts(session)]
        told = f"{plan['for']} {plan.get('next', '')}"
        yield f"| {plan['title']} | {told} | {plan['hours']} | {' '.join(labs)} |"


def _report() -> str:
    """A report as the solution of a lab shows it."""
    lab, cell = _REPORT
    (path,) = (ROOT / "solutions").glob(f"{lab:02d}_*.ipynb")
    for each in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if each["id"] == cell:
            shown = ("".join(out.get("data", {}).get("text/html", "")) for out in each["outputs"])
            return next(html for html in shown if "lu-dry-run" in html)
    raise FileNotFoundError(f"the solution of lab {lab:02d} has no cell {cell}")


def _contents() -> dict:
    def chapters(kind: str) -> list[dict]:
        paths = sorted((ROOT / kind).glob("*.ipynb"))
        return [{"file": f"{kind}/{path.stem}"} for path in paths]

    rule_pages = [{"file": f"rules/{id}"} for id in rules.catalogue()]
    return {
        "format": "jb-book",
        "root": "index",
        "parts": [
            {"caption": "Labs", "chapters": chapters("labs")},
            {"caption": "Solutions", "chapters": chapters("solutions")},
            {
                "caption": "To look up",
                "chapters": [
                    {"file": "glossary"},
                    {"file": "rules/index", "sections": rule_pages},
                ],
            },
        ],
    }


def _config() -> dict:
    config = yaml.safe_load((_OWN / "config.yml").read_text(encoding="utf-8"))
    course = Course.of(ROOT)
    if course.address:
        config["repository"] = {"url": course.address}
        config["html"]["use_repository_button"] = True
    return config
