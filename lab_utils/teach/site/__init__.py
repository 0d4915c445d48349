"""`make site`: a folder of sources for Jupyter Book 1, made of labs, solutions, rule pages and the glossary.

Nothing is written twice: notebooks and pages are copied from where they stand. The book runs nothing: what it
shows is what the solutions hold.
"""

import json
import re
import shutil
from itertools import groupby
from pathlib import Path

import yaml

from lab_utils.common import files
from lab_utils.dry_run import rules
from lab_utils.teach import guide
from lab_utils.teach.setup_cell import Course

ROOT = Path(__file__).parents[3]
_OWN = Path(__file__).parent
_REPORT = 2, "dry-spec"  # the cell of a solution whose report the first page shows
# What holds no links, tags, or the id of a rule.
_RULE = re.compile(
    r"<!--.*?-->|<(a|script|style|title|svg|button|h1)\b.*?</\1>|<[^>]*>|\b(TPU\d{3})\b", re.S
)
_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)]*)\)")  # to a file of the clone


def write_source(folder: Path) -> None:
    """Writes the book's sources into `folder`, which is made new.

    Raises:
        OSError: a notebook is missing, or the folder cannot be written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    paths = {kind: sorted((ROOT / kind).glob("*.ipynb")) for kind in ("labs", "solutions")}
    texts = {f"{kind}/{path.name}": _notebook(path, kind) for kind in paths for path in paths[kind]}
    pages = sorted((ROOT / "labs").glob("*.md"))
    texts |= {f"labs/{page.name}": page.read_text("utf-8") for page in pages}
    texts |= {f"rules/{id}.md": rules.page(id) for id in rules.catalogue()}
    texts |= {name: (_OWN / name).read_text("utf-8") for name in ("glossary.md", "index.md")}
    texts["_static/site.css"] = (_OWN / "site.css").read_text("utf-8")
    texts["rules/index.md"] = _rule_list()
    front = texts["index.md"].replace("TRACKS", _tracks())
    texts["index.md"] = front.replace("REPORT", _report())
    look_up = {
        "file": "rules/index",
        "sections": [{"file": f"rules/{id}"} for id in rules.catalogue()],
    }
    parts = [
        {
            "caption": kind.capitalize(),
            "chapters": [{"file": f"{kind}/{p.stem}"} for p in paths[kind]],
        }
        for kind in paths
    ]
    places = [{"file": f"labs/{page.stem}"} for page in pages]
    parts.append({"caption": "To look up", "chapters": [{"file": "glossary"}, *places, look_up]})
    contents = {"format": "jb-book", "root": "index", "parts": parts}
    config = yaml.safe_load((_OWN / "config.yml").read_text("utf-8"))
    if address := Course.of(ROOT).address:
        config["repository"] = {"url": address}
        config["html"]["use_repository_button"] = True
    texts["_toc.yml"] = yaml.safe_dump(contents, sort_keys=False)
    texts["_config.yml"] = yaml.safe_dump(config, sort_keys=False)
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def link_rules(folder: Path) -> int:
    """Makes each id of a rule in built pages a link to the rule's page; returns how many."""
    count = 0
    for path in sorted(folder.rglob("*.html")):
        if path.parent.name in ("labs", "solutions", "rules", folder.name):
            rules_at = "rules/" if path.parent == folder else "../rules/"
            text, linked = _linked(path.read_text(encoding="utf-8"), rules_at, path.stem)
            count += linked
            if linked:
                files.write(path, text)
    return count


def _linked(html: str, rules_at: str, page: str) -> tuple[str, int]:
    """A page with links in its article, and their number; not to the page itself."""
    head, start, article = html.partition("<article")
    count = 0

    def link(match: re.Match) -> str:
        nonlocal count
        if match[2] in (None, page) or match[2] not in rules.catalogue():
            return match[0]
        count += 1  # the colour is important, since a report's own sheet is
        return (
            f'<a style="color: inherit !important" href="{rules_at}{match[2]}.html">{match[2]}</a>'
        )

    return head + _RULE.sub(link, start + article), count


def _notebook(path: Path, kind: str) -> str:
    """A notebook for the book: solutions say so in their title, links into the clone become code.

    The set-up cell, the same in all labs, is folded.
    """
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.endswith("\nready()"):
            cell["metadata"]["tags"] = [*cell["metadata"].get("tags", []), "hide-input"]
        elif cell["cell_type"] == "markdown":
            cell["source"] = _LINK.sub(_inside, source)
            if kind == "solutions":
                cell["source"] = re.sub(
                    r"^# (\d\d · .+)$", r"# \1, solved", cell["source"], flags=re.M
                )
    return json.dumps(notebook)


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


def _report() -> str:
    """A report as the solution of a lab shows it."""
    lab, id = _REPORT
    (path,) = (ROOT / "solutions").glob(f"{lab:02d}_*.ipynb")
    (cell,) = (c for c in json.loads(path.read_text("utf-8"))["cells"] if c["id"] == id)
    shown = ("".join(output.get("data", {}).get("text/html", "")) for output in cell["outputs"])
    return next(html for html in shown if "lu-dry-run" in html)
