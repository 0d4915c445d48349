"""Which engine runs the pipeline: its runner found, and its flags checked before anything starts."""

import argparse
import contextlib
import io
import os
import platform
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from apache_beam.options.pipeline_options import (
    DirectOptions,
    GoogleCloudOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
    WorkerOptions,
)
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from lab_utils import DISTRIBUTION
from lab_utils.convert import dask, storage
from lab_utils.convert.errors import ConversionError
from lab_utils.convert.logs import quiet
from lab_utils.convert.plain_beam import beam

# DirectRunner would look for another runner to download, and pick differently in a notebook than in a script.
LOCAL_RUNNER = "FnApiRunner"
WORKERS_LOG = "workers.log"
_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"
_SHORT_NAMES = {"daskrunner": _DASK_RUNNER, "dask": _DASK_RUNNER}


@dataclass(frozen=True)
class Engine:
    """A runner of Beam's, with its options.

    Attributes:
        name: the runner's class.
        runner: the runner itself.
        options: what Beam's flags said.
        local: whether it is Beam's runner on this machine, in processes of ours.
        remote: whether workers may be on other machines, or in other folders.
    """

    name: str
    runner: PipelineRunner
    options: PipelineOptions
    local: bool
    remote: bool

    def pipeline(self, shards: int, workers: int | None, scratch: str) -> beam.Pipeline:
        """Returns an empty pipeline.

        Args:
            shards: how many elements it will have, each of which one worker writes.
            workers: processes to use on this machine, 0 for one a core, None for what Beam's flags say.
            scratch: a local folder for what Beam leaves, and the workers' log.
        """
        runner = self.runner
        if self.name == "DaskRunner":
            dask.one_task_a_shard(self.options, shards)
        if self.local and workers not in (None, 1):
            # Without a shard a worker would have nothing to do.
            workers = min(workers or os.cpu_count() or 1, shards)
            self.options.view_as(DirectOptions).direct_num_workers = workers
            # As direct_running_mode=multi_processing does, but what the workers say stays off the terminal.
            command = (
                f"exec {shlex.quote(sys.executable)} -m lab_utils.convert.worker {os.getpid()} "
                f"2>> {shlex.quote(os.path.join(scratch, WORKERS_LOG))}"
            )
            environment = SubprocessSDKEnvironment.from_command_string(command)
            runner = FnApiRunner(default_environment=environment)
        try:
            pipeline = beam.Pipeline(runner=runner, options=self.options)
        except ValueError as error:  # Beam's own checks of its flags
            raise ConversionError(_one_line(error)) from None
        # Beam removes this folder in the end, unless it is killed or runs in a notebook.
        os.rmdir(pipeline.local_tempdir)
        pipeline.local_tempdir = os.path.join(scratch, "beam")
        os.mkdir(pipeline.local_tempdir)
        return pipeline


_WHEEL = DISTRIBUTION.replace("-", "_") + "-"  # how the name of this package's wheel begins


def find_engine(flags: list[str], workers: int | None, paths: dict[str, str]) -> Engine:
    """Returns the engine that Beam's flags ask for.

    Args:
        flags: Beam's own, such as ["--runner=DataflowRunner", "--project=..."]. The runner is one of Beam's
            by its short name, or any by its full one (package.module.Class); it may have flags of its own.
        workers: see `Engine.pipeline`.
        paths: the input and output paths by their flags, which some engines ask more of.

    Raises:
        ConversionError: for an unknown runner, a flag that neither Beam nor the runner knows, and what
            could only fail once the job has started.
    """
    asked = _asked_runner(flags)
    # A runner's own flags are known once its module is imported.
    runner = FnApiRunner() if asked == LOCAL_RUNNER else _make_runner(asked)
    options = _parse(flags)
    name = type(runner).__name__
    local = name == LOCAL_RUNNER
    if not local and workers is not None:
        raise ConversionError(
            f"--workers is for {LOCAL_RUNNER} only; {name} has options of its own "
            "(--num_workers on Dataflow; on Dask the cluster has as many as you start)"
        )
    if (options.view_as(DirectOptions).direct_num_workers or 0) < 0:
        raise ConversionError("--direct_num_workers must be 0 or more")
    if name == "DaskRunner":
        dask.check(options)
    if name == "DataflowRunner":
        _check_dataflow(options, paths)
    remote = name not in StandardOptions.LOCAL_RUNNERS
    return Engine(name, runner, options, local, remote)


