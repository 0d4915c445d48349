"""The input functions of a file: they take params, and batch by params["batch_size"]."""

import ast
from collections import defaultdict

from lab_utils.port.program import Program, argument, last_name, parameters

_BATCH_SIZE = 'params["batch_size"]'
_MODES = {
    "train": "train", "TrainSpec": "train", "evaluate": "eval", "EvalSpec": "eval", "predict": "predict",
}  # fmt: skip
# What makes batches -> where their size and drop_remainder stand.
_BATCHES = {
    "batch": (0, 1), "padded_batch": (0, 3), "map_and_batch": (1, 3), "batch_and_drop_remainder": (0, -1),
}  # fmt: skip


class Inputs:
    """The edits of one file's input functions.

    Attributes:
        sizes: a mode ("train", "eval", "predict") -> batch sizes that hold anywhere in the file, as text.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._calls = [node for node in program.nodes if isinstance(node, ast.Call)]
        self._functions: dict[str, list[ast.AST]] = defaultdict(list)
        self._modes: dict[ast.AST, set[str]] = defaultdict(set)  # of the input functions
        self._names: dict[bool, set[str]] = defaultdict(set)  # used by predict, by others
        self.sizes: dict[str, list[str]] = defaultdict(list)
        for node in program.nodes:
            if isinstance(node, ast.FunctionDef):
                self._functions[node.name].append(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                self._functions[last_name(node.targets[0])].append(node.value)

    def apply(self) -> None:
        """Edits them, and lists what a person must change."""
        for call in self._calls:
            mode = _MODES.get(last_name(call.func))
            if mode and (input_fn := argument(call, "input_fn", 0)):
                names = {last_name(node) for node in ast.walk(input_fn)}
                self._names[mode == "predict"] |= names
                for function in self._used(input_fn, mode):
                    self._modes[function].add(mode)
        for function in list(self._modes):
            self._take_params(function)
        for call in self._calls:
            if last_name(call.func) in _BATCHES:
                self._drop_remainder(call, *_BATCHES[last_name(call.func)])

    def _used(self, input_fn: ast.expr, mode: str) -> list[ast.AST]:
        """The functions and lambdas that an argument `input_fn` is."""
        if isinstance(input_fn, ast.Lambda):
            return [input_fn]
        if not isinstance(input_fn, ast.Call):
            return self._functions[last_name(input_fn)]
        maker = last_name(input_fn.func)
        if maker == "partial":
            for function in self._functions[last_name(input_fn.args[0])]:
                self._check_params(input_fn, function)
            return []
        self._note(self._sizes_in(input_fn), {mode})
        return [
            inner
            for outer in self._functions[maker]
            for node in ast.walk(outer)
            if isinstance(node, ast.Return)
            for inner in self._functions[last_name(node.value)]
            if outer in self._program.functions_around(inner)
        ]

    def _check_params(self, node: ast.AST, function: ast.AST) -> None:
        if "params" not in parameters(function) and not function.args.kwarg:
            name = getattr(function, "name", "a lambda")
            message = f"{name} takes no params, where TPUEstimator puts the batch size"
            self._program.leave(node, message, "02")

    def _sizes_in(self, call: ast.Call) -> list[ast.expr]:
        """The arguments of a call that are batch sizes, by their name or by the parameter's."""
        taken = [name for f in self._functions[last_name(call.func)] for name in parameters(f)]
        taken = taken[taken[:1] == ["self"] :] + [""] * len(call.args)
        named = [*zip(taken, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
        return [v for name, v in named if _says_batch(name or "") or _says_batch(last_name(v))]

    def _note(self, sizes: list[ast.expr], modes: set[str]) -> None:
        for mode in modes:
            self.sizes[mode] += [self._program.code(size) for size in sizes if holds(size)]

    def _take_params(self, function: ast.AST) -> None:
        program = self._program
        names = parameters(function)
        start = program.span(function)[0]
        if isinstance(function, ast.Lambda) and not names:
            program.replace(start + len("lambda"), start + len("lambda"), " params")
            sizes = self._sizes_in(function.body) if isinstance(function.body, ast.Call) else []
        elif names in ([], ["self"]):
            at = program.find(rb"def\s+\w+\s*\(\s*(self)?", start)
            program.replace(at, at, ", params" if names else "params")
            sizes = self._batched(function)
        else:
            self._check_params(function, function)
            if any(last_name(node) == "params" for node in ast.walk(function)):
                return  # it sees to its batches itself
            sizes = self._batched(function)
        self._note(sizes, self._modes[function])
        for size in sizes:
            program.replace_node(size, _BATCH_SIZE)

    def _batched(self, function: ast.AST) -> list[ast.expr]:
        """The size of the batches that a function makes; what else it batches by is listed."""
        sizes = [
            (call, size)
            for call in self._calls
            if function is next(self._program.functions_around(call), None)
            and (at := _BATCHES.get(last_name(call.func)))
            and (size := argument(call, "batch_size", at[0]))
        ]
        known = [size for _, size in sizes if holds(size) or _says_batch(last_name(size))]
        if len(sizes) == len(known) == 1:
            return known
        for call, size in sizes:
            message = f"batches of {self._program.code(size)}: those of a step are of {_BATCH_SIZE}"
            self._program.leave(call, message, "02")
        return []

    def _drop_remainder(self, call: ast.Call, size_at: int, drop_at: int) -> None:
        around = {getattr(each, "name", "") for each in self._program.functions_around(call)}
        of_predict = around & (self._names[True] - self._names[False])
        if drop_at < 0 or of_predict or not argument(call, "batch_size", size_at):
            return  # TPUEstimator fills up the last batch of predict
        message = (
            "drop_remainder leaves out the last examples: an evaluation must pad them, of weight 0"
        )
        if not (value := argument(call, "drop_remainder", drop_at)):
            self._program.insert_arguments(call, "drop_remainder=True")
            self._program.leave(call, message, "03")
        elif getattr(value, "value", None) is not True:
            message = f"drop_remainder={self._program.code(value)}: it must be True on a TPU"
            self._program.leave(call, message, "03")


def holds(size: ast.expr) -> bool:
    """Whether a batch size means the same in the whole file: a number, a CONSTANT, a flag."""
    if isinstance(size, ast.Attribute):
        return last_name(size.value) == "FLAGS"
    return last_name(size).isupper() or type(getattr(size, "value", None)) is int


def _says_batch(name: str) -> bool:
    return name.lower().endswith("batch_size")
