"""What a TPU's rounding does to programs that are known to train, and what the look at it costs.

    python tests/benchmarks/numerics_programs.py [--only WORDS ...]

The programs are the right ports of tests/rules: on none of them may the dry run warn. Prints how far loss and
weights are off, beside another order of the examples; and the time of stage run with numerics=True over its
time without.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rules import RIGHT, Port, rights  # noqa: F401

from lab_utils.dry_run import Report, dry_run
from lab_utils.dry_run.records import StageResult


def _run(port: Port, *, numerics: bool) -> tuple[Report, StageResult]:
    stages = ("trace", "run")
    report = dry_run(
        port.estimator,
        port.input_fn,
        stages=stages,
        numerics=numerics,
        cache=False,
        progress=False,
    )
    return report, next(stage for stage in report.stages if stage.stage == "run")


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each program; returns 1 if one is warned of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="words in a program's name")
    only = parser.parse_args(arguments).only
    ratios, warned = [], 0
    for make in RIGHT:
        if only and not any(word in make.__name__ for word in only):
            continue
        if make().estimator is None:  # a program with a main of its own
            continue
        _, plain = _run(make(), numerics=False)
        report, looking = _run(make(), numerics=True)
        if report.numerics is None:
            print(
                f"{make.__name__}: not run so: {looking.detail} {' '.join(report.not_checked[5:])}"
            )
            continue
        found = [found.why for found in report.findings if found.rule == "TPU409"]
        warned += len(found)
        ratios.append(looking.seconds / plain.seconds)
        print(
            f"{make.__name__}: {ratios[-1]:.2f} times the stage. {''.join(found)} {looking.detail}"
        )
    if ratios:
        print(
            f"{len(ratios)} programs, {warned} warned of; the stage takes {statistics.median(ratios):.2f} "
            f"times as long [{min(ratios):.2f} to {max(ratios):.2f}]"
        )
    return int(warned > 0)


if __name__ == "__main__":
    sys.exit(main())