def _asked_runner(flags: list[str]) -> str:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--runner", default=LOCAL_RUNNER)
    return _parse_known(parser, flags)[0].runner


def _make_runner(name: str) -> PipelineRunner:
    path = _SHORT_NAMES.get(name.lower(), name)
    try:
        return create_runner(path)
    except ValueError:
        known = ", ".join(["DaskRunner", *StandardOptions.KNOWN_RUNNER_NAMES])
        raise ConversionError(
            f"--runner {name}: no runner of Beam's has this name; there are {known}, and any other by its "
            "full name (package.module.Class)"
        ) from None
    except (ImportError, AttributeError, TypeError) as error:
        hint = "; install apache-beam[dask]" if path == _DASK_RUNNER else ""
        raise ConversionError(
            f"--runner {name} cannot be used here: {_one_line(error)}{hint}"
        ) from None


def _parse(flags: list[str]) -> PipelineOptions:
    options = PipelineOptions(flags)
    parsers: list[argparse.ArgumentParser] = []
    with _argparse_errors():
        options.get_all_options(add_extra_args_fn=parsers.append)
    # What Beam's own parser does not know, stray words included, it would hand over to nobody.
    _, unknown = _parse_known(parsers[0], flags)
    names = [word.split("=")[0] for word in unknown if word.startswith("-")]
    if names:
        raise ConversionError(
            f"{', '.join(names)}: neither a flag of the converter nor one of Beam's"
        )
    if unknown:
        raise ConversionError(
            f"{' '.join(unknown)}: belongs to no flag; the converter takes only flags"
        )
    return options


def _parse_known(parser: argparse.ArgumentParser, flags: list[str]):
    with _argparse_errors():
        return parser.parse_known_args(flags)


@contextlib.contextmanager
def _argparse_errors() -> Iterator[None]:
    """Raises as an error what argparse would print with Beam's whole usage before it ends the process."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            yield
    except SystemExit:
        raise ConversionError(said.getvalue().strip().rpartition("error: ")[2]) from None


def _check_dataflow(options: PipelineOptions, paths: dict[str, str]) -> None:
    """Finds what a Dataflow job lacks, before it is submitted and paid for."""
    cloud, setup = options.view_as(GoogleCloudOptions), options.view_as(SetupOptions)
    problems = [] if _has_dataflow() else ["its client is missing: pip install 'apache-beam[gcp]'"]
    problems += [
        f"--{name} is missing" for name in ("project", "region") if not getattr(cloud, name)
    ]
    if not (cloud.temp_location or "").startswith("gs://"):
        problems.append("--temp_location must be a folder in a bucket (gs://...)")
    problems += [
        f"--{flag} {path} is not in a bucket, where the workers would find it"
        for flag, path in paths.items()
        if not path.startswith("gs://")
    ]
    image = options.view_as(WorkerOptions).sdk_container_image
    packages = setup.extra_packages or []
    if not image and not any(os.path.basename(path).startswith(_WHEEL) for path in packages):
        problems.append(
            "the workers lack this package: make its wheel (pip wheel --no-deps -w dist .) and add "
            f"--extra_package dist/{_WHEEL}VERSION-py3-none-any.whl, or name an image that holds it with "
            "--sdk_container_image"
        )
    problems += [
        f"--extra_package {path} is not there"
        for path in packages
        if not storage.is_remote(path) and not os.path.isfile(path)
    ]
    here = ".".join(platform.python_version_tuple()[:2])
    there = re.search(r"python-?(3\.\d+)", image or "")
    if there and there[1] != here:
        problems.append(
            f"the image has Python {there[1]}, this process {here}: what one pickles, the other may not "
            "read: use the same version on both sides"
        )
    if problems:
        raise ConversionError("--runner DataflowRunner: " + "; ".join(problems))


def _has_dataflow() -> bool:
    with quiet():
        try:
            from apache_beam.runners.dataflow.internal import apiclient  # noqa: F401
        except ImportError:
            return False
    return True


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
