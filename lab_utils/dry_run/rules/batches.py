"""The batches of a dataset that Keras or a loop trains with: TPU102, TPU106, TPU119, TPU128."""

from collections.abc import Iterator

from lab_utils.common.figures import counted
from lab_utils.common.source import Place
from lab_utils.dry_run.engine import rule
from lab_utils.dry_run.facts.batches import share_of
from lab_utils.dry_run.facts.refusal import Refusal
from lab_utils.dry_run.records import Finding, Mode, Stage
from lab_utils.dry_run.rules import finding


@rule(
    "TPU102", "TPU119", "TPU128", needs=("refused_batches",), modes=(Mode.TRAIN,), stage=Stage.READ
)
def unfit(refused: Refusal | None) -> Iterator[Finding]:
    """The finding for batches of a dataset that no TPU accepts."""
    if refused is not None:
        yield finding(refused.id, refused.where, **refused.facts)


@rule(
    "TPU106",
    needs=("shared", "cores", "place_of_batches"),
    modes=(Mode.TRAIN,),
    stage=Stage.READ,
)
def uneven(batch: int | None, cores: int, where: Place) -> Iterator[Finding]:
    """The note on batches of which tf.distribute gives the cores shares of different sizes."""
    if not batch or batch % cores == 0:
        return
    share = share_of(batch, cores)
    full, rest = divmod(batch, share)
    sizes = [f"{counted(full, 'core')} {counted(share, 'example')} each"]
    sizes += [f"one {rest}"] if rest else []
    if idle := cores - full - bool(rest):
        sizes.append(f"{idle} none")
    what = (
        f"tf.distribute gives {', '.join(sizes)}, and the TPU pads all shares to the largest one. The size "
        "of a share is then not static, which some ops do not support"
    )
    facts = {"batch": batch, "cores": cores, "what": what}
    suggestion = max(cores, round(batch / cores) * cores)
    yield finding("TPU106", where, note=True, suggestion=suggestion, **facts)
