"""The first code cell of every lab, and the links that open a lab elsewhere; `build` writes both.

The cell installs the course only where it cannot be imported: from its wheel beside the notebook (`make
handout`), or from the address in pyproject.toml's URLs. Where the wheel is missing, or Python is another than
the course's, it says so in a sentence and ends there: pip would print a page, and the import fail after it.
It never asks a package index for the course: another's package could bear its name. `ready()` looks after
TensorFlow, which the place may have; `ready("jax")` says that a lab is nothing without JAX.
"""

from dataclasses import dataclass
from pathlib import Path

import tomllib

_CELL = """\
import sys
from importlib.util import find_spec
from pathlib import Path
{wheel}
if not getattr(find_spec("lab_utils"), "origin", None):  # a mere folder does not count
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit("The course needs Python 3.11, 3.12 or 3.13: set_up.md says how to get one.")
{look}    %pip install -q "{source}"
from lab_utils.check import check, compare, hint, predict, ready, solution, working  # noqa: F401
{ready}"""
_LOOK = """\
    if not Path(wheel).exists():
        sys.exit(f"{wheel} is missing: put it into {Path.cwd()}, beside this notebook.")
"""
_OPEN = {
    "Colab": "https://colab.research.google.com/github/",
    "Kaggle": "https://kaggle.com/kernels/welcome?src=https://github.com/",
}
_GITHUB = "https://github.com/"


@dataclass(frozen=True)
class Course:
    """What pyproject.toml says of the course; `address` is that of its repository, "" where none is set."""

    name: str
    version: str
    address: str

    @classmethod
    def of(cls, root: Path) -> "Course":
        """The course whose pyproject.toml lies in `root`."""
        text = (root / "pyproject.toml").read_text(encoding="utf-8")
        project = tomllib.loads(text)["project"]
        address = project.get("urls", {}).get("Repository", "").removesuffix("/")
        return cls(project["name"], project["version"], address.removesuffix(".git"))


def setup_cell(course: Course, ready: str = "ready()") -> str:
    """The cell's source, whose last line is `ready`."""
    if course.address:
        source, look = f"{course.name}[course] @ git+{course.address}@v{course.version}", ""
        wheel = ""
    else:
        wheel = f"{course.name.replace('-', '_')}-{course.version}-py3-none-any.whl"
        source, look, wheel = f"./{wheel}[course]", _LOOK, f'\nwheel = "{wheel}"'
    return _CELL.format(source=source, look=look, wheel=wheel, ready=ready)


def links(course: Course, notebook: str) -> str:
    """Markdown that opens the lab with this file name in Colab and Kaggle; "" unless the course is on GitHub.

    Both take notebooks from GitHub only. The links name the version's tag, as the set-up cell does.
    """
    if not course.address.startswith(_GITHUB):
        return ""
    path = f"{course.address.removeprefix(_GITHUB)}/blob/v{course.version}/labs/{notebook}"
    return " · ".join(f"[Open in {place}]({start}{path})" for place, start in _OPEN.items())
