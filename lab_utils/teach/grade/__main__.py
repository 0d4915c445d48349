"""`python -m lab_utils.grade`: grades the notebooks of a class; see the package's docstring."""

import argparse
import sys
from collections.abc import Sequence
from multiprocessing.pool import ThreadPool

from tqdm import tqdm

from lab_utils.common import command, files
from lab_utils.teach import grade
from lab_utils.teach.grade import cells, page, runs, submissions
from lab_utils.teach.grade.submissions import Submission

_WAITING = runs.Graded(None, problem="grading was stopped before it")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns 1 where nothing could be graded or written."""
    options = _parser().parse_args(arguments)
    memory = int(options.memory_gib * 2**30)
    limits = runs.Limits(options.step_seconds, options.total_seconds, memory)
    try:
        submitted = submissions.find(options.folder)
        results = [_WAITING] * len(submitted)
        try:
            _grade_all(submitted, results, limits, options.jobs)
        finally:  # after Ctrl-C what was graded until then
            table = page.rows(list(zip(submitted, results, strict=True)))
            _write(table, options)
    except ValueError as error:
        print(f"grade: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"grade: {error.filename}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _grade_all(
    submitted: Sequence[Submission], results: list[runs.Graded], limits: runs.Limits, jobs: int
) -> None:
    """Grades into `results`, with a line for each notebook."""

    def work(number: int) -> None:
        submission = submitted[number]
        result = runs.Graded(None, problem=submission.problem)
        if submission.lab is not None:
            plan = cells.plan(submission.lab, submission.code)
            result = runs.grade(plan, limits)
        results[number] = result
        points = f"{result.points} of {len(result.results)}, " if result.results else ""
        bar.write(f"{submission.learner}, {submission.name}: {points}{result.status}")

    # After Ctrl-C threads of this pool are not waited for, and their workers end with this process.
    with tqdm(total=len(submitted), unit="notebook") as bar, ThreadPool(jobs) as pool:
        for _ in pool.imap_unordered(work, range(len(submitted))):
            bar.update()


def _write(table: Sequence[page.Row], options: argparse.Namespace) -> None:
    """Writes the table, and the pages that were asked for."""
    texts = {options.output: page.as_csv(table)}
    if options.page:
        texts[options.page] = page.of_class(table)
    if options.teacher_page:
        texts[options.teacher_page] = page.of_teacher(table)
    if options.feedback:
        options.feedback.mkdir(parents=True, exist_ok=True)
        texts |= {options.feedback / name: text for name, text in page.of_learners(table).items()}
    for path, text in texts.items():
        files.write(path, text)
    places = (options.output, options.page, options.teacher_page, options.feedback)
    print("written:", ", ".join(str(path) for path in places if path))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.grade",
        description="Grade the notebooks of a class.",
        epilog=grade.__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, html = parser.add_argument, files.output(files.HTML)
    what = "a folder or a .zip, as Moodle, Canvas or learners name things, or a notebook"
    add("folder", type=files.path_argument, metavar="FOLDER", help=what)
    add("-o", "--output", type=files.output(page.CSV), required=True, metavar="GRADES.csv")
    add("--page", type=html, metavar="FILE.html", help="the class for the screen: without names")
    add("--teacher_page", type=html, metavar="FILE.html", help="with names, points and remarks")
    feedback = "a page for each learner: what each check says"
    add("--feedback", type=files.path_argument, metavar="FOLDER", help=feedback)
    step = "seconds for a cell or a check, after which it is left out (%(default)g)"
    add("--step_seconds", type=float, default=runs.Limits.step, help=step)
    total = "seconds for a notebook (%(default)g)"
    add("--total_seconds", type=float, default=runs.Limits.total, help=total)
    gib = runs.Limits.memory / 2**30
    add("--memory_gib", type=float, default=gib, help="for a notebook (%(default)g)")
    add("--jobs", type=int, default=2, help="notebooks at a time (%(default)d)")
    return parser


if __name__ == "__main__":
    command.run(main)
