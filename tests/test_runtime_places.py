"""Where the code runs, told from fake environments and device files."""

import subprocess
import sys

import pytest

from lab_utils import runtime
from lab_utils.runtime import places

V5E, V4, GPU, OTHER_GOOGLE = "0x0063", "0x005e", "0x20b0", "0x9999"
PLACES = ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE", "KUBERNETES_SERVICE_HOST")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Makes a machine of variables, PCI devices and device files, and says what is detected."""
    for name in PLACES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(places, "PCI", tmp_path / "pci")
    monkeypatch.setattr(places, "DEVICES", tmp_path / "dev")

    def make(*variables, pci=(), devices=()):
        for name in variables:
            monkeypatch.setenv(name, "1")
        for index, (vendor, number) in enumerate(pci):
            folder = tmp_path / "pci" / f"0000:00:0{index}.0"
            folder.mkdir(parents=True)
            (folder / "vendor").write_text(vendor + "\n")
            (folder / "device").write_text(number + "\n")
        for name in devices:
            path = tmp_path / "dev" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return runtime.detect()

    return make


def google(number, count=1):
    return [("0x1ae0", number)] * count


@pytest.mark.parametrize(
    ("variables", "hardware", "expected"),
    [
        ((), {}, "this machine, CPU, no TPU chip"),
        (
            (),
            {"pci": [("0x10de", GPU), ("0x1ae0", OTHER_GOOGLE)]},
            "this machine, CPU, no TPU chip",
        ),
        ((), {"devices": ["vfio/0", "vfio/1", "vfio/vfio"]}, "TPU VM, 2 TPU chips"),
        ((), {"pci": google(V4, 4), "devices": ["accel0"]}, "TPU VM, 4 TPU chips v4"),
        (("COLAB_RELEASE_TAG",), {"devices": ["nvidia0"]}, "Colab, GPU, no TPU chip"),
        (("COLAB_RELEASE_TAG",), {"pci": google(V5E)}, "Colab, 1 TPU chip v5e"),
        (("KAGGLE_KERNEL_RUN_TYPE",), {"pci": google(V5E, 8)}, "Kaggle, 8 TPU chips v5e"),
        (("KUBERNETES_SERVICE_HOST",), {"pci": google(V5E, 4)}, "GKE, 4 TPU chips v5e"),
        (("KUBERNETES_SERVICE_HOST",), {}, "this machine, CPU, no TPU chip"),
    ],
)
def test_each_place_is_told(machine, variables, hardware, expected):
    assert str(machine(*variables, **hardware)) == expected


def test_the_command_says_what_is_here():
    code = (
        "import sys; from lab_utils.runtime.__main__ import main; sys.argv = ['x']; main();"
        "assert not {'tensorflow', 'jax', 'keras'} & set(sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == f"{runtime.detect()}.\n"


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (("memory.max", "memory.current", "memory.stat"), "inactive_file"),
        (("limit_in_bytes", "usage_in_bytes", "stat"), "total_inactive_file"),
    ],
    ids=["version 2", "version 1"],
)
def test_a_container_limits_the_memory_that_is_free(names, files, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "CGROUP", tmp_path)
    whole = places.free_memory()
    folder = tmp_path if files == "inactive_file" else tmp_path / "memory"
    folder.mkdir(exist_ok=True)
    limit, used, statistics = (
        folder / name if files == "inactive_file" else folder / f"memory.{name}" for name in names
    )
    statistics.write_text(f"anon 1\n{files} {3 * 2**20}\n")
    used.write_text(f"{10 * 2**20}\n")
    limit.write_text(f"{20 * 2**20}\n")
    assert places.free_memory() == 13 * 2**20  # what is in use holds 3 MiB of files that may go
    used.write_text(f"{40 * 2**20}\n")
    assert places.free_memory() == 0
    limit.write_text("max\n")
    assert places.free_memory() > min(whole / 2, 2**30)
