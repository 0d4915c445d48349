"""What people see: solutions in JupyterLab before they are trusted, in a real browser, light and dark."""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import browser
import pytest

ROOT = Path(__file__).parents[1]
SHOWN = ("02_four_changes", "07_flowers", "08_performance")
RUN = "04_metrics_and_the_host"  # a short lab whose last cell shows a report
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
SIDEBAR = "document.querySelector('.jp-SideBar.jp-mod-left .lm-TabBar-tab.lm-mod-current')"
MENU = "[...document.querySelectorAll('%s')].find(e => e.innerText.trim() === '%s')"
OUTPUTS = ".jp-RenderedHTML"  # reports, and what checks say
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not browser.CHROMIUM, reason=browser.MISSING),
]


@contextlib.contextmanager
def jupyterlab(folder: Path, state: Path, theme: str) -> Iterator[str]:
    """JupyterLab on `folder`, with nothing trusted and every cell drawn at once; its address."""
    for plugin, settings in {
        "apputils-extension/themes": {"theme": THEMES[theme]},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        "notebook-extension/tracker": {"windowingMode": "none"},
    }.items():
        file = state / "settings" / "@jupyterlab" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {
        "HOME": state,
        "JUPYTER_CONFIG_DIR": state / "config",
        "JUPYTER_DATA_DIR": state / "data",
        "JUPYTER_RUNTIME_DIR": state / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": state / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": state / "workspaces",
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
    command += [
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={folder}",
        "--ServerApp.disable_check_xsrf=True",
    ]
    with open(state / "log", "w") as log:
        server = subprocess.Popen(
            command,
            env=os.environ | {name: str(path) for name, path in own.items()},
            stdout=log,
            stderr=log,
        )
    try:
        address = f"http://127.0.0.1:{port}/lab"

        def answers() -> bool:
            with contextlib.suppress(urllib.error.URLError):
                return urllib.request.urlopen(address).status == 200
            return False

        browser.wait_for(answers, 90)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:  # it waits for a thread of its own now and then
            server.kill()
            server.wait()


def close_side_bar(tab: browser.Browser) -> None:
    """A key that comes before JupyterLab listens is lost, so it is pressed until it helps."""

    def closed() -> bool:
        if tab.evaluate(f"!{SIDEBAR}"):
            return True
        tab.press("b", control=True)
        time.sleep(2)
        return False

    browser.wait_for(closed, 90, "the side bar is open")


# In pixels, of the bars of a step's lines; 0 where there are none.
LONGEST_BAR = """Math.max(0, ...[...document.querySelectorAll('.lu-dry-run td.share span')]
  .map(bar => bar.getBoundingClientRect().width))"""


@pytest.mark.parametrize("theme", THEMES)
def test_untrusted_solutions_show_legible_reports(tmp_path, theme):
    folder = tmp_path / "solutions"
    folder.mkdir()
    for name in SHOWN:
        shutil.copy(ROOT / "solutions" / f"{name}.ipynb", folder)
    with jupyterlab(folder, tmp_path, theme) as address:
        for name in SHOWN:
            with browser.Browser(tmp_path / name) as tab:
                tab.width(1100)
                tab.open(f"{address}/tree/{name}.ipynb?reset")
                tab.wait("document.querySelectorAll('.lu-dry-run').length")
                # So it is untrusted.
                tab.wait("!document.querySelector('.lu-dry-run style')")
                badge = (
                    "getComputedStyle(document.querySelector('.lu-dry-run .badge')).backgroundColor"
                )
                assert tab.evaluate(badge) in ("rgb(30, 107, 52)", "rgb(179, 38, 30)")
                assert tab.evaluate(LONGEST_BAR) > 40
                tab.evaluate("document.querySelector('.lu-dry-run').scrollIntoView()")
                tab.picture(browser.pictures(tmp_path) / f"{name}_{theme}.png")
                assert tab.low_contrast(OUTPUTS) == []
                close_side_bar(tab)
                tab.width(480)
                tab.wait("document.querySelector('.lu-dry-run').clientWidth < 420")
                assert tab.overflowing(".lu-dry-run") == []
                tab.picture(browser.pictures(tmp_path) / f"{name}_{theme}_narrow.png")


def end_kernels(address: str) -> None:
    """Each page starts one, and it outlives its page."""
    kernels = address.replace("/lab", "/api/kernels")
    with urllib.request.urlopen(kernels) as answer:
        for each in json.load(answer):
            urllib.request.urlopen(
                urllib.request.Request(f"{kernels}/{each['id']}", method="DELETE")
            )


# JupyterLab joins neighbouring streams, so what is counted are the cells with outputs.
DRAWN = """(([cells, outputs]) => document.querySelectorAll('.jp-Notebook .jp-Cell').length === cells
  && [...document.querySelectorAll('.jp-CodeCell')]
    .filter(cell => cell.querySelector('.jp-OutputArea-output')).length >= outputs
  && !document.querySelector('.jp-MarkdownCell:not(.jp-mod-rendered)')
  && [...document.images].every(image => image.complete))"""
# It shows a traceback as it does what a program writes to stderr, which no solution keeps.
FAULTS = """[
  ...[...document.querySelectorAll('[data-mime-type*=stderr]')].map(e => e.innerText.slice(-200)),
  ...[...document.images].filter(e => !e.naturalWidth).map(e => 'not loaded: ' + e.src.slice(0, 80)),
  ...[...document.querySelectorAll('html, .jp-WindowedPanel-outer, .jp-OutputArea-output')]
    .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => `${e.tagName}: ${e.scrollWidth} pixels wide`)]"""


@pytest.mark.parametrize("theme", THEMES)
def test_each_solution_opens_with_its_outputs(tmp_path, theme):
    """No cell shows an error, all pictures are there, and nothing is wider than its page."""
    bad = json.loads((ROOT / "solutions" / f"{RUN}.ipynb").read_text(encoding="utf-8"))
    wide = f"<img src='missing.png'><p>{'w' * 999}</p>"
    error = {"output_type": "error", "ename": "E", "evalue": "e", "traceback": ["a fault"]}
    html = {"output_type": "display_data", "data": {"text/html": wide}, "metadata": {}}
    next(cell for cell in bad["cells"] if cell["cell_type"] == "code")["outputs"] = [error, html]
    folder = tmp_path / "solutions"
    shutil.copytree(ROOT / "solutions", folder, ignore=lambda *_: ["source", "instructor"])
    (folder / "bad.ipynb").write_text(json.dumps(bad), encoding="utf-8")
    found = {}
    with (
        jupyterlab(folder, tmp_path, theme) as address,
        browser.Browser(tmp_path / "profile") as tab,
    ):
        for path in sorted(folder.glob("*.ipynb")):
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            outputs = sum(bool(cell.get("outputs")) for cell in cells)
            tab.open(f"{address}/tree/{path.name}?reset")
            tab.wait(f"{DRAWN}([{len(cells)}, {outputs}])")
            found[path.stem] = tab.evaluate(FAULTS) + tab.low_contrast(OUTPUTS)
            end_kernels(address)
    assert len(found.pop("bad")) >= 3, "the error, the picture that is not there, the width"
    assert len(found) == 18 and not any(found.values()), found


def kernel_is_idle(address: str) -> bool:
    """Whether the server has a kernel that a page is connected to. The page alone says "idle" too early."""
    with urllib.request.urlopen(address.replace("/lab", "/api/kernels")) as answer:
        kernels = json.load(answer)
    return any(each["execution_state"] == "idle" and each["connections"] for each in kernels)


def run_all(tab: browser.Browser, prompts: str) -> None:
    """By the menu, which opens where it is clicked on only when the page is at rest: so until it helps."""

    def begun() -> bool:
        tab.click(MENU % (".lm-MenuBar-itemLabel", "Run"))
        tab.click(MENU % (".lm-Menu-itemLabel", "Run All Cells"))
        time.sleep(3)
        return tab.evaluate(f"/[*\\d]/.test({prompts})")

    browser.wait_for(begun, 60, "no cell runs")


def test_a_lab_is_run_whole_and_each_outcome_is_as_expected(tmp_path):
    """Run All on an untouched lab: every TODO is open, no cell fails, and the report has its bars."""
    folder = tmp_path / "labs"
    folder.mkdir()
    shutil.copy(ROOT / "labs" / f"{RUN}.ipynb", folder)
    with (
        jupyterlab(folder, tmp_path, "dark") as address,
        browser.Browser(tmp_path / "profile") as tab,
    ):
        tab.open(f"{address}/tree/{RUN}.ipynb?reset")
        tab.wait("document.querySelectorAll('.jp-CodeCell').length > 5")
        browser.wait_for(lambda: kernel_is_idle(address), 120, "no kernel")
        prompts = (
            "[...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(e => e.innerText)"
        )
        run_all(tab, prompts)
        tab.wait(f"!{prompts}.join().includes('*')", 400)  # also where a cell has failed
        assert not tab.evaluate(
            "[...document.querySelectorAll('[data-mime-type*=error], [data-mime-type*=stderr]')]"
            ".map(e => e.innerText)"
        )
        shown = filter(None, tab.evaluate(prompts))  # a folded cell shows none
        numbers = [int(prompt.strip("[]:")) for prompt in shown]
        cells = tab.evaluate("document.querySelectorAll('.jp-CodeCell').length")
        assert numbers == sorted(numbers) and numbers[-1] == cells
        said = tab.evaluate(
            "[...document.querySelectorAll('.jp-OutputArea-output')].map(e => e.innerText).join('\\n')"
        )
        assert re.findall(r"TODO (4\w): ([\w ]+)", said) == [
            (f"4{x}", "not attempted") for x in "abc"
        ]
        assert "lab_04.py" not in said
        printed = "document.querySelector('.jp-OutputArea-output[data-mime-type*=stdout] pre')"
        broken = tab.evaluate(f"getComputedStyle({printed}).wordBreak")
        assert broken == "normal", "lines are broken between words"
        assert tab.evaluate(LONGEST_BAR) > 40
        assert tab.low_contrast(OUTPUTS) == []
        assert tab.overflowing(".lu-dry-run") == [], "a number stands on its neighbour"
        tab.evaluate("document.querySelector('.lu-dry-run').scrollIntoView()")
        tab.picture(browser.pictures(tmp_path) / "lab_run.png")
