"""What is known of a file before it is changed: its input functions, metrics and batch size."""

import libcst as cst
import libcst.matchers as m

from lab_utils.port.record import argument, code

TAKES_INPUT = ("train", "evaluate", "predict", "TrainSpec", "EvalSpec")
_METRICS = "eval_metric_ops"


class Scan(cst.CSTVisitor):
    """Attributes: what it found.

    is_port, has_keras: the file has an Estimator, or Keras, at all.
    parameters: a function's name -> those of its parameters.
    input_fns: names of functions that are handed to train, evaluate, predict, TrainSpec or EvalSpec.
    predicts: those of them that predict alone uses: TPUEstimator fills up its last batch.
    makers: names of functions whose result is handed over: their inner functions are input functions.
    metrics: names that are handed to EstimatorSpec as eval_metric_ops.
    batch: the first expression of a batch size, as text.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.is_port, self.has_keras = "stimator" in text, "keras" in text
        self.parameters: dict[str, tuple[str, ...]] = {}
        self.input_fns: set[str] = set()
        self.makers: set[str] = set()
        self._of_predict: set[str] = set()
        self._of_others: set[str] = set()
        self.metrics: set[str] = set()
        self._in_params = self._in_batch = ""

    @property
    def batch(self) -> str:
        """As the program's params name it, else as its batch() does; "" if neither holds elsewhere."""
        return self._in_params or self._in_batch

    @property
    def predicts(self) -> set[str]:
        """See the attributes."""
        return self._of_predict - self._of_others

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Notes what it takes."""
        given = (*node.params.params, *node.params.kwonly_params)
        self.parameters[node.name.value] = tuple(each.name.value for each in given)

    def visit_Call(self, node: cst.Call) -> None:
        """Notes what the call hands over."""
        name = code(node.func).rpartition(".")[2]
        if name in TAKES_INPUT:
            given = argument(node, "input_fn", 0)
            self._input(given)
            users = self._of_predict if name == "predict" else self._of_others
            users.update(_functions(given))
        elif name == "EstimatorSpec":
            given = argument(node, _METRICS, 4)
            if given and isinstance(given.value, cst.Name):
                self.metrics.add(given.value.value)
        elif name in ("batch", "padded_batch") and node.args:
            self._note_batch(node.args[0].value)
        elif name == "Estimator" and (params := argument(node, "params", 3)):
            given = params.value.elements if isinstance(params.value, cst.Dict) else ()
            sizes = [e for e in given if isinstance(e, cst.DictElement) and is_batch_key(e)]
            if sizes and not self._in_params:
                self._in_params = code(sizes[0].value)

    def _input(self, given: cst.Arg | None) -> None:
        value = given.value if given else None
        if isinstance(value, cst.Name):
            self.input_fns.add(value.value)
        elif m.matches(value, m.Attribute(value=m.Name("self"))):
            self.input_fns.add(value.attr.value)
        elif isinstance(value, cst.Call):
            self.makers.add(code(value.func))
        elif isinstance(value, cst.Lambda) and isinstance(value.body, cst.Call):
            for each in value.body.args:
                if says_batch(each):
                    self._note_batch(each.value)

    def _note_batch(self, value: cst.BaseExpression) -> None:
        text = code(value)
        if isinstance(value, cst.Integer) or text.isupper() or text.startswith("FLAGS."):
            self._in_batch = self._in_batch or text


def _functions(given: cst.Arg | None) -> set[str]:
    """The names of all functions that make what is handed over as input_fn."""
    if given is None:
        return set()
    return {each.value for each in m.findall(given, m.Name())}


def is_batch_key(element: cst.DictElement) -> bool:
    """Whether a dict's entry is "batch_size", which TPUEstimator keeps for itself."""
    return isinstance(element.key, cst.SimpleString) and element.key.evaluated_value == "batch_size"


def says_batch(given: cst.Arg) -> bool:
    """Whether an argument is a batch size, by its keyword or its own name."""
    named = given.keyword.value if given.keyword else code(given.value).rpartition(".")[2]
    return named.lower().replace("_", "").endswith(("batchsize", "batch"))
