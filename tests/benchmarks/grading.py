"""Time to grade a class: notebooks of one lab, each with other answers, on this machine.

    python tests/benchmarks/grading.py [--notebooks 30] [--jobs 2] [--step_seconds 60]

Each notebook of lab 02 is our solution with one answer of tests/wrong_answers in the place of ours, and with
a program of its own for TODO 2f (another number of units), so that its dry run must be compiled. Prints the
wall time of the grader's command, and the CPU time of all its processes, for a machine may be busy otherwise.
On such a machine, a check may time out: then give it more seconds.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import made_up_class
import wrong_answers

UNITS = "v1.layers.dense(features, 32,"  # in the program of the solution


def learner(number: int) -> dict:
    """The notebook of a learner."""
    pairs = [
        (todo, answer)
        for todo in made_up_class.TODOS
        for answer in wrong_answers.of_lab(made_up_class.LAB)[todo]
        if isinstance(answer, wrong_answers.Right | wrong_answers.Wrong)
    ]
    todo, answer = pairs[number * 7 % len(pairs)]  # 7: neighbours answer other TODOs
    made = made_up_class.notebook()
    for cell in made["cells"]:
        text = made_up_class.source(cell)
        cell["source"] = text.replace(UNITS, UNITS.replace("32", str(33 + number)))
    return made_up_class.with_answer(made, todo, answer.cell)


def main() -> None:
    """Writes the notebooks, grades them, prints the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--notebooks", type=int, default=30)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--step_seconds", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.notebooks):
            path = Path(folder, "class", f"learner{number:02d}", made_up_class.NAME)
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(learner(number)), encoding="utf-8")
        command = [sys.executable, "-m", "lab_utils.grade", str(Path(folder, "class"))]
        command += ["-o", str(Path(folder, "grades.csv")), f"--jobs={options.jobs}"]
        command += [f"--step_seconds={options.step_seconds}"]
        start = time.perf_counter()
        subprocess.run(command, check=True)
        seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (used.ru_utime + used.ru_stime) / options.notebooks
    print(f"{options.notebooks} notebooks, {options.jobs} at a time: {seconds / 60:.1f} minutes")
    print(
        f"{seconds / options.notebooks:.1f} s a notebook, and {cpu:.1f} s of CPU time (measured here)"
    )


if __name__ == "__main__":
    main()
