"""What is known of a file before it is changed: its input functions, metrics and batch size."""

import re

import libcst as cst
import libcst.matchers as m

from lab_utils.port.record import argument, code
from lab_utils.port.sizes import batch_key, is_batch_key, says_batch, size_of

TAKES_INPUT = ("train", "evaluate", "predict", "TrainSpec", "EvalSpec")
_METRICS = "eval_metric_ops"
_NAMESPACES = ("parse_args", "parse_known_args", "Namespace", "SimpleNamespace")
# What the name of a batch size holds where it is of one mode alone.
_OF_MODE = {"eval": ("eval", "valid", "test", "dev"), "predict": ("predict", "infer", "test")}


class Scan(cst.CSTVisitor):
    """Attributes: what it found.

    models: names of model functions that take params.
    is_port, has_keras: the file has an Estimator, or Keras, at all.
    parameters: a function's name -> those of its parameters.
    input_fns: names of functions that are handed to train, evaluate, predict, TrainSpec or EvalSpec.
    predicts: those of them that predict alone uses: TPUEstimator fills up its last batch.
    makers: names of functions whose result is handed over: what they return are input functions.
    returned: names of functions that are returned as they are.
    metrics: names that are handed to EstimatorSpec as eval_metric_ops.
    values: the one call that is assigned to a name.
    dicts: names of the dicts that hold a batch size, with its key as it is written.
    classes: names of classes that are no dict and no HParams -> the attribute that is a batch size, or "".
    optimizers: names of classes that are optimizers.
    boxes_params: params are an object, where TPUEstimator puts "batch_size" into a dict.
    batch: the first expression of a batch size that holds where the Estimator is made, as text.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.is_port, self.has_keras = "stimator" in text, "keras" in text
        self.parameters: dict[str, tuple[str, ...]] = {}
        self.input_fns: set[str] = set()
        self.makers: set[str] = set()
        self._of_predict: set[str] = set()
        self._of_others: set[str] = set()
        self.returned: set[str] = set()
        self.metrics: set[str] = set()
        self.values: dict[str, cst.Call | None] = {}
        self.dicts: dict[str, str] = {}
        self.classes: dict[str, str] = {}
        self.optimizers: set[str] = set()
        self.models: set[str] = set()
        self._params: list[cst.BaseExpression] = []
        self._in_params = ""
        self._in_batch: list[str] = []
        # Names that hold in the file, and in each function that is being read; expressions seen there, with
        # the function and the class.
        self._bound: list[set[str]] = [set()]
        self._seen: list[tuple[int, str, str]] = []
        # Of the Estimator: the function that makes it, its class, and the names that hold there by then.
        self._made_in: tuple[int, str, set[str]] = (0, "", set())
        self._function, self._functions, self._classes = 0, [0], [""]
        self._given: list[str] = []  # numbers that functions get for a parameter like batch_size
        self._defaults: list[str] = []
        self._sizes: dict[str, str] = {}  # a function's name -> its parameter like batch_size
        self._lambdas: list[set[str]] = []

    @property
    def batch(self) -> str:
        """As the program's params name it, else its batch() and input functions; "" if none holds there."""
        function, own, names = self._made_in
        here = (
            text
            for where, owner, text in self._seen
            if (root := _root(text)) in self._bound[0]
            or (where == function and root in names)
            or (owner == own and root == "self" and ".".join(text.split(".")[:2]) in names)
        )
        last = next(iter(self._given + self._defaults), "")
        of_dict = next(
            (f"{name}[{key}]" for name, key in self.dicts.items() if name in self._bound[0]), ""
        )
        return self._in_params or self._found() or next(here, "") or of_dict or last

    def batch_of(self, mode: str) -> str:
        """The batch size whose name says "eval" or "predict", else `batch`."""
        own = (each for each in self._in_batch if any(w in each.lower() for w in _OF_MODE[mode]))
        return next(own, self.batch)

    def _found(self) -> str:
        words = {word for each in _OF_MODE.values() for word in each}
        of_all = (each for each in self._in_batch if not any(w in each.lower() for w in words))
        return next(of_all, self._in_batch[0] if self._in_batch else "")

    @property
    def boxes_params(self) -> bool:
        """See the attributes."""
        return any(self.is_object(each) for each in self._params)

    def is_object(self, params: cst.BaseExpression) -> bool:
        """Whether params, as handed to an Estimator, can be no dict: a class, what it makes, or flags."""
        if code(params).rpartition(".")[2] == "FLAGS" or code(params) in self.classes:
            return True
        if isinstance(params, cst.Name):
            params = self.values.get(params.value)
        if not isinstance(params, cst.Call):
            return False
        made = code(params.func).rpartition(".")[2]
        kind = self.values.get(made)
        is_tuple = kind is not None and code(kind.func).endswith("namedtuple")
        return is_tuple or made in self.classes or made in _NAMESPACES

    def size_given(self, call: cst.Call) -> tuple[str, cst.Arg | None]:
        """The parameter like batch_size of a function of the file ("" without one), and what it gets."""
        function = code(call.func).rpartition(".")[2]
        name = self._sizes.get(function, "")
        taken = [each for each in self.parameters.get(function, ()) if each != "self"]
        return name, argument(call, name, taken.index(name)) if name else None

    @property
    def predicts(self) -> set[str]:
        """See the attributes."""
        return self._of_predict - self._of_others

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Notes what it takes."""
        given = (*node.params.params, *node.params.kwonly_params)
        names = self.parameters[node.name.value] = tuple(each.name.value for each in given)
        if {"features", "labels", "mode", "params"} <= set(names):
            self.models.add(node.name.value)
        for each in given:
            is_flag = each.default and code(each.default) in ("True", "False")
            if says_batch(cst.Arg(each.name)) and not is_flag:
                self._sizes[node.name.value] = each.name.value
                if isinstance(each.default, cst.Integer):
                    self._defaults.append(each.default.value)
        self._bound.append({each.name.value for each in given})
        self._function += 1
        self._functions.append(self._function)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        """Its names hold no more."""
        self._bound.pop()
        self._functions.pop()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        """A class may hold settings, or be an optimizer."""
        self._bound[-1].add(node.name.value)
        self._classes.append(node.name.value)
        bases = [code(each.value) for each in node.bases]
        if any(each.endswith("Optimizer") for each in bases):
            self.optimizers.add(node.name.value)
        elif not any(each.endswith(("dict", "Dict", "HParams")) for each in bases):
            fields = (
                name.value
                for each in m.findall(node.body, m.AssignTarget() | m.AnnAssign())
                for name in m.findall(each.target, m.Name())
            )
            sizes = (each for each in fields if says_batch(cst.Arg(cst.Name(each))))
            self.classes[node.name.value] = next(sizes, "")

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        """We are in the one around it."""
        self._classes.pop()

    def visit_Return(self, node: cst.Return) -> None:
        """Notes which functions are returned."""
        values = [node.value]
        if isinstance(node.value, cst.IfExp):
            values = [node.value.body, node.value.orelse]
        self.returned.update(each.value for each in values if isinstance(each, cst.Name))

    def visit_Assign(self, node: cst.Assign) -> None:
        """Notes names, and what they stand for."""
        for target in node.targets:
            self._bound[-1].update(each.value for each in m.findall(target.target, m.Name()))
            if m.matches(target.target, m.Attribute(value=m.Name("self"))):
                self._bound[-1].add(code(target.target))
        target = node.targets[0].target
        known = isinstance(node.value, cst.Call) and code(node.value.func)
        if isinstance(target, cst.Tuple) and known and known.endswith("parse_known_args"):
            target = target.elements[0].value
        if not isinstance(target, cst.Name) or code(node.value) == "None":
            return
        once = isinstance(node.value, cst.Call) and target.value not in self.values
        self.values[target.value] = node.value if once else None
        if key := batch_key(node.value):
            self.dicts[target.value] = key

    def visit_Call(self, node: cst.Call) -> None:
        """Notes what the call hands over."""
        name = code(node.func).rpartition(".")[2]
        _, given = self.size_given(node)
        if given and isinstance(given.value, cst.Integer):
            self._given.append(given.value.value)
        if name in TAKES_INPUT:
            given = argument(node, "input_fn", 0)
            self._input(given)
            users = self._of_predict if name == "predict" else self._of_others
            users.update(_functions(given))
        elif name == "EstimatorSpec":
            given = argument(node, _METRICS, 4)
            if given and isinstance(given.value, cst.Name):
                self.metrics.add(given.value.value)
        elif (size := size_of(node)) and not self._is_window(node.func):
            self._note_batch(size.value)
        elif name == "Estimator":
            self._made_in = self._functions[-1], self._classes[-1], set(self._bound[-1])
            if params := argument(node, "params", 3):
                self._note_params(params.value)

    def visit_Lambda(self, node: cst.Lambda) -> None:
        """Notes its parameters."""
        self._lambdas.append({each.name.value for each in node.params.params})

    def leave_Lambda(self, original_node: cst.Lambda) -> None:
        """They hold no more."""
        self._lambdas.pop()

    def _is_window(self, function: cst.BaseExpression) -> bool:
        """windows.flat_map(lambda window: window.batch(9))."""
        data = function.value if isinstance(function, cst.Attribute) else None
        return isinstance(data, cst.Name) and any(data.value in names for names in self._lambdas)

    def _input(self, given: cst.Arg | None) -> None:
        value = given.value if given else None
        if isinstance(value, cst.Name):
            self.input_fns.add(value.value)
        elif m.matches(value, m.Attribute(value=m.Name("self"))):
            self.input_fns.add(value.attr.value)
        elif isinstance(value, cst.Call):
            self.makers.add(code(value.func).rpartition(".")[2])
        call = value.body if isinstance(value, cst.Lambda) else value
        if isinstance(call, cst.Call):
            for each in call.args:
                if says_batch(each):
                    self._note_batch(each.value)

    def _note_params(self, value: cst.BaseExpression) -> None:
        self._params.append(value)
        kind = self.values.get(code(value))
        held = self.classes.get(code(kind.func) if kind else code(value))
        if held and not self._in_params:
            self._in_params = f"{code(value)}.{held}"
        if isinstance(value, cst.Name) and value.value in self.dicts:
            self._in_params = self._in_params or f"{value.value}[{self.dicts[value.value]}]"
        given = value.elements if isinstance(value, cst.Dict) else ()
        sizes = [e for e in given if isinstance(e, cst.DictElement) and is_batch_key(e)]
        if sizes and not self._in_params:
            self._in_params = code(sizes[0].value)

    def _note_batch(self, value: cst.BaseExpression) -> None:
        text = code(value)
        if isinstance(value, cst.Integer) or text.isupper() or text.startswith("FLAGS."):
            self._in_batch.append(text)
        elif says_batch(cst.Arg(value)):
            self._seen.append((self._functions[-1], self._classes[-1], text))


def _functions(given: cst.Arg | None) -> set[str]:
    """The names of all functions that make what is handed over as input_fn."""
    if given is None:
        return set()
    return {each.value for each in m.findall(given, m.Name())}


def _root(text: str) -> str:
    return re.match(r"\w*", text)[0]
