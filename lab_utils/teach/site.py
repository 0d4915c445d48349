"""`make site`: web pages of the labs, to read without a notebook, into out/site.

Beside each lab: an index with the route, the glossary, the other pages of labs/, and the dry run's rules.
Links between them lead to pages.
"""

import argparse
import re
import sys
from pathlib import Path

import markdown
import nbformat
from markupsafe import Markup

from lab_utils.check import sources
from lab_utils.common import command, files
from lab_utils.dry_run import rules
from lab_utils.teach import minutes, pages

ROOT = Path(__file__).parents[2]
_EXTENSIONS = ["fenced_code", "tables", "toc"]
_LINK = re.compile(r"\]\((?:\.\./labs/)?([\w.-]+)\.(?:ipynb|md)(#[\w-]*)?\)")
_BACK = '<p style="margin: 1em"><a href="index.html">All labs</a></p>'


def texts(root: Path) -> dict[str, str]:
    """Every page by the name of its file."""
    contents, titles = {}, {}
    for path in sorted((root / "labs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        titles[path.stem] = text.partition("\n")[0].removeprefix("# ")
        contents[f"{path.stem}.html"] = _page(titles[path.stem], _html(text.partition("\n")[2]))
    catalogue = rules.catalogue()
    body = "\n<hr>\n".join(
        f'<section id="{id}">{_html(rules.page(id), id)}</section>' for id in catalogue
    )
    heads = "".join(f'<li><a href="#{i}">{i}</a> {r.title}</li>' for i, r in catalogue.items())
    contents["rules.html"] = _page("Rules of the dry run", f"<ul>{heads}</ul>{body}")
    labs = [
        (number, entry, f"{path.stem}.html")
        for (number, entry), path in zip(
            sources.labs().items(), sorted((root / "labs").glob("*.ipynb")), strict=True
        )
    ]
    for number, entry, name in labs:
        path = root / "labs" / f"{name.removesuffix('.html')}.ipynb"
        contents[name] = _lab(path, f"{number:02d} · {entry['title']}")
    routes = {"One day": labs[: minutes.SPINE], "Electives": labs[minutes.SPINE :]}
    values = {"title": "TPU porting labs", "routes": routes, "others": titles}
    return contents | {"index.html": pages.render("site.html", **values)}


def _page(title: str, body: str) -> str:
    return pages.render("site_page.html", title=title, body=Markup(_BACK + body))


def _linked(text: str) -> str:
    """Markdown whose links lead to pages instead of notebooks and Markdown."""
    return _LINK.sub(lambda link: f"]({link[1]}.html{link[2] or ''})", text)


def _html(text: str, prefix: str = "") -> str:
    """Markdown as HTML; ids of headings begin with `prefix`, where a page has several texts."""
    settings = {
        "toc": {"slugify": lambda value, _: prefix + "-".join(re.findall(r"\w+", value.lower()))}
    }
    return markdown.markdown(_linked(text), extensions=_EXTENSIONS, extension_configs=settings)


def _lab(path: Path, title: str) -> str:
    """A lab as it is handed out."""
    from nbconvert import HTMLExporter

    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["title"] = title
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = _linked(cell.source)
    exporter = HTMLExporter(extra_loaders=[pages.LOADER], template_file="site_lab.html")
    return exporter.from_notebook_node(notebook, {"back": _BACK})[0]


def main() -> int:
    """Runs the command line; returns 1 where a page cannot be made or written."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.teach.site", description="Web pages of the labs."
    )
    parser.add_argument("folder", type=files.path_argument)
    folder = parser.parse_args().folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts(ROOT).items():
            files.write(folder / name, text)
    except (OSError, ValueError) as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    print(folder / "index.html")
    return 0


if __name__ == "__main__":
    command.run(main)
