"""What a TPU's rounding does to programs that are known to train, and what the look at it costs.

    python tests/benchmarks/numerics_programs.py [--only WORDS ...]

The programs are the right ports of tests/rules: on none of them may the dry run warn. Prints how far loss and
weights are off, beside another order of the examples; and the time of the run stage with this look over the
time without it.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rules import RIGHT, rights  # noqa: F401

from lab_utils.dry_run import cache
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.lower.errors import CannotLower
from lab_utils.dry_run.run import numerics
from lab_utils.dry_run.run.virtual import running


def _seconds(program, whole, *, on_tpu):
    start = time.perf_counter()
    with running(program, steps=3, one_core=whole, on_tpu=on_tpu) as finish:
        ran = finish(None)
    return time.perf_counter() - start, ran


def main(arguments: list[str] | None = None) -> int:
    """Prints a line for each program; returns 1 if one is warned of."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], help="words in a program's name")
    only = parser.parse_args(arguments).only
    ratios, warned, seen = [], 0, 0
    for make in RIGHT:
        if only and not any(word in make.__name__ for word in only):
            continue
        port = make()
        try:
            program = lower_estimator(port.estimator, port.input_fn, cores=8)
            whole = lower_estimator(port.estimator, port.input_fn, cores=1)
        except CannotLower as error:
            print(f"{make.__name__}: cannot be lowered: {str(error).splitlines()[0]}")
            continue
        with cache.disable():
            plain, _ = _seconds(program, whole, on_tpu=False)
            looking, ran = _seconds(program, whole, on_tpu=True)
        if ran.numerics is None:
            continue
        hurt = numerics.hurt(ran.numerics)
        seen, warned = seen + 1, warned + bool(hurt)
        ratios.append(looking / plain)
        print(f"{make.__name__}: {looking / plain:.2f} times the run stage. "
              f"{hurt or numerics.summary(ran.numerics)}")  # fmt: skip
    if ratios:
        print(f"{seen} programs, {warned} warned of; the run stage takes {statistics.median(ratios):.2f} "
              f"times as long [{min(ratios):.2f} to {max(ratios):.2f}]")  # fmt: skip
    return int(warned > 0)


if __name__ == "__main__":
    sys.exit(main())
