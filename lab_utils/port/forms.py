"""Puts the TPU's forms for the plain Estimator's: the four changes, and what input functions need."""

import libcst as cst

from lab_utils.port.record import Job, Pass, argument, called, code, keyword
from lab_utils.port.scan import TAKES_INPUT, Scan, is_batch_key, says_batch
from lab_utils.port.told import CORES, OPTIMIZER

_SPEC = (
    "mode", "predictions", "loss", "train_op", "eval_metric_ops", "export_outputs", "training_chief_hooks",
    "training_hooks", "scaffold", "evaluation_hooks", "prediction_hooks",
)  # fmt: skip
_CONFIG = (
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "save_checkpoints_secs",
    "session_config", "keep_checkpoint_max", "keep_checkpoint_every_n_hours", "log_step_count_steps",
)  # fmt: skip
_ESTIMATOR = ("model_fn", "model_dir", "config", "params", "warm_start_from")


class Forms(Pass):
    """The four changes, and what the input functions need."""

    def __init__(self, job: Job, scan: Scan, wraps: bool) -> None:
        super().__init__(job)
        self._scan = scan
        self._wraps = wraps
        self._inside: list[str] = []
        self._told: set[str] = {"None"}  # names of metrics whose dict was dealt with

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Notes where we are."""
        self._inside.append(node.name.value)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """Input functions take params, and model functions must."""
        self._inside.pop()
        given = original_node.params
        names = [each.name.value for each in given.params]
        is_model = {"features", "labels", "mode"} <= set(names) and "params" not in names
        if is_model and not given.star_kwarg and not given.params[-1].default:
            params = [*updated_node.params.params, cst.Param(cst.Name("params"))]
            return updated_node.with_changes(params=given.with_changes(params=params))
        mine = original_node.name.value in self._scan.input_fns
        if not mine and not (self._inside and self._inside[-1] in self._scan.makers):
            return updated_node
        taken = [each.name.value for each in original_node.params.params]
        if taken not in ([], ["self"]) or code(original_node.params).strip() not in ("", "self"):
            return updated_node
        return _with_params(updated_node)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """metrics = {"accuracy": tf.metrics.accuracy(...)} becomes (metric_fn, tensors)."""
        target = updated_node.targets[0].target
        named = isinstance(target, cst.Name) and target.value in self._scan.metrics
        if named and isinstance(updated_node.value, cst.Dict):
            self._told.add(target.value)
            value = self._metrics(original_node.value, updated_node.value)
            return updated_node.with_changes(value=value)
        if isinstance(target, cst.Name) and target.value in self._scan.input_fns:
            return updated_node.with_changes(value=_taking_params(updated_node.value))
        return updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """A call of the Estimator's API, of an optimizer, or of a dataset."""
        path = self.imported(original_node.func)
        if path == "estimator.Estimator":
            return self._estimator(original_node, updated_node)
        if path == "estimator.RunConfig":
            return self._config(updated_node)
        if path == "estimator.EstimatorSpec":
            return self._spec(original_node, updated_node)
        if self._wraps and OPTIMIZER.match(path):
            wrap = cst.parse_expression(self.job.style.name("tpu.CrossShardOptimizer"))
            return cst.Call(func=wrap, args=[cst.Arg(updated_node)])
        name = code(original_node.func).rpartition(".")[2]
        if self._scan.is_port and name in TAKES_INPUT:
            return self._takes_input(updated_node)
        batches = name in ("batch", "padded_batch", "map_and_batch")
        if self._scan.is_port and batches and isinstance(original_node.func, cst.Attribute):
            return self._batch(original_node, updated_node, name)
        return updated_node

    def _tpu(self, name: str) -> str:
        return self.job.style.name(f"estimator.tpu.{name}")

    def _estimator(self, node: cst.Call, new: cst.Call) -> cst.Call:
        arguments = []
        for given in _by_keyword(new, _ESTIMATOR, after=4):
            if (
                given.keyword
                and given.keyword.value == "params"
                or given is argument(new, "params", 3)
            ):
                given = given.with_changes(value=_without_batch(given.value))
            arguments.append(given)
        if not argument(new, "config", 2):
            config = f"{self._tpu('RunConfig')}(tpu_config={self._tpu('TPUConfig')}(iterations_per_loop=100))"
            arguments.append(keyword("config", config))
        size = self._scan.batch
        if not size:
            size = "1024"
            self.leave_to_a_person(
                node, "no batch size was found: 1024, over all cores, stands there", "08"
            )
        elif size.isdigit() and int(size) % CORES:
            size = str(-(-int(size) // CORES) * CORES)
            self.leave_to_a_person(
                node, f"the batch size became {size}: it is of all {CORES} cores", "08"
            )
        self.leave_to_a_person(
            node, "give its RunConfig cluster=TPUClusterResolver(...) on a TPU", "10"
        )
        arguments.append(keyword("use_tpu", "True"))
        arguments += [keyword(f"{mode}_batch_size", size) for mode in ("train", "eval", "predict")]
        return called(new, self._tpu("TPUEstimator"), arguments)

    def _config(self, new: cst.Call) -> cst.Call:
        arguments = _by_keyword(new, _CONFIG)
        arguments.append(
            keyword("tpu_config", f"{self._tpu('TPUConfig')}(iterations_per_loop=100)")
        )
        return called(new, self._tpu("RunConfig"), arguments)

    def _spec(self, node: cst.Call, new: cst.Call) -> cst.Call:
        arguments = []
        for given in _by_keyword(new, _SPEC, after=4):
            name = given.keyword.value if given.keyword else ""
            if name == "eval_metric_ops":
                value = given.value
                if isinstance(value, cst.Dict):
                    value = self._metrics(argument(node, name, 4).value, value)
                elif not isinstance(value, cst.Name) or value.value not in self._told:
                    self.leave_to_a_person(
                        node,
                        "eval_metrics must be (metric_fn, tensors): metric_fn runs on the host",
                        "04",
                    )
                given = given.with_changes(keyword=cst.Name("eval_metrics"), value=value)
            if name in ("scaffold", "training_chief_hooks"):
                self.leave_to_a_person(
                    node, f"TPUEstimatorSpec takes no {name}: see scaffold_fn and hooks", "04"
                )
            arguments.append(given)
        return called(new, self._tpu("TPUEstimatorSpec"), arguments)

    def _metrics(self, node: cst.Dict, new: cst.Dict) -> cst.BaseExpression:
        """(lambda labels, classes: {...}, [labels, classes]) where each value is a call of tf.metrics."""
        tensors: dict[str, str] = {}
        entries = []
        for element, changed in zip(node.elements, new.elements, strict=True):
            call = changed.value
            if not isinstance(call, cst.Call) or not self.imported(element.value.func).startswith(
                "metrics."
            ):
                self.leave_to_a_person(
                    node, "build these metrics inside a metric_fn, which runs on the host", "04"
                )
                return new
            for given in call.args:
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
                for given in call.args
            ]
            entries.append(f"{code(element.key)}: {code(call.with_changes(args=parts))}")
        self.leave_to_a_person(node, "each tensor of eval_metrics needs a batch dimension", "04")
        function = f"lambda {', '.join(tensors.values())}: {{{', '.join(entries)}}}"
        return cst.parse_expression(f"({function}, [{', '.join(tensors)}])")

    def _takes_input(self, new: cst.Call) -> cst.Call:
        given = argument(new, "input_fn", 0)
        if not given:
            return new
        changed = given.with_changes(value=_taking_params(given.value))
        return new.with_changes(args=[changed if each is given else each for each in new.args])

    def _batch(self, node: cst.Call, new: cst.Call, name: str) -> cst.Call:
        most = {"batch": 1, "padded_batch": 3, "map_and_batch": 4}[name]
        if argument(new, "drop_remainder") or len(new.args) > most or any(a.star for a in new.args):
            return new
        if self._scan.predicts.intersection(self._inside):
            return new
        self.leave_to_a_person(
            node,
            "drop_remainder leaves out the last examples: an evaluation must pad them, with weight 0",
            "03",
        )
        return called(new, code(new.func), [*new.args, keyword("drop_remainder", "True")])


_BATCH = cst.parse_expression('params["batch_size"]')


def _taking_params(value: cst.BaseExpression) -> cst.BaseExpression:
    """lambda: input_fn(files, 32) as lambda params: input_fn(files, params["batch_size"])."""
    if not isinstance(value, cst.Lambda) or value.params.params or value.params.star_kwarg:
        return value
    body = value.body
    if isinstance(body, cst.Call):
        sizes = [a.with_changes(value=_BATCH) if says_batch(a) else a for a in body.args]
        body = body.with_changes(args=sizes)
    return cst.parse_expression("lambda params: 0").with_changes(body=body)


class _Sizes(cst.CSTTransformer):
    """Batch sizes of an input function come from params."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        if (
            code(original_node.func).rpartition(".")[2] not in ("batch", "padded_batch")
            or not updated_node.args
        ):
            return updated_node
        first, *rest = updated_node.args
        return updated_node.with_changes(args=[first.with_changes(value=_BATCH), *rest])


def _with_params(function: cst.FunctionDef) -> cst.FunctionDef:
    params = cst.Parameters(params=[*function.params.params, cst.Param(cst.Name("params"))])
    return function.with_changes(params=params, body=function.body.visit(_Sizes()))


def _by_keyword(call: cst.Call, names: tuple[str, ...], after: int = 0) -> list[cst.Arg]:
    """The arguments, those by position from `after` on with their names."""
    return [
        each.with_changes(keyword=cst.Name(names[index]), equal=keyword("x", "0").equal)
        if index >= after and not each.keyword and not each.star and index < len(names)
        else each
        for index, each in enumerate(call.args)
    ]


def _without_batch(value: cst.BaseExpression) -> cst.BaseExpression:
    if not isinstance(value, cst.Dict):
        return value
    kept = [e for e in value.elements if not (isinstance(e, cst.DictElement) and is_batch_key(e))]
    if kept and len(kept) < len(value.elements):
        kept[-1] = kept[-1].with_changes(comma=value.elements[-1].comma)
    return value.with_changes(elements=kept)
