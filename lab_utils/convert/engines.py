"""Which engine runs the pipeline. Its flags are Beam's own, and go to Beam."""

import contextlib
import io
from argparse import ArgumentParser
from dataclasses import dataclass

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, WorkerOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner, create_runner

from lab_utils.convert.errors import ConversionError
from lab_utils.convert.plain_beam import beam

# DirectRunner would look for another runner to download, and pick differently in a notebook than in a script.
LOCAL_RUNNER = "FnApiRunner"
_FULL_NAMES = {"DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner"}


@dataclass(frozen=True)
class Engine:
    """A runner of Beam's, with its name and flags."""

    name: str
    runner: PipelineRunner
    flags: list[str]

    @property
    def local(self) -> bool:
        """Whether it is Beam's runner in this process."""
        return self.name == LOCAL_RUNNER

    @property
    def remote(self) -> bool:
        """Whether workers may be on other machines, or in other folders."""
        return self.name not in StandardOptions.LOCAL_RUNNERS

    def pipeline(self, shards: int) -> beam.Pipeline:
        """Returns an empty pipeline for so many elements, each a shard that one worker writes."""
        flags = self.flags
        if self.name == "DaskRunner":  # a task for each shard; its default would be one for all
            flags = [f"--dask_npartitions={shards}", *flags]
        try:
            return beam.Pipeline(runner=self.runner, options=PipelineOptions(flags))
        except ValueError as error:  # Beam's own checks of its flags
            raise ConversionError(" ".join(str(error).split())) from None


def find_engine(flags: list[str]) -> Engine:
    """Returns the engine that Beam's flags ask for.

    Args:
        flags: Beam's own, such as ["--runner=DataflowRunner", "--project=..."]. The runner is one of Beam's
            by its short name, or any by its full one (package.module.Class); it may have flags of its own.

    Raises:
        ConversionError: for a runner that is not there, and a flag that nobody obeys.
    """
    name = PipelineOptions(flags).view_as(StandardOptions).runner or LOCAL_RUNNER
    try:
        # A runner's own flags are known once its module is imported.
        local = name == LOCAL_RUNNER
        runner = FnApiRunner() if local else create_runner(_FULL_NAMES.get(name, name))
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise ConversionError(
            f"--runner {name} cannot be used here: {' '.join(str(error).split())}"
        ) from None
    options = _parsed(flags)
    if local and options.view_as(WorkerOptions).num_workers is not None:
        raise ConversionError("--num_workers is Dataflow's; on this machine it is --workers")
    return Engine(type(runner).__name__, runner, flags)


def _parsed(flags: list[str]) -> PipelineOptions:
    parsers: list[ArgumentParser] = []
    message = io.StringIO()
    try:
        with contextlib.redirect_stderr(message):
            options = PipelineOptions(flags)
            options.get_all_options(add_extra_args_fn=parsers.append)
            # What Beam's own parser does not know, stray words included, it would hand over to nobody.
            _, unknown = parsers[0].parse_known_args(flags)
    except SystemExit:  # argparse's way, after Beam's whole usage
        raise ConversionError(message.getvalue().strip().rpartition("error: ")[2]) from None
    if unknown:
        raise ConversionError(
            f"{' '.join(unknown)}: neither a flag of the converter nor one of Beam's"
        )
    return options
