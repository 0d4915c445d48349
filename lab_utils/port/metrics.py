"""eval_metric_ops as eval_metrics=(metric_fn, tensors), which TPUEstimatorSpec takes."""

import re

import libcst as cst

from lab_utils.port.record import Pass, code
from lab_utils.port.scan import Scan

_METRIC = re.compile(r"(contrib\.(slim\.)?)?metrics\.(?!aggregate)")
_BATCHED = "each tensor of eval_metrics needs a batch dimension"


class Metrics:
    """What a pass does with the metrics of one file."""

    def __init__(self, job: Pass, scan: Scan) -> None:
        self._pass, self._scan = job, scan

    def any(self, node: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """As `of`, also for {...} if mode == EVAL else None and metric_fn(labels); others as they were."""
        if isinstance(new, cst.IfExp):
            body = self.any(node.body, new.body)
            return new if body is new.body else new.with_changes(body=body)
        if pairs(new):
            return self.of(node, new)
        own = isinstance(new, cst.Call) and code(new.func) in self._scan.parameters
        tensors = cst.Name | cst.Call | cst.Subscript  # what is said in dots may be a flag
        if not own or not all(
            isinstance(each.value, tensors) and not each.keyword and not each.star
            for each in new.args
        ):
            return new
        self._pass.leave_to_a_person(node, _BATCHED, "04")
        given = ", ".join(code(each.value) for each in new.args)
        return cst.parse_expression(f"({code(new.func)}, [{given}])")

    def of(self, node: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """(lambda labels, classes: {...}, [labels, classes]) where each value is a call of tf.metrics."""
        tensors: dict[str, str] = {}
        entries = []
        for (key, call), (_, changed) in zip(pairs(node), pairs(new), strict=True):
            if isinstance(call, cst.Name):  # accuracy = tf.metrics.accuracy(...)
                call = changed = self._scan.values.get(call.value)
                if call:
                    what = (
                        "metric_fn builds this metric: take it, and what else uses it, out of here"
                    )
                    self._pass.leave_to_a_person(call, what, "04")
            if not isinstance(call, cst.Call) or not _METRIC.match(self._pass.imported(call.func)):
                self._pass.leave_to_a_person(
                    node, "build these metrics inside a metric_fn, which runs on the host", "04"
                )
                return new
            for given in changed.args:
                if not isinstance(given.value, cst.Integer | cst.Float | cst.SimpleString):
                    text = code(given.value)
                    if text not in ("None", "True", "False"):
                        named = (
                            text if isinstance(given.value, cst.Name) else f"tensor_{len(tensors)}"
                        )
                        tensors.setdefault(text, named)
            parts = [
                given.with_changes(value=cst.Name(tensors[code(given.value)]))
                if code(given.value) in tensors
                else given
                for given in changed.args
            ]
            entries.append(f"{key}: {code(changed.with_changes(args=parts))}")
        self._pass.leave_to_a_person(node, _BATCHED, "04")
        function = f"lambda {', '.join(tensors.values())}: {{{', '.join(entries)}}}"
        return cst.parse_expression(f"({function}, [{', '.join(tensors)}])")


def pairs(value: cst.BaseExpression) -> list[tuple[str, cst.BaseExpression]]:
    """Keys, as text, and values of {"a": x} or dict(a=x); [] for others."""
    if isinstance(value, cst.Dict) and all(isinstance(e, cst.DictElement) for e in value.elements):
        return [(code(each.key), each.value) for each in value.elements]
    if (
        isinstance(value, cst.Call)
        and code(value.func) == "dict"
        and all(a.keyword for a in value.args)
    ):
        return [(f'"{each.keyword.value}"', each.value) for each in value.args]
    return []
