"""Pages of their own in a real browser, light and dark, wide and narrow: report, class, rules, guide."""

import itertools
import subprocess

import browser
import dry_run_reports
import made_up_class
import pytest

from lab_utils.common.source import Place
from lab_utils.dry_run.records import LineCost
from lab_utils.dry_run.report import html
from lab_utils.teach import guide, site, slides
from lab_utils.teach.grade import page, runs

ROOT = made_up_class.ROOT
pytestmark = pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING)


def class_pages():
    says = {
        "0": ("incorrect", "The optimizer is not wrapped: each core would train alone."),
        "1": ("correct", "Right."),
        "?": ("cannot be checked here", "No TPU compiler."),
        "!": ("timed out", "It took longer than 180 s."),
        "-": ("not attempted", "No cell defines make_optimizer."),
    }
    table = []
    for who, points in (
        ("Ann Lee", "11001"),
        ("Bob", "1?!-1"),
        ("A very long name, " * 4, "00000"),
    ):
        results = (runs.Result(*says[point]) for point in itertools.cycle(points))
        graded = runs.Graded(2, dict(zip(made_up_class.TODOS, results, strict=False)))
        table.append(page.Row(who, {2: graded}, [graded.status], []))
    return {"class": page.of_class(table), "teacher": page.of_teacher(table)}


def look_at(tab, name, tmp_path):
    """Whether all can be read in both themes, and nothing runs out of a narrow window."""
    for theme in ("light", "dark"):
        tab.theme(theme)
        tab.width(1100)
        tab.picture(browser.pictures(tmp_path) / f"{name}_{theme}.png")
        assert tab.low_contrast("body") == []
    tab.width(480)
    tab.picture(browser.pictures(tmp_path) / f"{name}_narrow.png")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 480
    assert tab.overflowing("body") == []


def shown(tab, path, text):
    path.write_text(text, encoding="utf-8")
    tab.open(path.as_uri())
    tab.wait(f"document.readyState === 'complete' && location.pathname.endsWith({path.name!r})")


def test_a_report_can_be_read_in_both_themes_and_on_a_narrow_screen(tmp_path):
    bad = "<p style='background:#fff;color:#999'>grey</p><div style='width:900px'>wide</div>"
    with browser.Browser(tmp_path / "profile") as tab:
        shown(tab, tmp_path / "bad.html", f"<!DOCTYPE html><main>{bad}</main>")
        tab.width(480)
        (grey,) = tab.low_contrast("body")
        assert grey.endswith("P: grey") and tab.overflowing("body")
        report = dry_run_reports.with_findings()
        text = "loss = v1.losses.sparse_softmax_cross_entropy_with_logits(labels, inference(x))"
        place = Place("cell In [4]", 20, function="model_fn", code=text)
        report.compiled.append(dry_run_reports.train_step())
        report.compiled[-1].lines.append(LineCost(place, 40_330_239.0, 2.77e9, 22.4e9))
        shown(tab, tmp_path / "report.html", html.page(report))
        assert "sparse_softmax" in tab.evaluate("document.querySelector('main, body').innerText")
        look_at(tab, "report", tmp_path)


@pytest.mark.slow
def test_pages_can_be_read(tmp_path):
    reports = (dry_run_reports.ready, dry_run_reports.out_of_memory)
    made = {f"report_{make.__name__}": html.page(make()) for make in reports}
    made |= class_pages()
    made |= {name.removesuffix(".html"): text for name, text in guide.texts(ROOT).items()}
    with browser.Browser(tmp_path / "profile") as tab:
        for name, text in made.items():
            shown(tab, tmp_path / f"{name}.html", text)
            look_at(tab, name, tmp_path)


@pytest.mark.slow
def test_pages_of_the_site_can_be_read(tmp_path):
    with browser.Browser(tmp_path / "profile") as tab:
        for name, text in site.texts(ROOT).items():
            tab.width(1280)
            shown(tab, tmp_path / name, text)
            for theme in ("light", "dark"):
                tab.theme(theme)
                assert tab.low_contrast("body") == [], (name, theme)
            tab.width(390)
            assert tab.evaluate("document.documentElement.scrollWidth") <= 390, name


@pytest.mark.slow
def test_no_slide_is_higher_or_wider_than_the_screen(tmp_path):
    reveal = tmp_path / "node_modules" / "reveal.js"
    command = ["npm", "install", "--silent", "--prefix", str(tmp_path), "reveal.js@5.2.1"]
    try:
        subprocess.run(command, capture_output=True, timeout=120, check=True)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("needs reveal.js by npm")
    sizes = "(s => [s.scrollHeight <= 720, s.scrollWidth <= 1280])(Reveal.getCurrentSlide())"
    with browser.Browser(tmp_path / "profile") as tab:
        tab.width(1280, 720)
        for lab in slides.read(ROOT):
            shown(tab, tmp_path / f"{lab}.html", slides.deck(ROOT, lab, reveal))
            tab.wait("Reveal.isReady()")
            for number in range(tab.evaluate("Reveal.getTotalSlides()")):
                tab.evaluate(f"Reveal.slide({number})")
                assert tab.evaluate(sizes) == [True, True], (lab, number)
                assert tab.low_contrast(".present") == []
