"""Puts today's names for those of tf.contrib and of TensorFlow 1, in the code and in its imports."""

import ast
import re
import types

from lab_utils.port import contrib
from lab_utils.port.contrib import names
from lab_utils.port.program import Program

_V1 = "tensorflow.compat.v1"
_PUBLIC = re.compile(r"tensorflow(\.(?!compat|contrib|core|keras|lite|python|tools)\w+)*")
_ESTIMATOR = re.compile(r"^tensorflow\.(?=python\.estimator\b)")


def style(program: Program) -> tuple[str, bool]:
    """The file's name for version 1's API, and whether `tensorflow` in its imports must become that.

    It must where a name is used that TensorFlow 2 lacks and version 1 has.
    """
    imported = {origin: name for name, origin in program.origins.items()}
    if _V1 in imported:
        return imported[_V1], False
    is_old = any(_only_in_version_1(program.qualified(node)) for node in program.chains())
    name = imported.get("tensorflow", "tf")
    return (f"{name}.compat.v1" if "tensorflow" in imported and not is_old else name), is_old


def _only_in_version_1(name: str) -> bool:
    from lab_utils.estimator import tf, v1

    head, *path = name.split(".")
    if head != "tensorflow" or "compat" in path:
        return False
    return path[:1] == ["contrib"] or (_has(v1, path) and not _has(tf, path))


def _has(root: object, path: list[str]) -> bool:
    for part in path:
        try:
            root = getattr(root, part)
        except Exception:  # lazy modules fail in many ways
            return False
    return True


class Rename:
    """The renaming of one file, as edits of the program: `names`, then `imports` of what all edits need."""

    def __init__(self, program: Program, v1: str, is_old: bool) -> None:
        self._program, self._v1, self._is_old = program, v1, is_old
        self._unplaced: set[str] = set()  # paths below contrib that stand nowhere today
        self._imports: set[str] = set()  # what the new names need

    def names(self) -> None:
        """Puts today's names into the code, and lists those that stand nowhere."""
        for node in self._program.chains():
            if self._program.qualified(node).startswith("tensorflow.contrib."):
                self._contrib_name(node)
            elif isinstance(node, ast.Name) and node.id == "xrange":
                self._program.replace_node(node, "range")

    def _contrib_name(self, node: ast.Attribute | ast.Name) -> None:
        links: list[ast.AST] = [node]  # from a.b.c to a
        while isinstance(links[-1], ast.Attribute):
            links.append(links[-1].value)
        for link in reversed(links):
            path = self._path(link)
            if path and (successor := contrib.today(path)):
                return self._rename(link, path, *successor)
        path = self._path(node)
        self._unplaced.add(path)
        return self._program.leave(node, f"tf.contrib.{path}: {names.advice(path)}")

    def _path(self, node: ast.AST) -> str:
        head, _, path = self._program.qualified(node).partition("tensorflow.contrib.")
        return "" if head else path

    def _rename(self, node: ast.AST, path: str, place: str, value: object) -> None:
        if self._drops_remainder(node, path):
            return
        head = place.partition(".")[0]
        if head in names.PACKAGES:
            # tf_slim has what its folder `layers` has, and its own attribute `layers` is another module.
            place = place.replace("tf_slim.layers", "tf_slim", 1)
            module = place if isinstance(value, types.ModuleType) else place.rpartition(".")[0]
            if head == "tensorflow":  # which hides its attribute `python`
                package, _, name = module.rpartition(".")
                place = place.removeprefix(f"{package}.")
                self._imports.add(f"from {package} import {name}")
            else:
                self._imports.add(f"import {module}")
        else:
            place = f"{self._v1}.{place}"
        if head == "lab_utils":
            message = (
                f"tf.contrib.{path}: TensorFlow no longer has this name: copy {place}, which "
                "replaces it"
            )
            self._program.leave(node, message)
        self._program.replace_node(node, place)

    def _drops_remainder(self, node: ast.AST, path: str) -> bool:
        """data.apply(batch_and_drop_remainder(n)) becomes data.batch(n, drop_remainder=True)."""
        program = self._program
        match program.parents.get(program.parents[node]):
            case ast.Call(func=ast.Attribute(attr="apply") as apply) as applied:
                size = getattr(applied.args[0], "args", None)
                if size and names.canonical(path) == "data.batch_and_drop_remainder":
                    start, end = program.span(size[0])
                    program.replace(program.span(apply.value)[1], start, ".batch(")
                    program.replace(end, program.span(applied)[1], ", drop_remainder=True)")
                    return True
        return False

    def imports(self) -> None:
        """Imports of tf.contrib go, those of TensorFlow 1 become tensorflow.compat.v1's, new ones come in."""
        program = self._program
        if "." not in self._v1 and self._v1 not in program.origins and program.adds(f"{self._v1}."):
            self._imports.add(f"import {_V1} as {self._v1}")
        for node in program.nodes:
            if isinstance(node, ast.Import | ast.ImportFrom) and not getattr(node, "level", 0):
                self._import(node)
        if self._imports:
            body = program.tree.body
            before = [n for n in body if isinstance(n, ast.Import | ast.ImportFrom)] or body[:1]
            at = program.find(rb"\n|$", program.span(before[-1])[1])
            end = "\r\n" if "\r\n" in program.text else "\n"
            program.replace(at, at, "".join(line + end for line in sorted(self._imports)))

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        module = getattr(node, "module", "")
        rest = [alias for alias in node.names if self._stays(f"{module}.{alias.name}".lstrip("."))]
        if isinstance(node, ast.Import):
            new: ast.stmt = ast.Import(names=[self._alias(alias) for alias in rest])
        else:
            is_public = _PUBLIC.fullmatch(module) and "contrib" not in [a.name for a in rest]
            if self._is_old and is_public and rest and rest[0].name != "*":
                module = module.replace("tensorflow", _V1, 1)
            module = _ESTIMATOR.sub("tensorflow_estimator.", module)
            new = ast.ImportFrom(module=module, names=rest, level=0)
        start, end = self._program.span(node)
        if not rest:
            self._remove(node, start, end)
        elif ast.unparse(new) != ast.unparse(node):
            self._program.replace(start, end, ast.unparse(new))

    def _stays(self, name: str) -> bool:
        """Whether an import is none of contrib, or leads to a name that stands nowhere today."""
        path = f"{name}.".removeprefix("tensorflow.contrib.")
        return path == f"{name}." or any(f"{other}.".startswith(path) for other in self._unplaced)

    def _alias(self, alias: ast.alias) -> ast.alias:
        if alias.name == "tensorflow" and self._is_old:
            return ast.alias(name=_V1, asname=alias.asname or alias.name)
        if not alias.asname:
            return alias
        return ast.alias(_ESTIMATOR.sub("tensorflow_estimator.", alias.name), alias.asname)

    def _remove(self, node: ast.stmt, start: int, end: int) -> None:
        siblings = getattr(self._program.parents[node], "body", [node])
        if len(siblings) == 1 or ";" in self._program.text.splitlines()[node.lineno - 1]:
            self._program.replace(start, end, "pass")
        else:
            after = self._program.find(rb"\n|$", end)
            self._program.replace(start - node.col_offset, after, "")
