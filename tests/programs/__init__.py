"""Whole programs as other people wrote them for TPUEstimator (2018 to 2021), and the faults planted in them.

Each program is a file of sources/ in the manner of its time. Its `main(data_dir)` returns what the
dry run's command takes: (estimator, input_fn) or (estimator, input_fn, options). As it stands it runs
on a TPU and must be ready. FAULTS are rows (rule, old, new): `old`, found once in the program, becomes
`new`, and the finding must name that line, or the lines that end in "# <- RULE" where there are any.
"""

import importlib.util
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "sources"
_PARTS = re.compile(r"(?s)(.*\n)(FAULTS = \[.*)")
_number = itertools.count()


@dataclass(frozen=True)
class Fault:
    """One planted fault: `old` becomes `new`, and a finding of `rule` must name its line."""

    rule: str
    old: str
    new: str


@dataclass(frozen=True)
class Whole:
    """A program: its name and its source."""

    name: str

    @property
    def source(self) -> str:
        return (FOLDER / f"{self.name}.py").read_text()

    def faults(self) -> list[Fault]:
        """The faults that the program's own list names."""
        names: dict[str, Any] = {}
        exec(_PARTS.fullmatch(self.source)[2], names)
        return [Fault(*row) for row in names["FAULTS"]]

    def written(self, folder: Path, fault: Fault | None = None) -> Path:
        """The program as a file in `folder`, with a fault planted."""
        text = _PARTS.fullmatch(self.source)[1]
        if fault:
            assert text.count(fault.old) == 1, f"{self.name}: {text.count(fault.old)}x {fault.old}"
            text = text.replace(fault.old, fault.new)
        path = folder / f"{self.name}_{next(_number)}.py"
        path.write_text(text)
        return path

    @property
    def apart(self) -> bool:
        """It switches to version 1 behaviour, and so needs a process of its own."""
        return "disable_v2_behavior()" in self.source

    def lines(self, fault: Fault) -> set[int]:
        """The lines of the program at which a finding of the fault is right."""
        before = _PARTS.fullmatch(self.source)[1]
        start = before[: before.index(fault.old)].count("\n") + 1
        text = before.replace(fault.old, fault.new)
        marked = {
            number
            for number, line in enumerate(text.splitlines(), 1)
            if re.search(rf"# <- .*\b{fault.rule}\b", line)
        }
        return marked or set(range(start, start + max(1, fault.new.count("\n") + 1)))


def load(path: Path) -> ModuleType:
    """The module of a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS = [Whole(path.stem) for path in sorted(FOLDER.glob("*.py"))]
