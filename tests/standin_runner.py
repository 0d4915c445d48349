"""A stand-in for an engine that runs jobs elsewhere, as Dataflow does: `--runner standin_runner.StandIn`."""

import threading

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineResult, PipelineRunner, PipelineState

started: list["Result"] = []


class StandInOptions(PipelineOptions):
    @classmethod
    def _add_argparse_args(cls, parser):
        parser.add_argument("--standin_ends_as", default="")


class Result(PipelineResult):
    """A job that never moves, unless it is to end at once; it can be cancelled."""

    def __init__(self, ends_as: str):
        super().__init__(PipelineState.RUNNING)
        self.cancelled = threading.Event()
        self.ends_as = ends_as
        started.append(self)

    def job_id(self) -> str:
        return "2026-11-21_12_34_56-789"

    def wait_until_finish(self, duration=None) -> str:
        if not self.ends_as:
            self.cancelled.wait(60)
        return self.ends_as or PipelineState.CANCELLED

    def cancel(self) -> None:
        self.cancelled.set()


class StandIn(PipelineRunner):
    def run_pipeline(self, pipeline, options):
        ends_as = options.view_as(StandInOptions).standin_ends_as
        if ends_as == "REFUSED":
            raise RuntimeError("Traceback of another process\nno job server at localhost:1")
        return Result(ends_as)
