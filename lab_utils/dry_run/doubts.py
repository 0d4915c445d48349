"""The code that a run loads, and what it may read unseen: by the names that it says, by its packages."""

import os
import site
import sys
import sysconfig
from functools import cache
from pathlib import Path
from types import CodeType

import lab_utils

PACKAGE = str(Path(lab_utils.__file__).parent) + os.sep
# Packages that TensorFlow and this package load. They read files through Python alone, unless asked.
_KNOWN = """
    PIL absl astunparse certifi charset_normalizer cloudpickle cython_runtime defusedxml etils filelock
    flatbuffers fsspec gast google grpc h5py htmlparser idna jax jaxlib keras libtpu markdown
    ml_dtypes namex numpy opt_einsum optree packaging pkg_resources psutil pybind11_abseil pygments
    requests rich scipy setuptools simplejson six tblib tensorboard tensorflow tensorflow_cpu
    tensorflow_estimator termcolor tf_keras tqdm typing_extensions urllib3 wrapt yaml zstandard
"""
# A program that says one of these names may depend on what is not noted.
_DOUBTFUL = """
    SummaryWriter addaudithook cffi ctypes cv2 datetime dbm disk_usage ftplib getloadavg getpid
    h5py http hub iterdir lmdb load_model load_op_library load_weights mmap multiprocessing
    open_code popen posix psutil requests saved_model scandir secrets shelve socket sqlite3 statvfs
    stdin subprocess tensorflow_datasets tensorflow_hub tf_record_iterator tfds time urllib uuid
"""


@cache
def installed() -> tuple[str, ...]:
    """The folders of Python itself and of installed packages."""
    paths = sysconfig.get_paths()
    found = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    found |= {*site.getsitepackages(), site.getusersitepackages()}
    found |= {os.path.realpath(each) for each in found}
    return tuple(each + os.sep for each in found)


def is_inner(path: str) -> bool:
    """Whether a folder lies within an installed package, whose modules are noted one by one."""
    return path.startswith(installed()) and path + os.sep not in installed()


def is_users(path: str) -> bool:
    """Whether the code of that file is neither installed nor ours."""
    return path.endswith((".py", ".ipynb")) and not path.startswith((*installed(), PACKAGE))


def code_files() -> set[str]:
    """The files of all modules, what adds to Python's path, and this package's that other processes load."""
    found = {str(path) for path in Path(PACKAGE).rglob("*.py")}
    found |= {str(pth) for path in sys.path for pth in Path(path or ".").absolute().glob("*.pth")}
    for module in list(sys.modules.values()):
        spec = getattr(module, "__spec__", None)
        for path in (getattr(module, "__file__", None), getattr(spec, "origin", None)):
            if isinstance(path, str) and os.path.isabs(path):
                found.add(path)
    return found


def of_code(path: str) -> list[str]:
    """A doubt where the user's file says a name that may read what is not noted, or cannot be read."""
    if path.endswith(".ipynb"):
        return [f"{path} is a notebook, whose code is not looked through"]
    try:
        found = _names(compile(Path(path).read_bytes(), path, "exec"))
    except (OSError, SyntaxError, ValueError):
        return [f"{path} cannot be read"]
    said = sorted(found & {*_DOUBTFUL.split()})
    return [f"{path} says {', '.join(said)}"] if said else []


def unknown_packages() -> list[str]:
    """A doubt for each installed package that may read files by itself."""
    found = set()
    for name, module in list(sys.modules.items()):
        path, top = getattr(module, "__file__", None) or "", name.partition(".")[0]
        known = top in sys.stdlib_module_names or top in _KNOWN.split()
        # One that begins with "_" is a compiled part of another package.
        if path.startswith(installed()) and not known and not top.startswith("_"):
            found.add(top)
    return [f"the package {top} may read by itself" for top in sorted(found)]


def _names(code: CodeType) -> set[str]:
    """The names that code says, also as strings: getattr(module, "name")."""
    found = {*code.co_names}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(constant)
        elif isinstance(constant, str):
            found.add(constant)
    return {part for name in found for part in name.split(".")}
