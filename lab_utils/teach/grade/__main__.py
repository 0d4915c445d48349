"""`python -m lab_utils.grade`: grades the notebooks of a class; see the package's docstring."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from lab_utils.common import command, files
from lab_utils.common.figures import counted
from lab_utils.teach import grade
from lab_utils.teach.grade import cells, guard, page, runs, submissions, tables


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status: 0, or 2 where nothing could be graded."""
    parser = argparse.ArgumentParser(
        prog="python -m lab_utils.grade",
        description="Grade the notebooks of a class.",
        epilog=grade.__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder",
        type=files.path_argument,
        metavar="FOLDER",
        help="a folder or an archive, as Moodle, Canvas, Blackboard, Gradescope or learners name things",
    )
    parser.add_argument(
        "-o", "--output", type=files.output(tables.BEGINNING), required=True, metavar="GRADES.csv"
    )
    parser.add_argument(
        "--page", type=files.output(files.HTML), metavar="FILE.html", help="a page of the class"
    )
    parser.add_argument(
        "--feedback",
        type=files.path_argument,
        metavar="FOLDER",
        help="a page for each learner: what each check says",
    )
    parser.add_argument(
        "--step_seconds",
        type=_above_zero,
        default=runs.Limits.step,
        help="for a cell or check (%(default)g)",
    )
    parser.add_argument(
        "--total_seconds",
        type=_above_zero,
        default=runs.Limits.total,
        help="for a notebook (%(default)g)",
    )
    parser.add_argument(
        "--memory_gib",
        type=_above_zero,
        default=runs.Limits.memory / 2**30,
        help="for a notebook (%(default)g)",
    )
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        if options.feedback:
            options.feedback.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--feedback {options.feedback}: {error.strerror}")
    limits = runs.Limits(
        options.step_seconds, options.total_seconds, int(options.memory_gib * 2**30)
    )
    try:
        found = submissions.find(options.folder)
    except (OSError, ValueError) as error:
        print(f"grade: {error}", file=sys.stderr)
        return 2

    own = guard.Files()

    def one(submission: submissions.Submission, plan: cells.Plan | str) -> runs.Graded:
        told = isinstance(plan, str)
        graded = runs.Graded(None, problem=plan) if told else runs.grade(plan, limits)
        if changed := own.changed():
            told = f"{', '.join(changed[:3])} changed since grading began: put back what is ours, grade again"
            graded = runs.Graded(None, problem=told)
        points = f"{graded.points} of {len(graded.results)}, " if graded.results else ""
        told = f"{submission.learner}, {submission.path.name}: {points}{graded.status}"
        print(" ".join(told.split()), flush=True)
        return graded

    # What a group hands in together, or one has copied, is run once.
    different = {_run_of(each): each for each in found}
    # Plans are made here, since Python 3.11 parses in one thread at a time only.
    plans = [_planned(each) for each in different.values()]
    results = dict.fromkeys(different, runs.Graded(None, problem="grading was stopped before it"))
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        try:
            done = pool.map(one, different.values(), plans)
            for run, graded in zip(different, done, strict=True):
                results[run] = graded
                table = tables.rows([(each, results[_run_of(each)]) for each in found])
                with contextlib.suppress(OSError):  # told at the end
                    files.write(options.output, tables.as_csv(table))  # kept if we are ended
        except BaseException:  # such as Ctrl-C, which the processes that run notebooks do not hear
            limits.stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    try:
        files.write(options.output, tables.as_csv(table))
    except OSError as error:  # hours of work must not be lost
        print(tables.as_csv(table))
        print(f"grade: {error.filename}: {error.strerror}; the table stands above", file=sys.stderr)
        return 2
    print(f"grades: {options.output}")
    if options.page:
        files.write(options.page, page.html(table))
        print(f"page of the class: {options.page}")
    if options.feedback:
        pages = page.feedback(table)
        for name, text in pages.items():
            files.write(options.feedback / name, text)
        print(f"feedback: {counted(len(pages), 'page')} in {options.feedback}")
    return 0


def _above_zero(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value < 1e9:  # False for NaN as well
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and below a billion")
    return value


def _run_of(submission: submissions.Submission) -> tuple:
    if submission.lab is None:
        return submission.learner, submission.path
    return submission.lab, submission.code, submission.beside


def _planned(submission: submissions.Submission) -> cells.Plan | str:
    """What is run for a submission, or why it cannot be graded."""
    if submission.problem or submission.lab is None:
        return submission.problem
    try:
        return cells.plan(submission.lab, submission.code, submission.beside)
    except FileNotFoundError as error:
        return str(error)


if __name__ == "__main__":
    command.run(main)
