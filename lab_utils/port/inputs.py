"""The input functions of a file: they take params, and batch by params["batch_size"]."""

import ast
from collections import defaultdict

from lab_utils.port.program import Program, argument, last_name, parameters

_BATCH_SIZE = 'params["batch_size"]'
_USERS = ("train", "TrainSpec", "evaluate", "EvalSpec", "predict")  # of an input_fn
# What makes batches -> where their size and drop_remainder stand.
_BATCHES = {
    "batch": (0, 1), "padded_batch": (0, 3), "map_and_batch": (1, 3), "batch_and_drop_remainder": (0, -1),
}  # fmt: skip


class Inputs:
    """The edits of one file's input functions."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._calls = [node for node in program.nodes if isinstance(node, ast.Call)]
        self._functions: dict[str, list[ast.AST]] = defaultdict(list)
        for node in program.nodes:
            if isinstance(node, ast.FunctionDef):
                self._functions[node.name].append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                self._functions[last_name(node.targets[0])].append(node.value)

    def apply(self) -> None:
        """Edits them, and lists what a person must change."""
        names: dict[bool, set[str]] = {True: set(), False: set()}  # used by predict, by others
        functions: dict[ast.AST, None] = {}
        for call in self._calls:
            user = last_name(call.func)
            if user in _USERS and (input_fn := argument(call, "input_fn", 0)):
                names[user == "predict"] |= {last_name(node) for node in ast.walk(input_fn)}
                functions |= dict.fromkeys(self._used(input_fn))
        for function in functions:
            self._take_params(function)
        for call in self._calls:
            if last_name(call.func) in _BATCHES:
                self._drop_remainder(call, names[True] - names[False])

    def _used(self, input_fn: ast.expr) -> list[ast.AST]:
        """The functions and lambdas that an argument `input_fn` is."""
        if isinstance(input_fn, ast.Lambda):
            return [input_fn]
        if not isinstance(input_fn, ast.Call):
            return self._functions[last_name(input_fn)]
        maker = last_name(input_fn.func)
        if maker == "partial":
            return self._used(input_fn.args[0])
        return [
            inner
            for outer in self._functions[maker]
            for node in ast.walk(outer)
            if isinstance(node, ast.Return)
            for inner in self._functions[last_name(node.value)]
            if outer in self._program.functions_around(inner)
        ]

    def _take_params(self, function: ast.AST) -> None:
        program = self._program
        names = parameters(function)
        start = program.span(function)[0]
        if isinstance(function, ast.Lambda) and not names:
            program.replace(start + len("lambda"), start + len("lambda"), " params")
            for size in self._sizes_in(function.body):
                program.replace_node(size, _BATCH_SIZE)
            return
        if names in ([], ["self"]):
            at = program.find(rb"def\s+\w+\s*\(\s*(self)?", start)
            program.replace(at, at, ", params" if names else "params")
        elif "params" not in names and not function.args.kwarg:
            name = getattr(function, "name", "a lambda")
            message = f"{name} does not take params, in which TPUEstimator passes the batch size"
            return program.leave(function, message, "02")
        elif any(last_name(node) == "params" for node in ast.walk(function)):
            return  # it sees to its batches itself
        self._batch_by_params(function)

    def _sizes_in(self, call: ast.expr) -> list[ast.expr]:
        """The arguments of a call that are batch sizes, by their name or by the parameter's."""
        if not isinstance(call, ast.Call):
            return []
        names = [name for f in self._functions[last_name(call.func)] for name in parameters(f)]
        names = names[names[:1] == ["self"] :] + [""] * len(call.args)
        values = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        return [v for name, v in values if _says_batch(name or "") or _says_batch(last_name(v))]

    def _batch_by_params(self, function: ast.AST) -> None:
        """Puts params["batch_size"] for the size of the batches that a function makes, or lists it."""
        sizes = [
            size
            for call in self._calls
            if function is next(self._program.functions_around(call), None)
            and (at := _BATCHES.get(last_name(call.func)))
            and (size := argument(call, "batch_size", at[0]))
        ]
        for size in sizes:
            message = (
                f"batches of {self._program.code(size)}, but a step needs batches of {_BATCH_SIZE}"
            )
            self._program.leave(size, message, "02")
            if len(sizes) == 1:
                self._program.replace_node(size, _BATCH_SIZE)

    def _drop_remainder(self, call: ast.Call, of_predict: set[str]) -> None:
        around = {getattr(node, "name", "") for node in self._program.functions_around(call)}
        size_at, drop_at = _BATCHES[last_name(call.func)]
        if drop_at < 0 or around & of_predict or not argument(call, "batch_size", size_at):
            return  # TPUEstimator fills up the last batch of predict
        if not (value := argument(call, "drop_remainder", drop_at)):
            self._program.insert_arguments(call, "drop_remainder=True")
            message = (
                "drop_remainder leaves out the last examples: in evaluation, pad the last batch "
                "with examples of weight 0"
            )
            self._program.leave(call, message, "03")
        elif getattr(value, "value", None) is not True:
            message = f"drop_remainder={self._program.code(value)}: it must be True on a TPU"
            self._program.leave(call, message, "03")


def _says_batch(name: str) -> bool:
    return name.lower().endswith("batch_size")
