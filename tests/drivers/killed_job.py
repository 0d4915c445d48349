"""The whole flowers job for test_flowers_kills.py: where it is, seen from outside, and what it has left."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
from PIL import Image

from lab_utils.convert import ManifestError, read_manifest

# Each phase, and the seconds within it at which it may be struck.
PHASES = {
    "conversion": 6,
    "training": 8,
    "evaluation": 0.3,
    "export": 1,
    "dry run": 12,
    "prediction": 6,
    "page": 0.5,
}
STEPS, BETWEEN = 8, 2
TRAINING = [f"--train_steps={STEPS}", f"--eval_steps_between={BETWEEN}", "--train_batch_size=4"]
TRAINING += ["--image_size=32"]
_STAGES = {
    "Photographs to TFRecords": "conversion",
    "Train, evaluate, export": "training",
    "The same port, through the TPU compiler": "dry run",
    "Predictions and a page of pictures": "prediction",
}
_MARK = "KILLED_JOB"  # in the environment of each process of a job, however deep


class Job:
    """One output folder, and the processes that work on it one after the other."""

    def __init__(self, folder: Path, photos: Path, out: str = "out") -> None:
        self.folder, self.out = folder, folder / out
        self.tmp = folder / "tmp"
        self.tmp.mkdir(exist_ok=True)
        self._mark = str(folder)
        self._environment = os.environ | {
            _MARK: self._mark,
            "TMPDIR": str(self.tmp),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        self._command = [sys.executable, "-m", "lab_utils.flowers", f"--data={photos}"]
        self._command += [f"--output_dir={self.out}", *TRAINING]

    def start(self) -> None:
        """Starts the command, in a session of its own as a terminal would."""
        self.began = time.time()
        self.log = self.folder / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def place(self) -> Path | None:
        """The job's own folder below the output folder."""
        return next(self.out.glob("*/*/"), None)

    def _new(self, pattern: str) -> list[Path]:
        """What this process made, or wrote again."""
        found = self.place.glob(pattern) if self.place else ()
        return [path for path in found if path.stat().st_mtime > self.began]

    def phase(self) -> str:
        """One of PHASES, "start" or "end"."""
        said = re.findall("^== (.*)", self.log.read_text(), re.MULTILINE)
        stage = _STAGES[said[-1]] if said else "start"
        try:
            if stage == "prediction" and self._new("page/predictions.png"):
                return "end" if self._new("page/index.html") else "page"
            if stage == "training":
                if self._new("run/export/*"):
                    return "export"
                if self._new("run/model.ckpt-*.index") and self._checkpoint() not in self.steps():
                    return "evaluation"
        except FileNotFoundError:  # renamed meanwhile
            pass
        return stage

    def _checkpoint(self) -> int:
        names = (path.name for path in self.place.glob("run/model.ckpt-*.index"))
        return max(int(re.search(r"ckpt-(\d+)", name)[1]) for name in names)

    def lost(self) -> int:
        """The steps that were trained, as the bar has shown them, and are in no checkpoint."""
        trained = re.findall(rf"(\d+)/{STEPS} \[", self.log.read_text())
        kept = self._checkpoint() if self.place and any(self.place.glob("run/*.index")) else 0
        return max(0, int(trained[-1]) - kept) if trained else 0

    def steps(self) -> list[int]:
        """The steps that were evaluated."""
        history = self.place / "run" / "history.jsonl"
        lines = history.read_text().splitlines() if history.exists() else []
        return [json.loads(line)["step"] for line in lines]

    def strike(self, number: int, whom: str) -> None:
        """Sends a signal to the job alone, to all its processes as a terminal does, or to its stage."""
        if whom == "group":
            os.killpg(self.process.pid, number)
        elif whom == "job":
            self.process.send_signal(number)
        else:
            for child in psutil.Process(self.process.pid).children():
                child.send_signal(number)

    def running(self) -> list[psutil.Process]:
        """The processes that still live of all that this job started."""
        alive = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(_MARK) == self._mark and process.pid != os.getpid():
                    alive.append(process)
            except psutil.Error:
                continue
        return alive

    def half_written(self) -> list[str]:
        """What looks finished and is not."""
        wrong = []
        if self.place is None:
            return wrong
        records, run, page = (self.place / name for name in ("records", "run", "page"))
        if (records / "manifest.json").exists():
            try:
                paths = read_manifest(str(records)).paths("train")
                wrong += [path for path in paths if not Path(path).is_file()]
            except ManifestError as error:
                wrong.append(str(error))
        for export in run.glob("export/*"):
            needed = ("saved_model.pb", "variables/variables.index", "assets.extra/labels.txt")
            if export.name.isdecimal() and not all((export / name).exists() for name in needed):
                wrong.append(str(export))
        for path in [run / "result.json", self.place / "facts.json"]:
            if path.exists() and not json.loads(path.read_text()):
                wrong.append(str(path))
        for path in page.glob("*.html"):
            if not path.read_text().rstrip().endswith("</html>"):
                wrong.append(str(path))
        for path in page.glob("*.png"):
            Image.open(path).load()
        for path in self.place.glob("csv/*.csv"):
            if any(len(row) != 2 for row in csv.reader(path.open())):
                wrong.append(str(path))
        return wrong

    def left(self) -> list[str]:
        """What nobody needs: temporary files, and what has a name for unfinished files."""
        unfinished = re.compile(r"partial|in-progress|replaced|temp|\.tmp|publishing")
        found = [path for path in self.out.rglob("*") if unfinished.search(path.name)]
        return [str(path.relative_to(self.folder)) for path in [*self.tmp.iterdir(), *found]]


def ways(chance) -> tuple[int, str]:
    """A signal, and who gets it: Ctrl-C and a closed window reach all processes of a terminal."""
    return chance.choice(
        [
            (signal.SIGINT, "group"),
            (signal.SIGINT, "job"),
            (signal.SIGHUP, "group"),
            (signal.SIGHUP, "job"),
            (signal.SIGTERM, "group"),
            (signal.SIGTERM, "job"),
            (signal.SIGTERM, "stage"),
            (signal.SIGKILL, "group"),
            (signal.SIGKILL, "job"),
            (signal.SIGKILL, "stage"),
        ]
    )
