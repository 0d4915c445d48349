"""Which engine runs the pipeline. Its flags are Beam's own, and go to Beam."""

import contextlib
import io
import os
import shlex
import sys
from argparse import ArgumentParser
from dataclasses import dataclass

from apache_beam.options.pipeline_options import (
    DirectOptions,
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
WORKERS_LOG = "workers.log"
_FULL_NAMES = {"DaskRunner": "apache_beam.runners.dask.dask_runner.DaskRunner"}


@dataclass(frozen=True)
class Engine:
    """A runner of Beam's, with its options."""

    runner: PipelineRunner
    options: PipelineOptions

    @property
    def name(self) -> str:
        """The runner's class."""
        return type(self.runner).__name__

    @property
    def local(self) -> bool:
        """Whether it is Beam's runner on this machine, in processes of ours."""
        return self.name == LOCAL_RUNNER

    @property
    def remote(self) -> bool:
        """Whether workers may be on other machines, or in other folders."""
        return self.name not in StandardOptions.LOCAL_RUNNERS

    def pipeline(self, shards: int, workers: int | None, scratch: str) -> beam.Pipeline:
        """Returns an empty pipeline.

        Args:
            shards: how many elements it will have, each of which one worker writes.
            workers: processes to use on this machine, 0 for one a core, None for what Beam's flags say.
            scratch: a local folder for what Beam leaves, and the workers' log.
        """
        runner = self.runner
        if self.name == "DaskRunner":
            options = self.options.view_as(_dask_options())
            if not (options.npartitions or options.partition_size):
                options.npartitions = shards  # a task each; its default leaves most workers idle
        if self.local and workers not in (None, 1):
            # Without a shard a worker would have nothing to do.
            count = min(workers or os.cpu_count() or 1, shards)
            self.options.view_as(DirectOptions).direct_num_workers = count
            # As direct_running_mode=multi_processing does, but what the workers say stays off the terminal.
            environment = SubprocessSDKEnvironment.from_command_string(
                f"exec {shlex.quote(sys.executable)} -m apache_beam.runners.worker.sdk_worker_main "
                f"2>> {shlex.quote(os.path.join(scratch, WORKERS_LOG))}"
            )
            runner = FnApiRunner(default_environment=environment)
        try:
            pipeline = beam.Pipeline(runner=runner, options=self.options)
        except ValueError as error:  # Beam's own checks of its flags
            raise ConversionError(" ".join(str(error).split())) from None
        # Beam removes this folder in the end, unless it is killed or runs in a notebook.
        os.rmdir(pipeline.local_tempdir)
        pipeline.local_tempdir = os.path.join(scratch, "beam")
        os.mkdir(pipeline.local_tempdir)
        return pipeline


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
    name = PipelineOptions(flags).view_as(StandardOptions).runner or LOCAL_RUNNER
    try:
        # A runner's own flags are known once its module is imported.
        runner = (
            FnApiRunner() if name == LOCAL_RUNNER else create_runner(_FULL_NAMES.get(name, name))
        )
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise ConversionError(
            f"--runner {name} cannot be used here: {' '.join(str(error).split())}"
        ) from None
    engine = Engine(runner, _parsed(flags))
    if not engine.local and workers is not None:
        raise ConversionError(f"--workers is for this machine's {LOCAL_RUNNER}, not {engine.name}")
    if engine.name == "DataflowRunner":
        _check_dataflow(engine.options, paths)
    elif engine.options.view_as(WorkerOptions).num_workers is not None:
        raise ConversionError("--num_workers is Dataflow's; on this machine it is --workers")
    return engine


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


def _dask_options() -> type[PipelineOptions]:
    from apache_beam.runners.dask.dask_runner import DaskOptions

    return DaskOptions
