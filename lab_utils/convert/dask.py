"""What Beam's DaskRunner needs: a cluster that answers, workers with this package, a task for each shard."""

import importlib.util
from typing import Any

from apache_beam.options.pipeline_options import PipelineOptions

from lab_utils.common.figures import counted
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet

_CONNECT_SECONDS = 30


def check(options: PipelineOptions) -> None:
    """Finds what would have the job wait for ever, before it starts.

    Raises:
        ConversionError: if there is no cluster, it has no workers, or one of them lacks this package.
    """
    given = _options(options)
    if not (given.address or given.scheduler_file):
        raise ConversionError(
            "--runner DaskRunner needs a running cluster: --dask_client_address tcp://HOST:8786, or "
            "--dask_scheduler_file; on this machine alone --workers does the same with less"
        )
    import distributed

    place = given.address or given.scheduler_file
    try:
        client = distributed.Client(
            given.address, scheduler_file=given.scheduler_file, timeout=_CONNECT_SECONDS
        )
    except (OSError, ValueError) as error:
        raise ConversionError(f"cannot reach the Dask scheduler {place}: {error}") from None
    with client:
        # A worker dies that is sent what it cannot import, and so would all, one after another.
        found: dict[str, Any] = client.run(
            importlib.util.find_spec, "lab_utils.convert", on_error="return"
        )
    if not found:
        raise ConversionError(
            f"the Dask scheduler {place} has no workers: start some with dask worker"
        )
    lacking = [worker for worker, spec in found.items() if spec is None or _failed(spec)]
    if lacking:
        raise ConversionError(
            f"{len(lacking)} of {counted(len(found), 'Dask worker')} cannot import lab_utils "
            f"({lacking[0]}): install the same version of this package and of "
            "apache-beam[dask] where they run"
        )


def _failed(answer: object) -> bool:
    return isinstance(answer, BaseException)


def one_task_a_shard(options: PipelineOptions, shards: int) -> None:
    """Have Dask make a task of each shard; its default of 128 would leave most workers idle."""
    given = _options(options)
    if not (given.npartitions or given.partition_size):
        given.npartitions = shards


def _options(options: PipelineOptions) -> Any:
    with quiet():
        from apache_beam.runners.dask.dask_runner import DaskOptions

    return options.view_as(DaskOptions)
