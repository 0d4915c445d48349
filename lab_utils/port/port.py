"""From a program's source to the source of its port: the passes in their order."""

import ast
import warnings

import libcst as cst
import libcst.matchers as m

from lab_utils.port.forms import Forms
from lab_utils.port.inputs import Unbox
from lab_utils.port.names import Imports, Rename, styles
from lab_utils.port.record import Job, Left, NotPython, Style, code
from lab_utils.port.scan import Scan
from lab_utils.port.told import Told

_TOO_DEEP = "an expression in it is nested too deeply"


def ported(source: bytes) -> tuple[bytes, list[Left]]:
    """The port of a file, in its encoding and with its line ends, and what is left to a person.

    Raises:
        NotPython: it cannot be read as Python 3.
    """
    try:
        _refuse_depth(source)
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise NotPython(_why(error)) from None
    try:
        return _passes(source, module)
    except RecursionError:
        raise NotPython(_TOO_DEEP) from None


def _refuse_depth(source: bytes) -> None:
    """Raises NotPython for what Python itself takes for too deep: libcst's parser would end the process."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source)
    except (RecursionError, MemoryError):
        raise NotPython(_TOO_DEEP) from None
    except SyntaxError as error:
        if "too many nested" in str(error):
            raise NotPython(_TOO_DEEP) from None
    except ValueError:  # a zero byte, which libcst tells with its place
        pass


def _passes(source: bytes, module: cst.Module) -> tuple[bytes, list[Left]]:
    wrapper = cst.MetadataWrapper(module)
    name, version_1 = styles(wrapper)
    job = Job(Style(name))
    scan = Scan(module.code)
    wrapper.module.visit(scan)
    wraps = "CrossShardOptimizer" not in module.code and "EstimatorSpec" in module.code
    wrapper.visit(Told(job, scan, wraps))
    module = wrapper.visit(Forms(job, scan, wraps))
    rename = Rename(job)
    module = cst.MetadataWrapper(module).visit(rename)
    module = module.visit(Imports(job, version_1, rename.kept))
    if scan.boxes_params:  # last, as it adds lines, and what is left has those of the old file
        module = module.visit(Unbox(scan.models))
    if module.code == wrapper.module.code:
        return source, sorted(job.left)
    return _with_imports(module, job).bytes, sorted(job.left)


def _with_imports(module: cst.Module, job: Job) -> cst.Module:
    """Imports of what the new names need, where they are not there yet, after the first import."""
    bound = _imported(module)
    lines = [f"import {name}" for name in sorted(job.imports - bound)]
    v1 = job.style.v1
    if "." not in v1 and v1 not in bound and f"{v1}." in module.code:
        lines.insert(0, f"import tensorflow.compat.v1 as {v1}")
    if not lines:
        return module
    body = list(module.body)
    at = next(
        (
            number + 1
            for number, each in reversed(list(enumerate(body)))
            if isinstance(each, cst.SimpleStatementLine)
            and isinstance(each.body[0], cst.Import | cst.ImportFrom)
        ),
        0,
    )
    return module.with_changes(
        body=body[:at] + [cst.parse_statement(line) for line in lines] + body[at:]
    )


def _imported(module: cst.Module) -> set[str]:
    """The names that the file's imports bind, in dots as they are written."""
    bound = set()
    for each in m.findall(module, m.ImportAlias()):
        bound.add(code(each.asname.name if each.asname else each.name))
    return bound


def _why(error: Exception) -> str:
    if isinstance(error, cst.ParserSyntaxError):
        said = f"line {error.raw_line}: this is not Python 3"
        return f"{said} (Python 2 is turned into it by `2to3` of Python 3.12 or older, or by `futurize`)"
    return f"its text cannot be read: {error}"
