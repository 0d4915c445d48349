"""CrossShardOptimizer belongs around each optimizer: the calls that make one, in the ways of 2017 to 2019."""

import re

import libcst as cst

from lab_utils.port.record import Pass, argument, called, code, keyword
from lab_utils.port.scan import Scan

# Those of the second row wrap another one, which is wrapped where it is made.
OPTIMIZER = re.compile(
    r"(train|contrib\.(opt|optimizer_v2|mixed_precision|training)(\.\w+)*)\."
    r"(?!SyncReplicas|MovingAverage|ModelAverage|ElasticAverage|DropStale|VariableClipping|AGN|LossScale)"
    r"\w*Optimizer$"
)
_OPTIMIZE_LOSS = re.compile(r"contrib\.layers\.([\w.]+\.)?optimize_loss$")
_NAMED = {  # as optimize_loss takes them
    "Adagrad": "AdagradOptimizer(rate)", "Adam": "AdamOptimizer(rate)", "Ftrl": "FtrlOptimizer(rate)",
    "Momentum": "MomentumOptimizer(rate, momentum=0.9)", "RMSProp": "RMSPropOptimizer(rate)",
    "SGD": "GradientDescentOptimizer(rate)",
}  # fmt: skip


class Optimizers:
    """What a pass does with the optimizers of one file."""

    def __init__(self, job: Pass, scan: Scan) -> None:
        self._pass, self._scan = job, scan
        self._wraps = False
        self._steps: list[cst.Call] = []  # specs with a train_op

    def of_call(self, node: cst.Call, new: cst.Call) -> cst.BaseExpression | None:
        """An optimizer's call in CrossShardOptimizer, optimize_loss with such a one; None for others."""
        path = self._pass.imported(node.func)
        if _OPTIMIZE_LOSS.match(path):
            return self._optimize_loss(node, new)
        own = isinstance(node.func, cst.Name) and node.func.value in self._scan.optimizers
        if not (own or OPTIMIZER.match(path)):
            return None
        if "CrossShardOptimizer(" in code(new):  # it wraps one that is wrapped
            return None
        return cst.parse_expression(f"{self._cross_shard()}(0)").with_changes(args=[cst.Arg(new)])

    def note_step(self, spec: cst.Call) -> None:
        """Notes a spec that trains."""
        given = argument(spec, "train_op", 3)
        if given and code(given.value) != "None":
            self._steps.append(spec)

    def tell_of_none(self) -> None:
        """Lists a step whose optimizer is made elsewhere, or in a way that is not seen."""
        if self._steps and not self._wraps:
            what = "no optimizer is seen in this file: CrossShardOptimizer belongs around the one of train_op"
            self._pass.leave_to_a_person(self._steps[0], what, "02")

    def _cross_shard(self) -> str:
        self._wraps = True
        return self._pass.job.style.name("tpu.CrossShardOptimizer")

    def _optimize_loss(self, node: cst.Call, new: cst.Call) -> cst.Call:
        given = argument(new, "optimizer", 3)
        value = given.value if given else None
        if isinstance(value, cst.SimpleString) and value.evaluated_value in _NAMED:
            made = f"{self._pass.job.style.name('train')}.{_NAMED[value.evaluated_value]}"
            function = cst.parse_expression(f"lambda rate: {self._cross_shard()}({made})")
            changed = given.with_changes(value=function)
            new = new.with_changes(args=[changed if each is given else each for each in new.args])
            value = function
        known = isinstance(value, cst.Lambda | cst.Call) or (
            isinstance(value, cst.Name)
            and (value.value in self._scan.parameters or self._scan.values.get(value.value))
        )
        if not known:
            what = (
                "the optimizer may be a name or a class here: give optimize_loss a function of the "
                "learning rate that wraps what it makes in CrossShardOptimizer"
            )
            self._pass.leave_to_a_person(node, what, "02")
        if argument(new, "summaries", 11):
            return new
        what = (
            "its summaries would be dropped on a TPU, and are left out: write them in a host_call"
        )
        self._pass.leave_to_a_person(node, what, "04")
        return called(new, code(new.func), [*new.args, keyword("summaries", "[]")])
