"""What input functions need: params, and the batch size that it holds."""

import re

import libcst as cst
import libcst.matchers as m

from lab_utils.port.record import argument, code, keyword
from lab_utils.port.scan import Scan
from lab_utils.port.sizes import SIZE_AT, says_batch, size_of

_BATCH = cst.parse_expression('params["batch_size"]')
_METHODS = m.Attribute(attr=m.Name("batch") | m.Name("padded_batch"))
_APPLIED = m.OneOf(*(m.Name(each) for each in SIZE_AT if each not in ("batch", "padded_batch")))
_BATCHES = m.Call(func=_METHODS | _APPLIED | m.Attribute(attr=_APPLIED), args=[m.AtLeastN(n=1)])


def taking_params(value: cst.BaseExpression, scan: Scan) -> cst.BaseExpression:
    """lambda: input_fn(files, 32) as lambda params: input_fn(files, params["batch_size"]).

    And functools.partial(input_fn, files, 32), which would not hand params over.
    """
    if call := bound_by_partial(value, scan):
        value = cst.Lambda(cst.Parameters(), call)
    if not isinstance(value, cst.Lambda) or value.params.params or value.params.star_kwarg:
        return value
    body = value.body
    if isinstance(body, cst.Call):
        name, size = scan.size_given(body)
        sizes = [
            a.with_changes(value=_BATCH) if says_batch(a) or a is size else a for a in body.args
        ]
        if name and not size and not any(each.star for each in body.args):
            sizes.append(keyword(name, code(_BATCH)))
        body = body.with_changes(args=sizes)
    return cst.parse_expression("lambda params: 0").with_changes(body=body)


def bound_by_partial(value: cst.BaseExpression, scan: Scan) -> cst.Call | None:
    """The call that functools.partial(...) makes of a function of the file without params, else None."""
    if not isinstance(value, cst.Call) or not re.fullmatch(r"(\w+\.)?partial", code(value.func)):
        return None
    if len(value.args) < 2 or any(each.star for each in value.args):
        return None
    function, *given = value.args
    known = scan.parameters.get(code(function.value).removeprefix("self."), ("params",))
    return None if "params" in known else cst.Call(function.value, given)


def of_arrays(call: cst.Call, dataset: str) -> cst.BaseExpression | None:
    """numpy_input_fn(x, y, ...) as a function of params that makes `dataset`; None where a person must."""
    names = ("x", "y", "batch_size", "num_epochs", "shuffle")
    if any(each.star or (each.keyword and each.keyword.value not in names) for each in call.args):
        return None
    given = [argument(call, name, at) for at, name in enumerate(names)]
    x, y, _, epochs, shuffle = (code(each.value) if each else "" for each in given)
    if not x or shuffle not in ("True", "False"):
        return None
    data = f"{dataset}.from_tensor_slices({f'({x}, {y})' if y not in ('', 'None') else x})"
    size = f"len({y})" if re.fullmatch(r"[\w.]+", y) and y != "None" else "10000"
    data += f".shuffle({size})" if shuffle == "True" else ""
    data += {"": "", "1": "", "None": ".repeat()"}.get(epochs, f".repeat({epochs})")
    return cst.parse_expression(
        f'lambda params: {data}.batch(params["batch_size"], drop_remainder=True)'
    )


def with_params(function: cst.FunctionDef) -> cst.FunctionDef:
    """The input function with params as its last parameter."""
    params = cst.Parameters(params=[*function.params.params, cst.Param(cst.Name("params"))])
    return function.with_changes(params=params)


class Unbox(cst.CSTTransformer):
    """Model functions whose first line, below the docstring, is params = params["hparams"]."""

    def __init__(self, models: set[str]) -> None:
        super().__init__()
        self._models = models

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """One of the model functions, or another one."""
        if updated_node.name.value not in self._models:
            return updated_node
        line = cst.parse_statement('params = params["hparams"]')
        body = updated_node.body
        if isinstance(body, cst.SimpleStatementSuite):  # def f(...): return ...
            block = cst.IndentedBlock([line, cst.SimpleStatementLine(body.body)])
            return updated_node.with_changes(body=block)
        at = 1 if original_node.get_docstring() is not None else 0
        lines = [*body.body[:at], line, *body.body[at:]]
        return updated_node.with_changes(body=body.with_changes(body=lines))


def sized(old: cst.FunctionDef, new: cst.FunctionDef) -> tuple[cst.FunctionDef, list[cst.Call]]:
    """An input function whose batches are of params["batch_size"], and the calls of `old` that are changed.

    Where it batches several times, what does not speak of a batch size may be a window of the data: then
    the last call of each block counts.
    """
    if m.findall(old.body, m.Name("params")):
        return new, []
    calls, news = (list(m.findall(each.body, _BATCHES)) for each in (old, new))
    if len(calls) != len(news):
        return new, []
    chosen = [each for each in calls if _says(each)] or _last(old.body)
    changed = [there for call, there in zip(calls, news, strict=True) if call in chosen]
    return new.with_changes(body=new.body.visit(_Sizes(changed))), chosen


def _last(body: cst.BaseSuite) -> list[cst.Call]:
    """The batch() of each block of statements that is applied last."""
    found = []
    for block in (body, *m.findall(body, m.IndentedBlock())):
        lines = [line for line in block.body if not isinstance(line, cst.BaseCompoundStatement)]
        calls = [call for line in lines for call in m.findall(line, _BATCHES)[:1]]
        found += calls[-1:]
    return found


class _Sizes(cst.CSTTransformer):
    def __init__(self, calls: list[cst.Call]) -> None:
        super().__init__()
        self._calls = calls

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        """One of its arguments is the batch size."""
        if not any(original_node is each for each in self._calls):
            return updated_node
        size = size_of(updated_node)
        if not size:
            return updated_node
        new = size.with_changes(value=_BATCH)
        arguments = [new if each is size else each for each in updated_node.args]
        return updated_node.with_changes(args=arguments)


def fixed_size(call: cst.Call, parameters: set[str]) -> str:
    """What a batch() names as its size; "" where that is a parameter around it, or comes from params."""
    size = size_of(call)
    text = code(size.value) if size else ""
    says = text and (says_batch(size) or _is_applied(call))
    return text if says and text not in parameters and "params" not in text else ""


def _says(call: cst.Call) -> bool:
    """Whether it is a batch of examples by its name, or by that of its size: windows are batch()es, too."""
    size = size_of(call)
    return bool(size) and (_is_applied(call) or says_batch(size))


def _is_applied(call: cst.Call) -> bool:
    return not m.matches(call.func, _METHODS)
