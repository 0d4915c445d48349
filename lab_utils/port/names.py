"""Puts today's names for those of tf.contrib and of TensorFlow 1."""

import re
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m
from libcst.metadata import (
    ParentNodeProvider,
    QualifiedName,
    QualifiedNameProvider,
    QualifiedNameSource,
)

from lab_utils.port import contrib
from lab_utils.port.contrib import names
from lab_utils.port.record import Job, Pass, code, keyword

_V1 = "tensorflow.compat.v1"
_PUBLIC = re.compile(r"tensorflow(\.(?!compat|contrib|core|keras|lite|python|tools)\w+)*")
_ESTIMATOR = "tensorflow.python.estimator"
_BUILTIN = {QualifiedName("builtins.xrange", QualifiedNameSource.BUILTIN)}


def place(path: str) -> str:
    """Where a name below tf.contrib stands today; "" where nowhere, or in a private module alone."""
    found = contrib.today(path)
    if found is None or found[0].startswith("tensorflow."):
        return ""
    return _slim(found[0])


def _slim(where: str) -> str:
    """tf_slim has what its folder `layers` has, and its own attribute `layers` is another module."""
    return where.replace("tf_slim.layers", "tf_slim", 1)


class Rename(Pass):
    """Renames; the imports of what is used no longer are left to `Imports`."""

    METADATA_DEPENDENCIES = (*Pass.METADATA_DEPENDENCIES, ParentNodeProvider)

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.kept: set[str] = set()  # paths below contrib that could not be renamed

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """data.apply(batch_and_drop_remainder(n)) is data.batch(n, drop_remainder=True)."""
        function = original_node.func
        if len(original_node.args) != 1 or not m.matches(
            function, m.Attribute(attr=m.Name("apply"))
        ):
            return updated_node
        inner = original_node.args[0].value
        if not isinstance(inner, cst.Call) or len(inner.args) != 1 or not self._drops(inner.func):
            return updated_node
        size = updated_node.args[0].value.args[0].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(
            func=updated_node.func.with_changes(attr=cst.Name("batch")),
            args=[size, keyword("drop_remainder", "True")],
        )

    def _drops(self, node: cst.CSTNode) -> bool:
        path = self._contrib(node)
        return bool(path) and names.canonical(path) == "data.batch_and_drop_remainder"

    def _contrib(self, node: cst.CSTNode) -> str:
        path = self.imported(node)
        return path.removeprefix("contrib.") if path.startswith("contrib.") else ""

    def visit_Import(self, node: cst.Import) -> bool:
        """Its own pass."""
        return False

    visit_ImportFrom = visit_Import

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """tf.contrib.tpu.TPUEstimator, tpu_estimator.TPUEstimator."""
        return self._renamed(original_node, updated_node)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        """TPUEstimator, imported from tf.contrib."""
        return self._renamed(original_node, updated_node)

    def _renamed(self, node: cst.CSTNode, updated: cst.BaseExpression) -> cst.BaseExpression:
        parent = self.get_metadata(ParentNodeProvider, node)
        inner = isinstance(parent, cst.Attribute)
        if isinstance(node, cst.Name) and node.value == "xrange" and not inner:
            return (
                updated
                if self.get_metadata(QualifiedNameProvider, node, ()) - _BUILTIN
                else cst.Name("range")
            )
        path = self._contrib(node)
        if not path or self._drops(node) or self._by_module(node):
            return updated
        where = place(path)
        if not where:
            parts = path.split(".")
            known = any(place(".".join(parts[:end])) for end in range(2, len(parts)))
            if not inner and not known:
                self.kept.add(path)
                self.leave_to_a_person(node, f"tf.contrib.{path}: {names.advice(path)}")
            return updated
        if where.startswith("lab_utils."):
            self.job.imports.add(where.rpartition(".")[0])
            self.leave_to_a_person(
                node,
                f"tf.contrib.{path}: TensorFlow has it no more, and {where} stands in for it; copy it to be "
                "free of this course's package",
            )
        if where.startswith("tf_slim"):
            self.job.imports.add("tf_slim")
        return cst.parse_expression(self.job.style.name(where))

    def _by_module(self, node: cst.CSTNode) -> bool:
        """Whether it is reached by the name of a module whose import is changed: slim.conv2d."""
        while isinstance(node, cst.Attribute):
            node = node.value
        return isinstance(node, cst.Name) and names.of_module(self._contrib(node)) in names.MODULES


