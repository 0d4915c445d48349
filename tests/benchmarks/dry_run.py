"""Time of each stage of a dry run, with an empty cache and with a filled one, side by side.

    python tests/benchmarks/dry_run.py [MODULE:FUNCTION] [--topology v2:2x2]... [--repeats 3] [--output DIR]
        [--before COMMIT]

Without a MODULE:FUNCTION the flowers port is judged, on the bundled photographs, 128 images a core. Each run
is a process of its own; runs with an empty and with a filled cache alternate, and so do topologies, so that
other work on the machine falls on all. Prints medians, the share of each stage in the whole, and ratios;
writes dry_run.json and, for each topology, a picture to DIR. With --before the same is measured of an earlier
commit, checked out aside, in turns with this one.

What bounds each stage of the flowers port:

    trace    TPUEstimator builds the graphs of train and eval; never kept, as it tells whether anything
             changed. Part of the first time in a process are imports that TensorFlow does late.
    read     one call of input_fn a mode and a walk over the graphs; never kept.
    compile  with an empty cache libtpu, a process for each step, on one core and part of another. Else
             model_fn's graphs, built once more.
    run      beside the compiler. With an empty cache XLA compiling for the CPU on one core, more than the
             steps themselves. Else model_fn's graph, and the first batches, which are read each time to see
             that they are the same.
    feed     the seconds that it was asked to measure for, and a quarter of them to warm up.
"""

import argparse
import contextlib
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rounds import round_ratios, spread

from lab_utils.dry_run.records import Stage
from lab_utils.runtime import chips

FLOWERS = f"{Path(__file__).resolve()}:flowers"
RECORDS, CORES = "DRY_RUN_BENCHMARK_RECORDS", "DRY_RUN_BENCHMARK_CORES"
CASES = ("empty cache", "filled cache")
HERE, EARLIER = Path(__file__).resolve().parents[2], "before, "


def flowers() -> tuple:
    """The flowers port over the records that `main` has converted; called by the command."""
    from lab_utils.flowers.port import make_port

    records, cores = Path(os.environ[RECORDS]), int(os.environ[CORES])
    estimator, train, evaluate = make_port(records, cores)
    return estimator, train, {"eval_input_fn": evaluate}


def convert_flowers(folder: Path) -> None:
    """Converts the bundled photographs, for `flowers` in the processes to come."""
    from lab_utils import datasets
    from lab_utils.convert import convert

    photos = datasets.bundled()
    convert(photos.train_csv, photos.eval_csv, photos.labels_file, folder)
    os.environ[RECORDS] = str(folder)


def stage_seconds(
    target: str, topology: str, cache: Path, folder: Path, tree: Path
) -> dict[str, float]:
    """Seconds of each stage in one run of the command of `tree`, a new process, with its cache in `cache`."""
    written = folder / "report.json"
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "lab_utils.dry_run",
            target,
            "--topology",
            topology,
            "--json",
            written,
        ],
        env=os.environ
        | {
            "XDG_CACHE_HOME": str(cache),
            CORES: str(chips.cores(topology)),
            "PYTHONPATH": str(tree),
        },
        cwd=tree,
        capture_output=True,
        text=True,
    )
    if ran.returncode == 2:
        raise SystemExit(f"{target} could not be run:\n{ran.stdout}{ran.stderr}")
    return {stage["stage"]: stage["seconds"] for stage in json.loads(written.read_text())["stages"]}


