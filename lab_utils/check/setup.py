"""The first cell of each lab: is everything here?"""

import os
import platform
import sys

from lab_utils import runtime
from lab_utils.check import progress
from lab_utils.common import scratch
from lab_utils.notebook.look import style_figures
from lab_utils.runtime import doctor, install

SILENCE = "LAB_UTILS_SILENT_CHECKS"  # set where notebooks are run to store their outputs
# JupyterLab breaks printed lines inside words where the window is narrow.
_WHOLE_WORDS = (
    "<style>.jp-OutputArea-output pre "
    "{word-break: normal !important; overflow-wrap: anywhere !important}</style>"
)


def ready(*packages: str) -> None:
    """Prints one line where all is in place, else a line for each thing that is not.

    The cells after this one need `packages`: without one of them they say that they are skipped, until it is
    installed, or until a later call names others, or none.

    Where TensorFlow, Keras 2 beside it or Apache Beam is missing, it is installed first.

    From here on the temporary files of the notebook stand in one folder, which goes with the kernel, and
    figures read in a light and in a dark theme. The learner's minutes in the lab begin here.

    Looks at versions alone, which takes no time, and not at Jupyter's, which is running: `python -m lab_utils
    doctor` looks at everything.
    """
    progress.note_opening()
    try:
        scratch.use_process_folder()
    except OSError as error:
        print(
            f"[FAIL] temporary files: {error}\n       make room, or set TMPDIR to a folder with room"
        )
    problems = [f"[FAIL] {problem}" for problem in install.complete()]
    style_figures()
    tests = (doctor.python(), doctor.packages(), doctor.loaded())
    problems += [str(test) for test in tests if not test.ok]
    for problem in problems:
        print(problem)
    if not problems:
        name = next(filter(None, map(install.version, install.TENSORFLOW)), "")
        versions = f"Python {platform.python_version()}, TensorFlow {name}"
        print(f"Ready: {versions}, on {runtime.detect().place}.")
        if runtime.in_notebook() and not os.environ.get(SILENCE):
            from IPython.display import display

            display({"text/html": _WHOLE_WORDS, "text/plain": ""}, raw=True)
    _skip_without(packages)


_needed: list[str] = []  # by the cells after the last call of `ready`


def _skip_without(packages: tuple[str, ...]) -> None:
    """Says which of the packages are missing, and lets IPython skip the cells that need them meanwhile."""
    _needed[:] = packages
    if not _lacking():
        return
    way = f"run `%pip install {_lacking()}` in a new cell, then this cell again"
    if "libtpu" in _lacking() and install.machine() != install.LIBTPU_MACHINE:
        way = f"libtpu exists for {install.LIBTPU_MACHINE} only, so use Colab or such a machine"
    names = _lacking().replace(" ", " and ")
    print(f"The cells from here on need {names}, and are skipped until that is installed: {way}.")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell and _skipped not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(_skipped)


def _lacking() -> str:
    """The packages that are needed and not installed, with a space between them; "" for none."""
    return " ".join(name for name in _needed if not install.version(name))


def _skipped(lines: list[str]) -> list[str]:
    """The lines of a cell, or what says that it is skipped; one that installs or calls ready never is."""
    text = "".join(lines)
    installs = text.startswith(("%pip", "%conda", "!pip", "!uv"))
    if installs or "ready(" in text or not _lacking():
        return lines
    return [f'print("Skipped: {_lacking()} is not installed here.")\n']
