"""`python -m lab_utils.grade`: grades the notebooks of a class; see the package's docstring."""

import argparse
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from multiprocessing.pool import ThreadPool
from pathlib import Path

from tqdm import tqdm

from lab_utils.check import sources
from lab_utils.common import command, files
from lab_utils.teach import grade
from lab_utils.teach.grade import page, runs, submissions, worker  # noqa: F401 (worker: its packages are here)
from lab_utils.teach.grade.submissions import Submission

_STOPPED = "grading was stopped before it"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where nothing could be graded or written."""
    options = _parser().parse_args(arguments)
    try:
        submitted = submissions.find(options.folder)
        results = {
            number: runs.Graded(submission.lab, problem=submission.problem or _STOPPED)
            for number, submission in enumerate(submitted)
        }

        def table() -> list[page.Row]:
            return page.rows([(submitted[n], result) for n, result in results.items()])

        if options.pages:  # before the table, which replaces an earlier one
            (options.pages / "feedback").mkdir(parents=True, exist_ok=True)
        _write(options.output, page.as_csv(table()))
        try:
            _grade_all(submitted, results, table, options)
        except KeyboardInterrupt:
            graded = sum(result.problem != _STOPPED for result in results.values())
            print(
                f"grade: stopped after {graded} of {len(results)} notebooks, whose rows are in "
                f"{options.output}. The same command grades all notebooks again.",
                file=sys.stderr,
            )
            raise
        finally:  # after Ctrl-C what was graded until then
            _write_pages(table(), options)
    except ValueError as error:
        print(f"grade: {error}", file=sys.stderr)
        return 1
    print("\n".join(_minutes(submitted)))
    return 0


def _grade_all(
    submitted: Sequence[Submission],
    results: dict[int, runs.Graded],
    table: Callable[[], list[page.Row]],
    options: argparse.Namespace,
) -> None:
    """Grades into `results`, with a line for each notebook, and writes the rows as they come."""
    memory = int(options.memory_gib * 2**30)
    limits = runs.Limits(options.step_seconds, options.total_seconds, memory)
    one_at_a_time = threading.Lock()
    jobs = min(options.jobs, len(submitted))

    def work(number: int) -> None:
        submission = submitted[number]
        try:
            result = runs.grade(submission, limits)
        except Exception as error:  # of one notebook: the others are graded
            result = runs.Graded(None, problem=f"{type(error).__name__}: {error}")
        points = f"{result.points} of {len(result.results)}, " if result.results else ""
        with one_at_a_time:
            results[number] = result
            _write(options.output, page.as_csv(table()))
            bar.write(f"{submission.learner}, {submission.say(points + result.status)}")

    # After Ctrl-C threads of this pool are not waited for, and their workers end with this process.
    with tqdm(total=len(submitted), unit="notebook") as bar, ThreadPool(jobs) as pool:
        for _ in pool.imap_unordered(work, range(len(submitted))):
            bar.update()


def _write(path: Path, text: str) -> None:
    """Writes a table or page. What is half a character, as a learner's message may be, is replaced."""
    files.write(path, text.encode(errors="replace"))


def _write_pages(table: Sequence[page.Row], options: argparse.Namespace) -> None:
    """Writes the table, and the pages that were asked for."""
    texts = {options.output: page.as_csv(table)}
    if options.pages:
        learners = {f"feedback/{name}": text for name, text in page.of_learners(table).items()}
        made = {"class.html": page.of_class(table), "teacher.html": page.of_teacher(table)}
        texts |= {options.pages / name: text for name, text in (made | learners).items()}
    for path, text in texts.items():
        _write(path, text)
    print("written:", ", ".join(str(path) for path in (options.output, options.pages) if path))


def _minutes(submitted: Sequence[Submission]) -> list[str]:
    """A line for each lab that learners' files of progress give minutes of: their median beside ours."""
    minutes: dict[int, list[float]] = defaultdict(list)
    for submission in submitted:
        for lab, each in submission.minutes.items():
            minutes[lab].append(each)
    return [
        f"lab {lab:02d}: {statistics.median(each):.0f} minutes from opening it to the last TODO solved "
        f"(median of {len(each)}, without long breaks); the lab states {sources.labs()[lab]['minutes']}"
        for lab, each in sorted(minutes.items())
    ]


def _positive(text: str) -> float:
    """For argparse's `type`: a number above 0 and below a million; a wait of more seconds overflows."""
    number = float(text)
    if not 0 < number < 1e6:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0 and below a million")
    return number


def _whole(text: str) -> int:
    """For argparse's `type`: as _positive, without a fraction."""
    _positive(text)
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.grade",
        description="Grade the notebooks of a class.",
        epilog=(grade.__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    what = "a folder or a .zip, as Moodle, Canvas or learners name things, or a notebook"
    add("folder", type=files.path_argument, metavar="FOLDER", help=what)
    add("-o", "--output", type=files.output(page.CSV), required=True, metavar="GRADES.csv")
    what = (
        "class.html without names, teacher.html with names and remarks, feedback for each learner"
    )
    add("--pages", type=files.path_argument, metavar="FOLDER", help=what)
    step = "seconds after which a learner's cell or a check is interrupted (%(default)g)"
    add("--step_seconds", type=_positive, default=runs.Limits.step, help=step)
    total = "seconds for a notebook (%(default)g)"
    add("--total_seconds", type=_positive, default=runs.Limits.total, help=total)
    gib = runs.Limits.memory / 2**30
    add("--memory_gib", type=_positive, default=gib, help="for a notebook (%(default)g)")
    add("--jobs", type=_whole, default=2, help="notebooks at a time (%(default)d)")
    return parser


if __name__ == "__main__":
    command.run(main)
