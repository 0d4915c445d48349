"""Puts the TPU's forms for the plain Estimator's: the four changes, and what input functions need."""

import libcst as cst
import libcst.matchers as m

from lab_utils.port.inputs import fixed_size, of_arrays, sized, taking_params, with_params
from lab_utils.port.metrics import Metrics, pairs
from lab_utils.port.optimizers import Optimizers
from lab_utils.port.record import Job, Pass, argument, called, code, keyword
from lab_utils.port.scan import TAKES_INPUT, Scan
from lab_utils.port.sizes import SIZE_AT, is_batch_key
from lab_utils.port.told import CORES, KEPT_METRICS, NO_DATASET

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
        self._sizes: dict[cst.Call, str] = {}  # calls of batch(), and what they name
        self._optimizers, self._metrics = Optimizers(self, scan), Metrics(self, scan)
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
        name = original_node.name.value
        made = self._inside and self._inside[-1] in self._scan.makers
        if name not in self._scan.input_fns and not (made and name in self._scan.returned):
            return updated_node
        if code(given).strip() in ("", "self"):
            updated_node = with_params(updated_node)
        elif "params" not in names:
            return updated_node
        elif self._scan.boxes_params:
            what = 'params is a dict here: params["hparams"] is what it was, params["batch_size"] the batch'
            self.leave_to_a_person(original_node, what, "02")
        updated_node, changed = sized(original_node, updated_node)
        self._sizes = {call: what for call, what in self._sizes.items() if call not in changed}
        return updated_node

    def leave_Module(self, original_node: cst.Module, updated_node: cst.Module) -> cst.Module:
        """Lists batch sizes that stand as they are, and a step without an optimizer of this file."""
        for call, text in self._sizes.items():
            what = f"each core gets {text} examples at once, where params['batch_size'] must count"
            self.leave_to_a_person(call, what, "02")
        self._optimizers.tell_of_none()
        return updated_node

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """metrics = {"accuracy": tf.metrics.accuracy(...)} becomes (metric_fn, tensors)."""
        target = updated_node.targets[0].target
        named = isinstance(target, cst.Name) and target.value in self._scan.metrics
        if named:
            value = self._metrics.any(original_node.value, updated_node.value)
            if value is not updated_node.value:
                self._told.add(target.value)
                return updated_node.with_changes(value=value)
        if isinstance(target, cst.Name) and target.value in self._scan.input_fns:
            return updated_node.with_changes(value=taking_params(updated_node.value, self._scan))
        if m.matches(target, KEPT_METRICS) and pairs(updated_node.value):
            value = self._metrics.of(original_node.value, updated_node.value)
            key = cst.parse_expression(code(target).replace("eval_metric_ops", "eval_metrics"))
            changed = updated_node.targets[0].with_changes(target=key)
            if value is not updated_node.value:
                return updated_node.with_changes(targets=[changed], value=value)
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
        if path == "estimator.inputs.numpy_input_fn":
            made = of_arrays(updated_node, self.job.style.name("data.Dataset"))
            if made:
                self._drops(original_node)
            else:
                self.leave_to_a_person(original_node, f"{path}: {NO_DATASET}", "03")
            return made or updated_node
        if self._wraps and (made := self._optimizers.of_call(original_node, updated_node)):
            return made
        name = code(original_node.func).rpartition(".")[2]
        if self._scan.is_port and name in TAKES_INPUT:
            return self._takes_input(updated_node)
        if self._scan.is_port and name in SIZE_AT:
            parameters = {p for each in self._inside for p in self._scan.parameters[each]}
            if size := fixed_size(original_node, parameters):
                self._sizes[original_node] = size
            return self._batch(original_node, updated_node, name)
        return updated_node

    def _tpu(self, name: str) -> str:
        return self.job.style.name(f"estimator.tpu.{name}")

    def _estimator(self, node: cst.Call, new: cst.Call) -> cst.Call:
        arguments = []
        params = argument(new, "params", 3)
        for given in _by_keyword(new, _ESTIMATOR, after=4):
            if params and given.value is params.value:
                given = given.with_changes(value=self._params(node, given.value))
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
        sizes = {"train": size}
        for mode in ("eval", "predict"):
            own = self._scan.batch_of(mode)
            sizes[mode] = size if own == self._scan.batch or own.isdigit() else own
        self.leave_to_a_person(
            node, "give its RunConfig cluster=TPUClusterResolver(...) on a TPU", "10"
        )
        arguments.append(keyword("use_tpu", "True"))
        arguments += [keyword(f"{mode}_batch_size", each) for mode, each in sizes.items()]
        return called(new, self._tpu("TPUEstimator"), arguments)

    def _params(self, node: cst.Call, value: cst.BaseExpression) -> cst.BaseExpression:
        if not self._scan.boxes_params:
            return _without_batch(value, self._scan.dicts)
        if not self._scan.models:
            what = (
                'TPUEstimator puts "batch_size" into params: hand over a dict, as {"hparams": '
                f'{code(value)}}}, and take params["hparams"] in model_fn'
            )
            self.leave_to_a_person(node, what, "02")
            return value
        return cst.parse_expression(f'{{"hparams": {code(value)}}}')

    def _config(self, new: cst.Call) -> cst.Call:
        arguments = _by_keyword(new, _CONFIG)
        arguments.append(
            keyword("tpu_config", f"{self._tpu('TPUConfig')}(iterations_per_loop=100)")
        )
        return called(new, self._tpu("RunConfig"), arguments)

    def _spec(self, node: cst.Call, new: cst.Call) -> cst.Call:
        arguments = []
        self._optimizers.note_step(node)
        for given in _by_keyword(new, _SPEC, after=4):
            name = given.keyword.value if given.keyword else ""
            if name == "eval_metric_ops":
                value = self._metrics.any(argument(node, name, 4).value, given.value)
                named = isinstance(value, cst.Name) and value.value in self._told
                if value is given.value and not named:
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

    def _takes_input(self, new: cst.Call) -> cst.Call:
        given = argument(new, "input_fn", 0)
        if not given:
            return new
        changed = given.with_changes(value=taking_params(given.value, self._scan))
        return new.with_changes(args=[changed if each is given else each for each in new.args])

    def _drops(self, node: cst.Call) -> None:
        what = "drop_remainder leaves out the last examples: an evaluation must pad them, with weight 0"
        self.leave_to_a_person(node, what, "03")

    def _batch(self, node: cst.Call, new: cst.Call, name: str) -> cst.Call:
        at = {"batch": 1, "padded_batch": 3, "map_and_batch": 3}.get(name, 0)
        if self._scan.predicts.intersection(self._inside):
            return new
        if name.endswith("drop_remainder"):
            return new
        if given := argument(new, "drop_remainder", at):
            if code(given.value) != "True":
                what = f"drop_remainder={code(given.value)}: training and evaluation need True on a TPU"
                self.leave_to_a_person(node, what, "03")
            return new
        if any(each.star for each in new.args):
            return new
        self._drops(node)
        return called(new, code(new.func), [*new.args, keyword("drop_remainder", "True")])


def _by_keyword(call: cst.Call, names: tuple[str, ...], after: int = 0) -> list[cst.Arg]:
    """The arguments, those by position from `after` on with their names."""
    return [
        each.with_changes(keyword=cst.Name(names[index]), equal=keyword("x", "0").equal)
        if index >= after and not each.keyword and not each.star and index < len(names)
        else each
        for index, each in enumerate(call.args)
    ]


def _without_batch(value: cst.BaseExpression, dicts: dict[str, str]) -> cst.BaseExpression:
    if isinstance(value, cst.Name) and value.value in dicts:
        name, key = value.value, dicts[value.value]
        return cst.parse_expression(f"{{k: v for k, v in {name}.items() if k != {key}}}")
    if not isinstance(value, cst.Dict):
        return value
    kept = [e for e in value.elements if not (isinstance(e, cst.DictElement) and is_batch_key(e))]
    if kept and len(kept) < len(value.elements):
        kept[-1] = kept[-1].with_changes(comma=value.elements[-1].comma)
    return value.with_changes(elements=kept)
