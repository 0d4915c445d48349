"""Lists what no pass changes: what a TPU takes in another form, and that a person must write."""

import re

import libcst as cst
import libcst.matchers as m
from libcst.metadata import ParentNodeProvider

from lab_utils.port.inputs import bound_by_partial
from lab_utils.port.optimizers import OPTIMIZER
from lab_utils.port.record import Job, Pass, argument, code
from lab_utils.port.scan import TAKES_INPUT, Scan

CORES = 8  # of the topology that the port is written for
_KERAS = re.compile(r"keras\.optimizers\.(legacy\.|experimental\.)?(?!schedules)\w+$")
_METRICS = m.SimpleString("'eval_metric_ops'") | m.SimpleString('"eval_metric_ops"')
KEPT_METRICS = m.Subscript(  # spec["eval_metric_ops"]
    value=m.Name(), slice=[m.SubscriptElement(slice=m.Index(value=_METRICS))]
)
NO_DATASET = "its batches are not of fixed size, and it takes no params: use tf.data"
_READY_MADE = r"estimator\.(DNN|Linear|Baseline|BoostedTrees)\w+$"
_CALLS = {
    r"(py_func|numpy_function|py_function)$": ("runs Python, which a TPU cannot: keep it in input_fn", "03"),
    r"summary\.(scalar|image|histogram|audio|text)$": (
        "a summary in model_fn is dropped on a TPU: write it in a host_call", "04"),
    r"train\.(Logging|Profiler|Summary|StepCounter|NanTensor)\w*Hook$": (
        "a hook sees a TPU once in iterations_per_loop steps", "04"),
    r"estimator\.inputs\.(?!numpy)\w+$": (NO_DATASET, "03"),
    _READY_MADE: ("this ready-made estimator has no form for a TPU: write its model_fn", "02"),
    r"train\.(shuffle_|maybe_|maybe_shuffle_)?batch(_join)?$|train\.\w+_producer$": (
        "a queue feeds this: TPUEstimator takes a tf.data.Dataset", "06"),
    r"train\.SyncReplicasOptimizer$": (
        "the cores of a TPU are in step by CrossShardOptimizer: leave this one out", "02"),
    r"(contrib\.)?data\.(experimental\.)?(bucket_by_sequence_length|group_by_window)$": (
        "its batches differ in shape: pad them to one size", "03"),
    r"(contrib\.)?distribute\.\w*Strategy$": (
        "TPUEstimator's RunConfig takes no strategy: its cores are num_shards", "02"),
    r"contrib\.(slim\.|training\.)(learning\.)?train$": (
        "a training loop of its own: the TPUEstimator's train() takes its place", "01"),
    r"where$|unique$|boolean_mask$": ("its result may have a size that depends on the data", "03"),
}  # fmt: skip
_OF_OLD_SLIM = re.compile(
    r"contrib\.(\w+\.)+(optimize_loss|create_train_op|clip_gradient_norms|multiply_gradients|"
    r"add_gradients_summaries|streaming_concat|auc_with_confidence_intervals|local_variable)$"
)
_LOOPS = re.compile(r"(Interactive)?Session$|train\.(Monitored\w*Session|Supervisor)$")
_NO_PARAMS = "takes no params, where TPUEstimator puts the batch size"


