"""What the cheap stages of a dry run (trace, read, lower) say of a program; as a command, for one file.

python -m programs.judge DATA_DIR FILE... prints a line of JSON for each: programs that switch to
version 1 behaviour need a process of their own.
"""

import contextlib
import json
import sys
import time
from pathlib import Path

from lab_utils.dry_run import dry_run
from lab_utils.dry_run.frontends.estimator import lower_estimator
from lab_utils.dry_run.lower.errors import CannotLower, InputUnfit
from lab_utils.dry_run.records import Finding
from lab_utils.dry_run.rules.messages import settings_finding
from lab_utils.estimator import v1
from programs import load

CHEAP = ("trace", "read")


def judged(path: Path, data_dir: Path, lower: bool = True) -> dict:
    """Findings (rule, severity, where, why), seconds and peak memory (bytes) of the cheap stages."""
    _forget_peak()
    start = time.perf_counter()
    try:
        subject, data, *more = load(path).main(str(data_dir))
    except ValueError as error:  # settings that the constructor refuses
        refused = settings_finding(error)
        if not refused:
            raise
        return _said([refused], [], start)
    options = more[0] if more else {}
    report = dry_run(subject, data, stages=CHEAP, progress=False, **options)
    found = [*report.findings]
    stages = [f"{s.stage}: {s.detail}" for s in report.stages if s.status == "failed"]
    if lower and isinstance(subject, v1.estimator.tpu.TPUEstimator):
        try:
            lower_estimator(subject, data, cores=8)
        except InputUnfit:
            pass  # what trace found already
        except CannotLower as error:
            found += [] if error.only_here else [error.finding()]
    return _said(found, stages, start)


def _said(found: list[Finding], failed: list[str], start: float) -> dict:
    return {
        "findings": [[f.rule, str(f.severity), f.where, f.why, f.message[:300]] for f in found],
        "failed": failed,
        "seconds": time.perf_counter() - start,
        "peak": _peak(),
    }


def _forget_peak() -> None:
    """Sets the peak of this process's memory to what it holds now."""
    with contextlib.suppress(OSError):  # then the peak is that of the whole process
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    """The peak of this process's memory, in bytes; 0 where the system does not tell."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    for file in sys.argv[2:]:
        print(json.dumps({"file": file} | judged(Path(file), Path(sys.argv[1]))), flush=True)
