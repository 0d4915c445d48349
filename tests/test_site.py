"""The web pages of the labs: each link leads somewhere, and the index to all of them."""

import html
import re
from pathlib import Path

import pytest

from lab_utils.check import sources
from lab_utils.dry_run import rules
from lab_utils.teach import site

ROOT = Path(__file__).parents[1]
pytest.importorskip("nbconvert")


def test_every_link_leads_to_a_page_and_to_a_place_on_it():
    contents = site.texts(ROOT)
    ids = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in contents.items()}
    lost, found = [], 0
    for name, text in contents.items():
        for address in map(html.unescape, re.findall(r'<a [^>]*?href="([^"]*)"', text)):
            if "://" in address or address.startswith(("mailto:", "data:")):
                continue
            page, _, place = address.partition("#")
            found += 1
            if place and place not in ids.get(page or name, ()) or (page or name) not in contents:
                lost.append((name, address))
    assert not lost and found > 100
    pages = {path.stem for kind in ("ipynb", "md") for path in (ROOT / "labs").glob(f"*.{kind}")}
    linked = set(re.findall(r'href="([\w.]+)\.html"', contents["index.html"]))
    assert linked == pages | {"rules"}
    assert set(rules.catalogue()) <= ids["rules.html"]


def test_a_page_shows_its_title_and_fetches_nothing():
    """Learners read it in rooms without a network, too; a script that cannot be fetched holds a page up."""
    contents = site.texts(ROOT)
    for name, text in contents.items():
        fetched = re.findall(
            r'<(?:script|link|img|iframe)\b[^>]*?(?:src|href)="(?!data:)[^"]*"', text
        )
        assert not fetched, f"{name} fetches {fetched}"
    for number, lab in sources.labs().items():
        titles = [
            text for text in contents.values() if f"<title>{number:02d} · {lab['title']}<" in text
        ]
        assert len(titles) == 1
