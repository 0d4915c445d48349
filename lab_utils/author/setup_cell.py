"""The first code cell of every lab; `build` puts it into all of them, so that a change is made once, here.

It installs the course only where it cannot be imported: from the checkout that the notebook lies in, on Colab
from one in /content, else from the address in pyproject.toml's URLs. What the place has of TensorFlow, numpy
and protobuf stays. Without an address and a checkout it says in a sentence what to do.
"""

import tomllib
from pathlib import Path

_TEMPLATE = """\
# Installs the course where it is missing, as on Colab. Elsewhere: looks at versions.
import importlib.util
import subprocess
import sys
from importlib.metadata import distributions, version
from pathlib import Path

if importlib.util.find_spec("lab_utils") is None:
    near = [
        Path.cwd(),
        Path.cwd().parent,
        *Path("/content").glob("*"),
        *Path("/kaggle").glob("*/*"),
    ]
    course = next((f"{{path}}[course]" for path in near if (path / "lab_utils").is_dir()), "{remote}")
    assert course, (
        "clone the course, and open this notebook in its folder labs (Colab: in /content)"
    )
    own = {{each.name for each in distributions()}} & {{"tensorflow", "numpy", "protobuf"}}
    kept = [f"{{name}}=={{version(name)}}" for name in sorted(own)]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", course, *kept], check=True)
    importlib.invalidate_caches()

from lab_utils.check import check, compare, hint, predict, ready, solution, working  # noqa: F401

ready()"""


def setup_cell(root: Path) -> str:
    """The cell's source, with the address that `root`'s pyproject.toml gives the course."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Repository", "")
    remote = f"{project['name']}[course] @ git+{address}@v{project['version']}" if address else ""
    return _TEMPLATE.format(remote=remote)
