"""Puts the TPU's forms for the plain Estimator's: the four changes, as edits of a program."""

import ast
import re

from lab_utils.port.program import Program, argument, last_name, parameters

_SIZES = ("train_batch_size=1024", "eval_batch_size=1024", "predict_batch_size=1024")
_CONFIG = ("model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps")
_METRIC = re.compile(r"(contrib\.(slim\.)?)?metrics\.(?!aggregate)")
_OPTIMIZER = re.compile(r"(train|contrib\.(opt|optimizer_v2))\.(?!SyncReplicas)\w+Optimizer")


class Forms:
    """The edits of one file that names version 1's API `v1`."""

    def __init__(self, program: Program, v1: str) -> None:
        self._program, self._v1 = program, v1

    def apply(self) -> None:
        """Makes the edits, and lists what belongs to them."""
        if "stimator" not in self._program.text:
            return
        self._wrap_optimizers()
        changes = {
            "estimator.Estimator": self._estimator,
            "estimator.RunConfig": self._run_config,
            "estimator.EstimatorSpec": self._spec,
        }
        for node in self._program.nodes:
            if isinstance(node, ast.FunctionDef):
                self._model(node)
            elif isinstance(node, ast.Call):
                path = self._program.tf_path(node.func)
                if path in changes:
                    self._program.replace_node(node.func, self._tpu(f"TPU{path[10:]}"))
                    changes[path](node)

    def _tpu(self, name: str) -> str:
        return f"{self._v1}.estimator.tpu.{name.replace('TPURun', 'Run')}"

    def _model(self, function: ast.FunctionDef) -> None:
        names = parameters(function)
        if not {"features", "labels", "mode"} <= set(names) or "params" in names:
            return
        if function.args.defaults or function.args.kwonlyargs or function.args.kwarg:
            self._program.leave(function, "a model function must take params", "02")
        else:
            self._program.surround(function.args.args[-1], "", ", params")

    def _run_config(self, call: ast.Call) -> None:
        for name, value in zip(_CONFIG, call.args, strict=False):
            self._program.surround(value, f"{name}=", "")
        self._program.insert_arguments(call, self._loops())

    def _loops(self) -> str:
        return f"tpu_config={self._tpu('TPUConfig')}(iterations_per_loop=100)"

    def _estimator(self, call: ast.Call) -> None:
        program, params = self._program, argument(call, "params", 3)
        keys = [getattr(key, "value", None) for key in getattr(params, "keys", [])]
        if params and (not isinstance(params, ast.Dict) or "batch_size" in keys):
            message = 'params must be a dict without "batch_size", which TPUEstimator puts into it'
            program.leave(call, message, "02")
        arguments = ["use_tpu=True", *_SIZES]
        if not argument(call, "config", 2):
            arguments.insert(0, f"config={self._tpu('RunConfig')}({self._loops()})")
        program.insert_arguments(call, *arguments)
        program.leave(
            call,
            'its input functions take params, and make batches of params["batch_size"] with '
            "drop_remainder=True",
            "02",
        )
        program.leave(call, "set the batch sizes: the diff has 1024 for all cores together", "08")
        program.leave(call, "give its RunConfig cluster=TPUClusterResolver(...) on a TPU", "12")

    def _wrap_optimizers(self) -> None:
        """CrossShardOptimizer around what an optimizer's call makes."""
        program = self._program
        names = {last_name(node) for node in program.nodes}
        if "CrossShardOptimizer" in names or "EstimatorSpec" not in program.text:
            return
        classes = {
            node.name
            for node in program.nodes
            if isinstance(node, ast.ClassDef)
            and any(last_name(base).endswith("Optimizer") for base in node.bases)
        }
        optimizers = {
            node: program.parents[node]
            for node in program.chains()
            if getattr(node, "id", "") in classes or _OPTIMIZER.fullmatch(program.tf_path(node))
        }
        for node, call in optimizers.items():
            if isinstance(call, ast.ClassDef):  # class Mine(tf.train.Optimizer)
                continue
            holds_another = any(n in ast.walk(call) for n in optimizers if n is not node)
            if isinstance(call, ast.Call) and call.func is node and not holds_another:
                program.surround(call, f"{self._v1}.tpu.CrossShardOptimizer(", ")")
                message = 'on a CPU the wrapped optimizer fails: wrap it only if params["use_tpu"]'
                program.leave(node, message, "02")
            else:
                message = "wrap the optimizer that is made of this in CrossShardOptimizer"
                program.leave(node, message, "02")
        if not optimizers:
            message = (
                "there is no optimizer in this file: wrap the optimizer of train_op in "
                "CrossShardOptimizer"
            )
            for node in program.nodes:
                if isinstance(node, ast.keyword) and node.arg == "train_op":
                    program.leave(node, message, "02")

    def _spec(self, call: ast.Call) -> None:
        program = self._program
        for keyword in call.keywords:
            if keyword.arg == "eval_metric_ops":
                start = program.span(keyword)[0]
                program.replace(start, start + len("eval_metric_ops"), "eval_metrics")
            elif keyword.arg in ("scaffold", "training_chief_hooks"):
                message = (
                    f"TPUEstimatorSpec has no argument {keyword.arg}: see scaffold_fn and hooks"
                )
                program.leave(call, message, "15")
        metrics = argument(call, "eval_metric_ops", 4)
        if isinstance(metrics, ast.Name):
            function = next(program.functions_around(call), program.tree)
            values = [
                node.value
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and last_name(node.targets[0]) == metrics.id
            ]
            metrics = values[0] if len(values) == 1 else metrics
        if metrics and not (isinstance(metrics, ast.Constant) and metrics.value is None):
            self._metrics(call, metrics)

    def _metrics(self, call: ast.Call, metrics: ast.expr) -> None:
        """{"a": tf.metrics.mean(x)} becomes (lambda x: {"a": tf.metrics.mean(x)}, [x])."""
        program = self._program
        values = metrics.values if isinstance(metrics, ast.Dict) else []
        paths = [program.tf_path(getattr(value, "func", value)) for value in values]
        if not values or not all(_METRIC.match(path) for path in paths):
            message = (
                "eval_metrics must be (metric_fn, tensors), since the host builds the metrics "
                "with metric_fn"
            )
            program.leave(call, message, "04")
            return
        names: dict[str, str] = {}
        for value in values:
            for tensor in (*value.args, *(keyword.value for keyword in value.keywords)):
                if not isinstance(tensor, ast.Constant):
                    text = program.code(tensor)
                    name = text if isinstance(tensor, ast.Name) else f"tensor_{len(names)}"
                    program.replace_node(tensor, names.setdefault(text, name))
        program.surround(
            metrics, f"(lambda {', '.join(names.values())}: ", f", [{', '.join(names)}])"
        )
        program.leave(metrics, "each tensor of eval_metrics needs a batch dimension", "04")
