"""A pipeline that was started: where to watch it, and how to end it."""

import contextlib
import threading

from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from apache_beam.runners.runner import PipelineResult

from lab_utils.common.figures import counted
from lab_utils.convert.text import printable

_CANCEL_SECONDS = 30


def describe(result: PipelineResult, options: PipelineOptions) -> str | None:
    """Returns the job's id and a page to watch it on, as far as the engine has them."""
    with contextlib.suppress(Exception):  # a courtesy, and each engine has names of its own
        job = getattr(result, "job_id", None) or getattr(result, "_job_id", None)
        job = job() if callable(job) else job
        cloud = options.view_as(GoogleCloudOptions)
        if job and cloud.region and cloud.project:
            link = (
                f"https://console.cloud.google.com/dataflow/jobs/{cloud.region}/{job}"
                f"?project={cloud.project}"
            )
            return printable(f"{job}: watch it at {link}")
        if job:
            return printable(str(job))
        client = getattr(result, "client", None)  # Dask's
        if client is not None:
            workers = len(client.nthreads())  # scheduler_info() may lose them to a heartbeat
            return printable(f"{counted(workers, 'Dask worker')}: watch at {client.dashboard_link}")
    return None


def cancel(result: PipelineResult) -> str | None:
    """Cancels the job; returns what went wrong, or None. It waits for half a minute at most."""
    answer: list[str] = ["the engine did not answer"]

    def work() -> None:
        try:
            result.cancel()
            answer.clear()
        except NotImplementedError:
            answer[:] = ["this engine cannot cancel a job"]
        except Exception as error:
            answer[:] = [f"{type(error).__name__}: {error}"]

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(_CANCEL_SECONDS)
    return printable(answer[0]) if answer else None


def close(result: PipelineResult) -> None:
    """Close the connection that the engine's client keeps, if it does."""
    client = getattr(result, "client", None)
    if hasattr(client, "close"):
        with contextlib.suppress(Exception):
            client.close()
