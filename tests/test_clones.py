"""A clone in an odd place, run by an odd user: a chosen part of the suite is green there too.

By default all that is odd at once. CLONES=each tries one thing after the other, and names the culprit;
CLONES=each TESTS="tests/test_flowers_job.py ..." tries another part.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
TESTS = os.environ.get(
    "TESTS",
    "tests/test_setup.py tests/test_files.py tests/test_check.py tests/test_build.py tests/test_datasets.py "
    "tests/test_convert_rows.py tests/test_convert_images.py tests/test_convert_publishing.py "
    "tests/test_flowers_settings.py tests/test_runtime_places.py tests/test_runtime_tpu.py "
    "tests/test_runtime_verify.py tests/test_dry_run_cache.py tests/test_plots.py",
).split()
MADE = 'sh -c \'mkdir -p "$TMPDIR"; "$0" "$@"; got=$?; rm -r "$TMPDIR"; exit $got\''
GO_ON = 'exec "$0" "$@"'
# Another user id, without an entry in the password database, in a namespace where the files are its own.
NOBODY = "unshare -U --map-user=12345 --map-group=12345 env -u HOME -u USER -u LOGNAME"
READ_ONLY = 'mount --bind . . && mount -o remount,bind,ro . && cd "$PWD"'
# What the shell of somebody who works with TPUs, or with JAX, may have set; and a terminal's own.
SHELL = {
    "TPU_NAME": "node-1",
    "TPU_WORKER_ID": "0",
    "TPU_SKIP_MDS_QUERY": "1",
    "TF_USE_LEGACY_KERAS": "0",
    "TF_CPP_MIN_LOG_LEVEL": "0",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "KERAS_BACKEND": "jax",
    "JAX_ENABLE_X64": "1",
    "CUDA_VISIBLE_DEVICES": "0",
    "PYTHONWARNINGS": "always",
    "PYTHONHASHSEED": "7",
    "MPLBACKEND": "TkAgg",
    "FORCE_COLOR": "1",
    "TERM": "xterm-256color",
    "COLUMNS": "40",
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "XDG_CACHE_HOME": "",
    "CDPATH": "/",
}
LOOPBACK = f"{sys.executable} tests/drivers/loopback.py"
# Where the clone lies, the environment, words before the command, words after it.
ODD = {
    "folder tpu": ("tpu", {}, "", ""),
    "folder p": ("p", {}, "", ""),
    "space and umlaut": ("my clöne's [1]", {}, "", ""),
    "LC_ALL=C": ("c", {"LC_ALL": "C"}, "", ""),
    "LC_ALL=C, no UTF-8": (
        "c",
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        "",
        "",
    ),
    "Turkish": ("c", {"LC_ALL": "tr_TR.UTF-8", "LANGUAGE": "tr"}, "", ""),
    "German": ("c", {"LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de"}, "", ""),
    "time zone": ("c", {"TZ": "Pacific/Kiritimati"}, "", ""),
    "no home": ("c", {"HOME": "/nonexistent"}, "", ""),
    "opposite order": ("c", {}, "", "-p drivers.reversed_order"),
    "one core": ("c", {}, "taskset -c 0", ""),
    "in the background": ("c", {}, 'nohup sh -c \'trap "" INT; "$0" "$@"\'', ""),
    "no network": ("c", {}, f"unshare -rn sh -c '{LOOPBACK}; {GO_ON}'", ""),
    "host cpu": ("c", {}, 'unshare -ru sh -c \'hostname cpu; exec "$0" "$@"\'', ""),
    "read-only": ("c", {}, f"unshare -rm sh -c '{READ_ONLY} && {GO_ON}'", ""),
    "user without a name": ("c", {}, NOBODY, ""),
    "a shell's own words": ("c", SHELL, "", ""),
    "umask 077": ("c", {}, 'sh -c \'umask 077; exec "$0" "$@"\'', ""),
    "a long folder for temporary files": ("c", {"TMPDIR": f"/tmp/{'a long name ' * 12}"}, MADE, ""),
    "random order": ("c", {}, "", "-p drivers.random_order"),
}


def run(where: list[str], tmp_path: Path) -> str:
    """Runs TESTS in a clone that is odd in these ways; the last line that pytest prints."""
    odd = [ODD[name] for name in where]
    places = [each[0] for each in odd if each[0] != "c"] or ["clone"]
    clone = tmp_path.joinpath(*places)
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    environment = {name: value for name, value in os.environ.items() if name[:4] != "PYTE"}
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, (clone, clone / "tests")))}
    before, after = [], []
    wanted = {each[1].get("LC_ALL", "C") for each in odd} - {"C"}
    if wanted and shutil.which("localedef"):
        environment["LOCPATH"] = str(tmp_path / "locales")
        (tmp_path / "locales").mkdir()
        for name in wanted:
            source, _, encoding = name.partition(".")
            command = ["localedef", "-i", source, "-f", encoding, tmp_path / "locales" / name]
            subprocess.run(command, capture_output=True)
    for _, variables, first, last in odd:
        environment |= variables
        before += shlex.split(first)
        after += shlex.split(last)
    if before and not shutil.which(before[0]):
        pytest.skip(f"no {before[0]} here")
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--basetemp", str(tmp_path / "temporary"), *after, *TESTS]
    ran = subprocess.run(
        [*before, *command], cwd=clone, env=environment, capture_output=True, text=True
    )
    said = ran.stdout + ran.stderr
    failed = "\n".join(re.findall(r"^(?:FAILED|ERROR).*", said, re.M))
    assert ran.returncode == 0, f"{where}\n{failed}\n{said[-6000:]}"
    return said.strip().splitlines()[-1]


EACH = list(ODD) if os.environ.get("CLONES") == "each" else []


@pytest.mark.parametrize("name", EACH)
def test_in_one_odd_place(name, tmp_path):
    print(f"\n{name}: {run([name], tmp_path)}")


@pytest.mark.skipif(bool(EACH), reason="one after the other was asked for")
def test_in_all_of_them_at_once(tmp_path):
    rest = (
        "Turkish",
        "German",
        "folder p",
        "no home",
        "opposite order",
        "LC_ALL=C, no UTF-8",
    )  # these would undo others
    print(f"\nall at once: {run([name for name in ODD if name not in rest], tmp_path)}")
