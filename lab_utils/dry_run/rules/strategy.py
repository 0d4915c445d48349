"""How Keras and loops train under a TPUStrategy: TPU230, TPU234, TPU235."""

from collections.abc import Iterator

from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.records import Finding, Mode
from lab_utils.dry_run.rules import finding


@rule("TPU230", needs=("outside",), modes=(Mode.TRAIN,))
def outside_of_scope(outside: Place) -> Iterator[Finding]:
    """A finding where the model is made outside of the strategy's scope."""
    if outside:
        yield finding("TPU230", outside)


@rule("TPU234", needs=("is_compiled", "place_of_batches"), modes=(Mode.TRAIN,))
def op_by_op(is_compiled: bool, where: Place) -> Iterator[Finding]:
    """A finding where a loop calls strategy.run outside of a tf.function."""
    if not is_compiled:
        yield finding("TPU234", where)


@rule("TPU235", needs=("jit_compile", "place_of_batches"), modes=(Mode.TRAIN,))
def compiled_by_keras(jit_compile: bool | None, where: Place) -> Iterator[Finding]:
    """A finding where Keras is to compile the step by itself."""
    if jit_compile is True:
        yield finding("TPU235", where)
