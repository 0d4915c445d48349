"""The line magic: what it hands to the command, and what a notebook shows of it."""

import sys

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from lab_utils.dry_run import load_ipython_extension, magic

PAGE = '<html><body class="lu-page"><div>the report</div></body></html>'
WRITES = f"""
import sys
print("at work", file=sys.stderr)
with open(sys.argv[sys.argv.index("--html") + 1], "w") as page:
    page.write({PAGE!r})
sys.exit(1)
"""


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("train.py -- --use_tpu=True", "--main train.py -- --use_tpu=True"),
        ("trainer.task --topology all", "--main trainer.task --topology all"),
        ("port.py:port --stages trace", "port.py:port --stages trace"),
        ("--main train.py", "--main train.py"),
        ("", ""),
    ],
)
def test_a_program_needs_no_flag_in_front(line, asked):
    assert magic.arguments(line.split()) == asked.split()


def answering(monkeypatch, code):
    """The command is this Python code in place of the dry run."""
    real = magic.subprocess.Popen
    monkeypatch.setattr(
        magic.subprocess,
        "Popen",
        lambda words, **options: real([sys.executable, "-c", code, *words], **options),
    )


def test_the_report_is_shown_without_the_page_around_it(monkeypatch, capsys):
    answering(monkeypatch, WRITES)
    shell = InteractiveShell()
    load_ipython_extension(shell)
    shown = shell.run_line_magic("dry_run", "train.py")
    assert shown._repr_html_() == "<div>the report</div>" and "status 1" in repr(shown)
    assert "at work" in capsys.readouterr().err


def test_without_a_report_the_command_s_own_words_are_told(monkeypatch):
    answering(monkeypatch, "import sys; sys.exit('there is no file train.py')")
    with pytest.raises(UsageError, match="exit status 1.*there is no file train.py"):
        magic.dry_run("train.py")


def test_the_command_knows_what_the_magic_asks():
    with pytest.raises(UsageError, match="there is no file"):
        magic.dry_run("not_there.py")
