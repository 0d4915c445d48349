"""The first cell of each lab: is everything here?"""

import os
import platform
import sys

from lab_utils import runtime
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

    Without one of `packages`, the lab cannot be worked on: then the cells after this one say that they are
    skipped, until it is installed.

    Where TensorFlow, Keras 2 beside it or Apache Beam is missing, it is installed first.

    From here on the temporary files of the notebook stand in one folder, which goes with the kernel, and
    figures read in a light and in a dark theme.

    Looks at versions alone, which takes no time, and not at Jupyter's, which is running: `python -m lab_utils
    doctor` looks at everything.
    """
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


def _skip_without(packages: tuple[str, ...]) -> None:
    """Says which of the packages are missing, and lets IPython skip the cells of this lab meanwhile.

    What installs something is run, and so is the first cell.
    """

    def lacking() -> str:
        return " ".join(name for name in packages if not install.version(name))

    def skipped(lines: list[str]) -> list[str]:
        text = "".join(lines)
        installs = text.startswith(("%pip", "%conda", "!pip", "!uv"))
        if installs or "ready(" in text or not lacking():
            return lines
        return [f'print("Skipped: {lacking()} is not installed here.")\n']

    if not lacking():
        return
    way = f"run `%pip install {lacking()}` in a new cell, then this cell again"
    if "libtpu" in lacking() and install.machine() != install.LIBTPU_MACHINE:
        way = f"libtpu exists for {install.LIBTPU_MACHINE} only, so use Colab or such a machine"
    names = lacking().replace(" ", " and ")
    print(f"This lab needs {names}. Its cells are skipped until that is installed: {way}.")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell:
        shell.input_transformers_cleanup.append(skipped)