def measure(
    target: str, topologies: list[str], repeats: int, trees: dict[str, Path]
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Seconds by topology, case and stage, a value for each repeat.

    `trees`: where the code lies, by what stands before the name of its cases.
    """
    cases = [f"{name}{case}" for case in CASES for name in trees]
    runs = {
        topology: {case: {stage: [] for stage in Stage} for case in cases}
        for topology in topologies
    }
    for repeat, topology in itertools.product(range(repeats), topologies):
        with tempfile.TemporaryDirectory() as folder:
            # The first cases fill the caches that the last ones find.
            for case, (name, tree) in itertools.product(CASES, trees.items()):
                cache = Path(folder) / f"cache {name}"
                seconds = stage_seconds(target, topology, cache, Path(folder), tree)
                for stage in Stage:
                    runs[topology][f"{name}{case}"][stage].append(seconds[stage])
                print(
                    f"run {repeat + 1} of {repeats}, {topology}, {name}{case}: "
                    f"{sum(seconds.values()):.1f} s in all"
                )
    return runs


@contextlib.contextmanager
def checked_out(commit: str | None) -> Iterator[dict[str, Path]]:
    """Context manager: this code, and that of an earlier commit, by what stands before the names of cases."""
    if commit is None:
        yield {"": HERE}
        return
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", "-C", str(HERE), "worktree"]
        tree = Path(folder) / "earlier"
        subprocess.run([*git, "add", "--detach", "--quiet", tree, commit], check=True)
        try:
            yield {EARLIER: tree, "": HERE}
        finally:
            subprocess.run([*git, "remove", "--force", tree], check=True)


def totals(runs: dict[str, dict[str, list[float]]], case: str) -> list[float]:
    """Seconds of all stages together, a value for each repeat."""
    return [sum(seconds) for seconds in zip(*runs[case].values(), strict=True)]


def table(runs: dict[str, dict[str, list[float]]], first: str, second: str) -> str:
    """Medians by stage of two cases, each stage's share of the whole, and the ratio of the two."""
    whole = {case: statistics.median(totals(runs, case)) for case in (first, second)}
    lines = [f"{'stage':<10}{first:>24}{second:>24}{'ratio':>9}"]
    for stage in Stage:
        medians = {case: statistics.median(runs[case][stage]) for case in whole}
        cells = [f"{medians[case]:.2f} s {medians[case] / whole[case]:>4.0%}" for case in whole]
        ratio = f"{medians[first] / medians[second]:.2f}" if medians[second] else "-"
        lines.append(f"{stage:<10}{cells[0]:>24}{cells[1]:>24}{ratio:>9}")
    one, other = whole[first], whole[second]
    lines.append(f"{'in all':<10}{one:>17.2f} s     {other:>17.2f} s     {one / other:>9.2f}")
    return "\n".join(lines)


def picture(runs: dict[str, dict[str, list[float]]], title: str, path: Path) -> None:
    """Medians by stage as pairs of bars, with the range of the repeats."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for offset, (case, hatch) in enumerate(zip(CASES, ("", "//"), strict=True)):
        medians = [statistics.median(runs[case][stage]) for stage in Stage]
        ranges = [
            [median - min(runs[case][stage]) for median, stage in zip(medians, Stage, strict=True)],
            [max(runs[case][stage]) - median for median, stage in zip(medians, Stage, strict=True)],
        ]
        places = [index + 0.4 * offset - 0.2 for index in range(len(Stage))]
        bars = axes.bar(places, medians, 0.38, yerr=ranges, capsize=3, label=case, hatch=hatch)
        axes.bar_label(bars, [f"{median:.1f}" for median in medians], padding=3, fontsize=8)
    axes.set_xticks(range(len(Stage)), list(Stage))
    axes.set_ylabel("time, s (median, range of the repeats)")
    axes.set_title(title, fontsize=10)
    axes.margins(y=0.15)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", nargs="?", default=FLOWERS, metavar="MODULE:FUNCTION")
    parser.add_argument("--topology", action="append", help="may be given several times (v2:2x2)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", metavar="COMMIT", help="measure that commit, too")
    parser.add_argument("--output", type=Path, default=Path("out/benchmarks"))
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if flags.target == FLOWERS:
            convert_flowers(Path(folder))
        topologies = flags.topology or ["v2:2x2"]
        with checked_out(flags.before) as trees:
            runs = measure(flags.target, topologies, flags.repeats, trees)
    name = "the flowers port" if flags.target == FLOWERS else flags.target
    flags.output.mkdir(parents=True, exist_ok=True)
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    first, *others = topologies
    for topology, measured in runs.items():
        print(f"{topology}\n{table(measured, *CASES)}")
        for case in CASES if flags.before else ():
            print(table(measured, f"{EARLIER}{case}", case))
        title = f"Dry run of {name} for {topology} (measured here: {machine})"
        picture(measured, title, flags.output / f"dry_run_{topology.replace(':', '_')}.png")
    for topology, case in itertools.product(others, CASES):
        found = round_ratios(totals(runs[topology], case), totals(runs[first], case))
        print(f"{topology} / {first}, {case}: {spread(found)}")
    content = {"target": name, "machine": machine, "seconds": runs, "kind": "measured here"}
    (flags.output / "dry_run.json").write_text(json.dumps(content, indent=2) + "\n")
    print(f"written to {flags.output}")


if __name__ == "__main__":
    main()
