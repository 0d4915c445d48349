"""Which engine runs the pipeline. Its flags are Beam's own, and go to Beam."""

import contextlib
import io
import os
import shlex
import sys
from argparse import ArgumentParser
from dataclasses import dataclass

from apache_beam.options.pipeline_options import (
    PipelineOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from lab_utils.convert.errors import ConversionError
from lab_utils.convert.plain_beam import beam

# DirectRunner would look for another runner to download, and pick differently in a notebook than in a script.
LOCAL_RUNNER = "FnApiRunner"
_WORKER = "apache_beam.runners.worker.sdk_worker_main"
_FULL_NAMES = {"DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner"}


@dataclass(frozen=True)
class Engine:
    """A runner of Beam's, with its name and flags.

    Attributes:
        local: whether it is Beam's runner on this machine, in processes of ours.
        remote: whether workers may be on other machines, or in other folders.
    """

    name: str
    runner: PipelineRunner
    flags: list[str]
    local: bool
    remote: bool

    def pipeline(self, shards: int, workers: int | None) -> beam.Pipeline:
        """Returns an empty pipeline for so many elements, each a shard that one worker writes.

        `workers` are processes on this machine, 0 for one a core, None for what Beam's flags say.
        """
        runner, flags = self.runner, self.flags
        if self.name == "DaskRunner":  # a task for each shard; its default would be one for all
            flags = [f"--dask_npartitions={shards}", *flags]
        if self.local and workers not in (None, 1):
            # Without a shard a worker would have nothing to do.
            flags = [*flags, f"--direct_num_workers={min(workers or os.cpu_count() or 1, shards)}"]
            # As direct_running_mode=multi_processing does, but what the workers say stays off the terminal.
            command = f"exec {shlex.quote(sys.executable)} -m {_WORKER} 2> /dev/null"
            environment = SubprocessSDKEnvironment.from_command_string(command)
            runner = FnApiRunner(default_environment=environment)
        try:
            return beam.Pipeline(runner=runner, options=PipelineOptions(flags))
        except ValueError as error:  # Beam's own checks of its flags
            raise ConversionError(" ".join(str(error).split())) from None


def find_engine(flags: list[str], workers: int | None, paths: dict[str, str]) -> Engine:
    """Returns the engine that Beam's flags ask for.

    Args:
        flags: Beam's own, such as ["--runner=DataflowRunner", "--project=..."]. The runner is one of Beam's
            by its short name, or any by its full one (package.module.Class); it may have flags of its own.
        workers: see `Engine.pipeline`.
        paths: the input and output paths by their flags; Dataflow needs them in a bucket.

    Raises:
        ConversionError: for a runner that is not there, and a flag that nobody obeys.
    """
    asked = PipelineOptions(flags).view_as(StandardOptions).runner or LOCAL_RUNNER
    try:
        # A runner's own flags are known once its module is imported.
        local = asked == LOCAL_RUNNER
        runner = FnApiRunner() if local else create_runner(_FULL_NAMES.get(asked, asked))
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise ConversionError(
            f"--runner {asked} cannot be used here: {' '.join(str(error).split())}"
        ) from None
    name, options = type(runner).__name__, _parsed(flags)
    if name != LOCAL_RUNNER and workers is not None:
        raise ConversionError(f"--workers is for {LOCAL_RUNNER} on this machine, not {name}")
    if name == "DataflowRunner":
        _check_dataflow(options, paths)
    elif options.view_as(WorkerOptions).num_workers is not None:
        raise ConversionError("--num_workers is Dataflow's; on this machine it is --workers")
    remote = name not in StandardOptions.LOCAL_RUNNERS
    return Engine(name, runner, flags, name == LOCAL_RUNNER, remote)


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


def _check_dataflow(options: PipelineOptions, paths: dict[str, str]) -> None:
    """Finds what would fail only on machines that are paid for; Beam checks its other flags itself."""
    problems = [
        f"--{flag} {path} is not in a bucket, where the workers would find it"
        for flag, path in paths.items()
        if not path.startswith("gs://")
    ]
    packages = options.view_as(SetupOptions).extra_packages
    if not (packages or options.view_as(WorkerOptions).sdk_container_image):
        problems.append(
            "the workers lack this package: make its wheel (pip wheel --no-deps -w dist .) and name it with "
            "--extra_package, or name an image that holds it with --sdk_container_image"
        )
    if problems:
        raise ConversionError("--runner DataflowRunner: " + "; ".join(problems))
