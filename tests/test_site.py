"""The site: its sources name each lab and rule once; slowly, the book itself."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab_utils.dry_run import rules
from lab_utils.teach import site

ROOT = Path(__file__).parents[1]


def test_sources_hold_each_notebook_and_rule(tmp_path):
    site.write_source(tmp_path / "source")
    pages = {str(path.relative_to(tmp_path / "source")) for path in tmp_path.rglob("*.*")}
    labs = {f"{path.parent.name}/{path.name}" for path in ROOT.glob("labs/*.*")}
    assert pages >= labs | {name.replace("labs/", "solutions/") for name in labs if "_" in name}
    assert pages >= {f"rules/{id}.md" for id in rules.catalogue()} | {"_toc.yml", "glossary.md"}
    front = (tmp_path / "source" / "index.md").read_text()
    assert "TRACKS" not in front and "| Two hours |" in front


def test_links_into_the_clone_become_names(tmp_path):
    path = tmp_path / "02_x.ipynb"
    text = "# 02 · X\n\n[a](../lab_utils/a.py) [b](03_y.ipynb) [c](https://c.org)"
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": [text]}]}))
    (cell,) = json.loads(site.notebook(path, "solutions"))["cells"]
    wanted = "# 02 · X, solved\n\na (`../lab_utils/a.py`) [b](03_y.ipynb) [c](https://c.org)"
    assert cell["source"] == wanted


def test_the_set_up_cell_of_each_notebook_is_folded():
    for path in (ROOT / "labs").glob("*.ipynb"):
        cells = json.loads(site.notebook(path, "labs"))["cells"]
        (first, *others) = [cell for cell in cells if cell["cell_type"] == "code"]
        assert "hide-input" in first["metadata"]["tags"]
        assert not [cell for cell in others if "hide-input" in cell["metadata"].get("tags", [])]


@pytest.mark.slow
def test_the_book_is_built_without_a_warning_and_asks_nothing_of_the_network(tmp_path):
    ready = next((Path(sys.prefix)).glob(".ready-*"), Path("none"))
    command = ["make", "-o", ready, "site", f"SITE={tmp_path}", f"VENV={sys.prefix}"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if "No solution found" in built.stderr or "Failed to fetch" in built.stderr:
        pytest.skip("Jupyter Book cannot be installed here")
    assert built.returncode == 0, built.stderr[-3000:]
    pages = {path: path.read_text() for path in (tmp_path / "_build/html").rglob("*.html")}
    assert (tmp_path / "_build/html/searchindex.js").exists()
    for path, text in pages.items():
        loaded = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*', text)
        assert not [each for each in loaded if "canonical" not in each], path