class Imports(cst.CSTTransformer):
    """Imports of tf.contrib go, those of tensorflow become version 1's where the file is of version 1."""

    def __init__(self, job: Job, version_1: bool, kept: set[str]) -> None:
        super().__init__()
        self.job, self._version_1, self._kept = job, version_1, kept

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.Import | cst.RemovalSentinel:
        """import tensorflow as tf; import tensorflow.contrib.slim as slim."""
        kept = []
        for alias in updated_node.names:
            name = code(alias.name)
            if name == "tensorflow.contrib" and not self._kept:
                continue
            if name == "tensorflow" and self._version_1:
                alias = alias.with_changes(
                    name=cst.parse_expression(_V1),
                    asname=alias.asname
                    or cst.AsName(
                        cst.Name("tensorflow"),
                        whitespace_before_as=cst.SimpleWhitespace(" "),
                    ),
                )
            elif (name + ".").startswith(f"{_ESTIMATOR}.") and alias.asname:
                alias = alias.with_changes(name=_of_estimator(name))
            elif name.startswith("tensorflow.contrib."):
                path = names.of_module(name.removeprefix("tensorflow.contrib."))
                where = _slim(names.MODULES.get(path, ""))
                if alias.asname and where.startswith("tf_slim"):
                    alias = alias.with_changes(name=cst.parse_expression(where))
                elif not any(names.of_module(each).startswith(path) for each in self._kept):
                    continue
            kept.append(alias)
        if not kept:
            return cst.RemoveFromParent()
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(names=kept)

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.ImportFrom | cst.FlattenSentinel | cst.RemovalSentinel:
        """from tensorflow.contrib import tpu, slim."""
        module = code(updated_node.module) if updated_node.module else ""
        if (module + ".").startswith(f"{_ESTIMATOR}."):
            return updated_node.with_changes(module=_of_estimator(module))
        is_star = isinstance(updated_node.names, cst.ImportStar)
        if module == "tensorflow" and not is_star:
            kept = self._without_contrib(updated_node.names)
            if not kept:
                return cst.RemoveFromParent()
            updated_node = updated_node.with_changes(names=kept)
        if not (module + ".").startswith("tensorflow.contrib.") or is_star:
            with_contrib = not is_star and any(
                e.name.value == "contrib" for e in updated_node.names
            )
            if self._version_1 and _PUBLIC.fullmatch(module) and not is_star and not with_contrib:
                new = cst.parse_expression(module.replace("tensorflow", _V1, 1))
                return updated_node.with_changes(module=new)
            return updated_node
        whole = module.removeprefix("tensorflow.contrib").lstrip(".")
        left = [names.of_module(each) + "." for each in self._kept]
        kept, added = [], []
        for alias in updated_node.names:
            path = names.of_module(f"{whole}.{alias.name.value}".lstrip("."))
            where = _slim(names.MODULES.get(path, ""))
            local = code(alias.asname.name) if alias.asname else alias.name.value
            if where and not where.startswith("tensorflow."):
                package = where if where.startswith("tf_slim") else f"{_V1}.{where}"
                added.append(_import(package, local))
            elif where:
                added.append(_import(where, local))
            elif any(each.startswith(path + ".") for each in left):
                kept.append(alias)
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(names=kept)
        return cst.FlattenSentinel(added) if added else cst.RemoveFromParent()

    def _without_contrib(self, given: Sequence[cst.ImportAlias]) -> Sequence[cst.ImportAlias]:
        """from tensorflow import contrib, keras."""
        kept = [each for each in given if each.name.value != "contrib"]
        if self._kept or len(kept) == len(given):
            return given
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return kept


def _of_estimator(module: str) -> cst.BaseExpression:
    """The private modules of Estimator are in the package tensorflow-estimator since TensorFlow 1.13."""
    return cst.parse_expression(module.replace("tensorflow.", "tensorflow_estimator.", 1))


def _import(module: str, local: str) -> cst.Import | cst.ImportFrom:
    head, _, last = module.rpartition(".")
    text = f"import {module} as {local}"
    if head and last == local:
        text = f"from {head} import {local}"
    return cst.parse_statement(text).body[0]


def styles(wrapper: cst.MetadataWrapper) -> tuple[str, bool]:
    """The file's name for version 1's API ("" if it imports no TensorFlow), and whether it is of version 1.

    It is where `tensorflow` itself is imported, and a name is used that TensorFlow 2 lacks and version 1 has.
    """
    from lab_utils.estimator import tf, v1

    found = wrapper.resolve(QualifiedNameProvider)
    old, alias, explicit = False, "", ""
    for node, qualified in found.items():
        for each in qualified() if callable(qualified) else qualified:
            if each.source is not QualifiedNameSource.IMPORT:
                continue
            if each.name in ("tensorflow", _V1) and isinstance(node, cst.Name):
                alias = node.value
                explicit = explicit or (alias if each.name == _V1 else "")
            if each.name.startswith("tensorflow.compat.v1.") and not explicit:
                alias = alias or "tf"
            elif each.name.startswith("tensorflow.") and "compat" not in each.name:
                path = each.name.removeprefix("tensorflow.")
                old = old or path.startswith("contrib") or (_has(v1, path) and not _has(tf, path))
    if explicit or old or not alias:
        return explicit or alias or "tf", old and not explicit
    return f"{alias}.compat.v1", False


def _has(root: object, path: str) -> bool:
    for part in path.split("."):
        try:
            root = getattr(root, part)
        except Exception:  # lazy modules fail in many ways
            return False
    return True
