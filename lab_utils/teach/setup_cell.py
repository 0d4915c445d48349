"""The first code cell of every lab, and the links that open a lab elsewhere; `build` writes both.

The cell installs the course only where it cannot be imported: from the checkout that the notebook lies in or
that Colab or Kaggle has, else from its wheel beside the notebook (`make handout`), else from the address in
pyproject.toml's URLs, else from a folder of wheels that pip is set up with. It never asks a package index for
the course: another's package could bear its name. What the place has of TensorFlow, numpy and protobuf stays.
"""

import textwrap
from dataclasses import dataclass
from pathlib import Path

import tomllib

_TEMPLATE = """\
# Installs the course where it is missing (Colab, Kaggle, a hub), then looks at versions.
import importlib.util
import os
import site
import subprocess
import sys
from importlib.metadata import distributions, version
from pathlib import Path

found = importlib.util.find_spec("lab_utils")
if found is None or found.origin is None:  # or a mere folder of that name
    if sys.platform == "emscripten":
        raise ImportError(
            "TensorFlow does not run in a browser alone (JupyterLite): "
            "open this notebook in Jupyter, Colab or Kaggle."
        )
    near = [Path.cwd(), *Path.cwd().parents]
    near += [*Path("/content").glob("*"), *Path("/kaggle").glob("*/*")]
    checkouts = [str(path) for path in near if os.path.isdir(path / "lab_utils" / "check")]
    wheels = [str(path / "{wheel}") for path in near]
    course = (checkouts + [path for path in wheels if os.path.isfile(path)])[:1]
    course = course or {elsewhere}
    if importlib.util.find_spec("pip") is None:
        subprocess.run([sys.executable, "-m", "ensurepip"])
    pip = [sys.executable, "-m", "pip", "install", "-q"]
    own = {{each.name for each in distributions()}}
    kept = [f"{{name}}=={{version(name)}}" for name in {{"tensorflow", "numpy", "protobuf"}} & own]
    extras = "course" if importlib.util.find_spec("tensorflow") else "course,cpu"
    for wanted in (["--no-deps", *course], [f"{name}[{{extras}}]", *kept]):
        if subprocess.run([*pip, *wanted]).returncode:
            raise ImportError(
{told}
            )
    importlib.invalidate_caches()
    if site.ENABLE_USER_SITE:  # pip installs there where it may not write elsewhere
        site.addsitedir(site.getusersitepackages())

from lab_utils.check import check, compare, hint, predict, ready, solution, working  # noqa: F401

ready()"""

_COLAB = "https://colab.research.google.com/github/"
_KAGGLE = "https://kaggle.com/kernels/welcome?src=https://github.com/"
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


def setup_cell(course: Course) -> str:
    """The cell's source."""
    wheel = f"{course.name.replace('-', '_')}-{course.version}-py3-none-any.whl"
    if course.address:
        elsewhere = [f"git+{course.address}@v{course.version}"]
        told = f"pip could not install the course (see above): clone {course.address}, and open"
    else:
        elsewhere = ["--no-index", f"{course.name}=={course.version}"]
        told = f"The course is not installed here: put its wheel ({wheel}) beside this notebook,"
        told += " or clone it and open"
    told += " this notebook in the clone's folder labs (on Colab, clone into /content)."
    lines = textwrap.wrap(told, 76, drop_whitespace=False, break_on_hyphens=False)
    return _TEMPLATE.format(
        elsewhere=str(elsewhere).replace("'", '"'),
        name=course.name,
        wheel=wheel,
        told="\n".join(f'                "{line}"' for line in lines),
    )


def links(course: Course, notebook: str) -> str:
    """Markdown that opens the lab with this file name in Colab and Kaggle; "" unless the course is on GitHub.

    Both take notebooks from GitHub alone. The links name the version's tag, as the set-up cell does.
    """
    if not course.address.startswith(_GITHUB):
        return ""
    path = f"{course.address.removeprefix(_GITHUB)}/blob/v{course.version}/labs/{notebook}"
    return f"[Open in Colab]({_COLAB}{path}) · [Open in Kaggle]({_KAGGLE}{path})"