class Told(Pass):
    """A pass over the file as it was; it changes nothing."""

    METADATA_DEPENDENCIES = (*Pass.METADATA_DEPENDENCIES, ParentNodeProvider)

    def __init__(self, job: Job, scan: Scan, wraps: bool) -> None:
        super().__init__(job)
        self._scan, self._wraps = scan, wraps

    def visit_Call(self, node: cst.Call) -> None:
        """A call of TensorFlow that a TPU cannot take so."""
        path = self.imported(node.func)
        for pattern, (what, lab) in _CALLS.items():
            if re.match(pattern, path):
                self.leave_to_a_person(node, f"{path}: {what}", lab)
        if _OF_OLD_SLIM.match(path):
            self.job.imports.add("lab_utils.port.contrib.left")
            what = "tf-slim uses names TensorFlow has no more; lab_utils.port.contrib.left gives them back"
            self.leave_to_a_person(
                node, f"tf.{path}: {what}: copy it to be free of this course's package"
            )
        name = code(node.func).rpartition(".")[2]
        if name == "create_estimator_spec":
            what = "a head makes a plain EstimatorSpec: write the TPUEstimatorSpec with loss and train_op"
            self.leave_to_a_person(node, what, "02")
        if self._scan.is_port and _KERAS.match(path):
            what = "CrossShardOptimizer takes none of Keras' optimizers: use one of tf.train"
            self.leave_to_a_person(node, f"{path}: {what}", "02")
        if not self._scan.is_port and _LOOPS.match(path):
            what = "a training loop of its own: put the model into a model_fn, and train it by a TPUEstimator"
            self.leave_to_a_person(node, what, "01")
        if not self._scan.is_port and name == "fit" and self._scan.has_keras:
            what = "a Keras model trains under a TPUStrategy: its dry run is `--main`"
            self.leave_to_a_person(node, what, "11")
        if path != "estimator.EstimatorSpec" and argument(node, "eval_metric_ops"):
            self._metrics(node)
        if self._scan.is_port and name in TAKES_INPUT:
            self._partial(argument(node, "input_fn", 0))

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """class Mine(tf.estimator.Estimator)."""
        for base in node.bases:
            path = self.imported(base.value)
            if path == "estimator.Estimator":
                what = "its base must be TPUEstimator, whose __init__ takes use_tpu and batch sizes"
                self.leave_to_a_person(node, what, "02")
            elif re.match(_READY_MADE, path):
                self.leave_to_a_person(node, f"{path}: {_CALLS[_READY_MADE][0]}", "02")

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        """import horovod.tensorflow as hvd."""
        if code(node.name).startswith("horovod"):
            what = "Horovod does not run on TPUs: leave it out, and CrossShardOptimizer sums the gradients"
            self.leave_to_a_person(node, what, "02")

    def visit_Assign(self, node: cst.Assign) -> None:
        """spec["eval_metric_ops"] = ..., train_input = functools.partial(...), BATCH = 30."""
        target = node.targets[0].target
        if m.matches(target, KEPT_METRICS) and not isinstance(node.value, cst.Dict):
            self._metrics(node)
        if not isinstance(target, cst.Name):
            return
        if target.value in self._scan.input_fns:
            self._partial(cst.Arg(node.value))
        is_batch = target.value == self._scan.batch and isinstance(node.value, cst.Integer)
        if is_batch and node.value.evaluated_value % CORES:
            what = f"{target.value} is of all {CORES} cores, and must be a multiple of {CORES}"
            self.leave_to_a_person(node, what, "08")

    def visit_DictElement(self, node: cst.DictElement) -> None:
        """{"eval_metric_ops": ...}."""
        if m.matches(node.key, _METRICS):
            self._metrics(node)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """An input function with arguments of its own."""
        taken = [each.name.value for each in (*node.params.params, *node.params.kwonly_params)]
        mine = node.name.value in self._scan.input_fns and taken not in ([], ["self"])
        if mine and "params" not in taken and not node.params.star_kwarg:
            self.leave_to_a_person(node, f"{node.name.value} {_NO_PARAMS}", "02")

    def visit_Attribute(self, node: cst.Attribute) -> None:
        """{"adam": tf.train.AdamOptimizer}: what it makes is wrapped nowhere."""
        self._class_of_optimizer(node)

    def visit_Name(self, node: cst.Name) -> None:
        """The same where the name itself was imported."""
        self._class_of_optimizer(node)

    def _class_of_optimizer(self, node: cst.CSTNode) -> None:
        path = self.imported(node)
        if not self._wraps or not OPTIMIZER.match(path) or path == "train.Optimizer":
            return
        parent = self.get_metadata(ParentNodeProvider, node)
        whole = not isinstance(parent, cst.Attribute | cst.ImportAlias | cst.ImportFrom)
        if whole and not (isinstance(parent, cst.Call) and parent.func is node):
            what = "an optimizer's class is chosen here: wrap what it makes in CrossShardOptimizer"
            self.leave_to_a_person(node, what, "02")

    def _metrics(self, node: cst.CSTNode) -> None:
        what = (
            "eval_metric_ops becomes eval_metrics=(metric_fn, tensors): metric_fn runs on the host"
        )
        self.leave_to_a_person(node, what, "04")

    def _partial(self, given: cst.Arg | None) -> None:
        """functools.partial(input_fn, ...) hands params over only to a function that takes them."""
        call = given.value if given else None
        if (
            not isinstance(call, cst.Call)
            or not code(call.func).endswith("partial")
            or not call.args
        ):
            return
        if bound_by_partial(call, self._scan):
            return  # it becomes a lambda that takes params
        function = code(call.args[0].value)
        if "params" not in self._scan.parameters.get(function, ("params",)):
            self.leave_to_a_person(call, f"{function} {_NO_PARAMS}", "02")
