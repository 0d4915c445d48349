"""The environment: pins that agree, imports that stay light, a doctor that tells the truth."""

import json
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tomllib
import yaml
from IPython.core.inputtransformer2 import TransformerManager
from packaging.requirements import Requirement

from lab_utils import __main__
from lab_utils.check import setup
from lab_utils.dry_run.private import process
from lab_utils.dry_run.unavailable import Unavailable
from lab_utils.runtime import doctor, install

ROOT = Path(__file__).parents[1]
LOCK = dict(
    re.findall(r"^([a-z0-9-]+)==([^ \\;]+)", (ROOT / "requirements.lock").read_text(), re.M)
)


def test_environment_yml_names_what_the_project_asks_for_in_the_locked_versions():
    text = (ROOT / "environment.yml").read_text()
    pins = dict(re.findall(r"- ([a-z0-9-]+)==([^ ;\n]+)", text))
    assert pins == {name: LOCK[name] for name in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (
        project["optional-dependencies"][e] for e in ("cpu", "tpu", "convert", "course", "lab")
    )
    wanted = {re.match(r"[a-z0-9-]+", line)[0] for line in sum(extras, project["dependencies"])}
    assert wanted - {"tensorflow-cpu", project["name"]} <= set(pins)


def test_the_lock_names_no_index():
    assert "://" not in (ROOT / "requirements.lock").read_text()


def test_importing_changes_nothing_of_the_process_and_needs_no_framework():
    code = (
        "import os, signal, sys\n"
        "def state():\n"
        "    signals = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]\n"
        "    return signal.pthread_sigmask(signal.SIG_BLOCK, []), signals, dict(os.environ), sys.excepthook\n"
        "before = state()\nimport lab_utils\nassert state() == before\n"
        "import lab_utils.convert, lab_utils.datasets, lab_utils.dry_run, lab_utils.flowers\n"
        "assert not {'tensorflow', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_module_with_a_command_line_runs_by_itself():
    """`python -m` of one that only defines main() would do nothing, with status 0."""
    silent = [
        path
        for path in (ROOT / "lab_utils").rglob("*.py")
        if re.search(r"^def main\(", text := path.read_text(), re.M)
        and 'if __name__ == "__main__":' not in text
    ]
    assert not silent
    abrupt = [
        path
        for path in (ROOT / "lab_utils").rglob("*.py")
        if "    sys.exit(main(" in path.read_text() and path.stem not in ("stage", "command")
    ]
    assert not abrupt  # command.run knows of closed outputs and Ctrl-C


def test_an_unknown_command_is_named_and_help_lists_what_there_is(monkeypatch, capsys):
    for word, status in (("docter", 2), ("--help", 0)):
        monkeypatch.setattr(sys, "argv", ["lab_utils", word])
        assert __main__.main() == status
    out, err = capsys.readouterr()
    assert "no command 'docter'" in err and "usage" in out


def test_one_line_where_all_is_here_else_what_to_do(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)  # the clone itself may be read-only
    light = (doctor.python, doctor.packages, doctor.machine, doctor.disk)
    monkeypatch.setattr(doctor, "CHECKS", light)
    assert doctor.main() == 0
    said = capsys.readouterr().out
    assert said.startswith("All is in place. Python: 3.") and said.count("\n") == 1
    monkeypatch.setattr(doctor, "MEMORY", 1e9)
    monkeypatch.setattr(doctor, "CHECKS", (doctor.python, doctor.memory))
    assert doctor.main() == 1
    python, memory, remedy = capsys.readouterr().out.splitlines()[:3]
    assert python.startswith("[OK] Python: 3.") and memory.startswith("[FAIL] memory:")
    assert "close other programs" in remedy


def test_a_package_of_another_version_is_found(monkeypatch):
    genuine = doctor.importlib.metadata.version
    monkeypatch.setattr(
        doctor.importlib.metadata,
        "version",
        lambda name: "1.0" if name == "apache-beam" else genuine(name),
    )
    monkeypatch.setattr(doctor, "CHECKOUT", False)
    check = doctor.packages()
    assert not check.ok and check.state == "apache-beam is 1.0, not ==2.77.0"
    assert check.remedy == '%pip install "apache-beam==2.77.0"'


def test_a_mac_lacks_one_stage_as_the_doctor_and_the_page_of_machines_say(monkeypatch):
    monkeypatch.setattr(install, "machine", lambda: "Darwin on arm64")
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: name != "libtpu" or None)
    process.require("jax")  # what the stage run asks for
    with pytest.raises(Unavailable, match="The other stages work here"):
        process.require("jax", "libtpu")
    check = doctor.tpu_compiler()
    assert check.ok
    assert check.state == "not made for Darwin on arm64: the dry run skips its stage compile"
    assert "The dry run skips its stage *compile*" in (ROOT / "labs/set_up.md").read_text()


def names_of(steps):
    """Of arguments of pip: the packages, one list a step."""
    return [[re.match("[a-z-]+", each)[0] for each in step if each[0] != "-"] for step in steps]


@pytest.mark.parametrize(
    ("here", "wanted"),
    [
        ({}, ["tensorflow", "tf-keras~=2.20.0"]),
        ({"tensorflow-cpu": "2.19.1"}, ["tf-keras~=2.19.0"]),
        ({"tensorflow": "2.15.1", "keras": "2.15.0"}, []),
        ({"tensorflow": "2.21.0", "keras": "3.9.0", "tf-keras": "2.21.0"}, []),
    ],
)
def test_tensorflow_stays_and_keras_2_comes_beside_it(here, wanted, monkeypatch):
    genuine, packages = install.version, (*install.TENSORFLOW, "keras", "tf-keras")
    monkeypatch.setattr(
        install, "version", lambda name: here.get(name, "") if name in packages else genuine(name)
    )
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda name: None)
    steps = list(install.lacking())
    assert [step[-1].partition("==")[0].removesuffix("-cpu") for step in steps] == wanted
    assert all(step[0] == "--no-deps" for step in steps if "keras" in step[-1])


def test_beam_comes_with_what_it_needs_and_leaves_the_pillow_of_the_place(monkeypatch):
    """Colab's Pillow is older than Beam asks for, and loaded before the first cell runs."""
    genuine, here = install.version, {"apache-beam": "", "pillow": "11.3.0", "fastavro": ""}
    monkeypatch.setattr(install, "version", lambda name: here.get(name, genuine(name)))
    steps = install.lacking()
    assert next(steps) == ["--no-deps", f"apache-beam=={LOCK['apache-beam']}"]
    here["apache-beam"] = LOCK["apache-beam"]  # as if pip had installed it
    assert names_of(steps) == [["fastavro"]]


def test_where_a_step_fails_what_rests_on_it_is_left(monkeypatch):
    genuine = install.version
    monkeypatch.setattr(install, "version", lambda n: "" if n == "apache-beam" else genuine(n))
    assert names_of(install.lacking()) == [["apache-beam"]]


def test_the_labs_ask_for_nothing_that_their_first_cell_does_not_install(monkeypatch):
    """Beam, which is no part of the extra "course", is looked for as well."""
    genuine = install.version
    monkeypatch.setattr(install, "version", lambda n: "" if n == "apache-beam" else genuine(n))
    assert doctor.packages().state == "apache-beam is missing"


def test_a_package_replaced_under_a_running_kernel_asks_for_a_restart(monkeypatch):
    import google.protobuf
    import PIL

    assert doctor.loaded().ok
    monkeypatch.setattr(PIL, "__version__", "11.3.0")
    monkeypatch.setattr(google.protobuf, "__version__", "5.29.6")
    check = doctor.loaded()
    installed = {name: install.version(name) for name in ("protobuf", "pillow")}
    assert not check.ok and check.remedy.startswith("restart the kernel")
    assert check.state == (
        f"has loaded protobuf 5.29.6, but {installed['protobuf']} is installed now; "
        f"pillow 11.3.0, but {installed['pillow']} is installed now"
    )


def test_what_cannot_be_installed_says_why(monkeypatch):
    failed = subprocess.CompletedProcess(
        [], 1, stderr="WARNING: x\nERROR: No matching distribution\n"
    )
    monkeypatch.setattr(install.subprocess, "run", lambda *command, **named: failed)
    monkeypatch.setattr(install, "lacking", lambda: [["--no-deps", "tf-keras~=2.20.0"]])
    problem = "tf-keras~=2.20.0 could not be installed: ERROR: No matching distribution"
    assert install.complete() == [problem]


def test_a_lab_without_its_package_skips_its_cells_until_that_is_installed(monkeypatch, capsys):
    """Lab 11 stopped at five errors where JAX was missing, and said that it skipped."""
    here, shell = {}, TransformerManager()
    shell.input_transformers_cleanup = shell.cleanup_transforms
    monkeypatch.setattr(install, "version", lambda name: here.get(name, ""))
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    before = len(shell.cleanup_transforms)
    setup._skip_without(())
    assert capsys.readouterr().out == "" and len(shell.cleanup_transforms) == before
    setup._skip_without(("jax",))
    assert "run `%pip install jax` in a new cell" in capsys.readouterr().out
    for cell in ("import jax", "%%writefile mira.py\nimport jax", "!python mira.py | head"):
        exec(shell.transform_cell(cell), {"get_ipython": None})
        assert capsys.readouterr().out == "Skipped: jax is not installed here.\n", cell
    for cell in ("%pip install jax", "!pip install jax", 'from a import ready\nready("jax")'):
        assert "Skipped" not in shell.transform_cell(cell), cell
    setup._skip_without(())  # what needs it is over
    assert shell.transform_cell("import math") == "import math\n"
    setup._skip_without(("jax",))
    assert len(shell.cleanup_transforms) == before + 1 and "Skipped" in shell.transform_cell("1")
    here["jax"] = "0.10.2"
    assert shell.transform_cell("import jax") == "import jax\n"
    for machine, way in (("arm64", "so use Colab"), ("x86_64", "run `%pip install libtpu`")):
        monkeypatch.setattr(install.platform, "machine", lambda machine=machine: machine)
        setup._skip_without(("jax", "libtpu"))
        assert way in capsys.readouterr().out


def test_a_framework_that_aborts_does_not_take_the_doctor_with_it(monkeypatch):
    monkeypatch.setattr(doctor.sys, "executable", "/bin/false")
    assert not doctor.tensorflow().ok and doctor.tensorflow().state == "exit status 1"


def test_a_folder_that_is_gone_does_not_take_the_doctor_with_it(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert not doctor.disk().ok


def test_the_doctor_says_whether_a_machine_holds_a_class(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "CHECKS", (doctor.python,))
    monkeypatch.delenv(doctor.cache.SHARED, raising=False)
    with pytest.raises(SystemExit):
        doctor.main(["--class=0"])
    assert doctor.main(["--class=100000"]) == 1
    out = capsys.readouterr().out
    assert "[FAIL] memory for a class" in out and f"{doctor.cache.SHARED} is not set" in out
    entries = tmp_path / "lab_utils" / "dry_run"
    monkeypatch.setenv(doctor.cache.SHARED, str(tmp_path))
    assert not doctor.shared_cache().ok
    entries.mkdir(parents=True)
    (entries / "a.json.gz").write_bytes(b"")
    assert doctor.shared_cache().ok and doctor.memory_for(0).ok
    for writable in (True, False):
        monkeypatch.setattr(os, "access", lambda path, mode, writable=writable: writable)
        assert doctor.read_only().ok is not writable


def test_the_doctor_says_what_other_users_can_read(tmp_path, monkeypatch):
    """An interpreter below a closed home started no learner's server, and said nothing of it (500)."""
    homes = [tmp_path / "ann", tmp_path / "bob"]
    for folder in (tmp_path, *homes):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    users = [SimpleNamespace(pw_dir=str(home), pw_uid=1000) for home in homes]
    monkeypatch.setattr(pwd, "getpwall", lambda: users)
    assert not doctor.private_homes().ok
    homes[0].chmod(0o700)
    assert str(homes[1]) in str(doctor.private_homes())
    homes[1].chmod(0o700)
    assert doctor.private_homes().ok
    python = homes[0] / "python3"
    python.touch(0o600)
    monkeypatch.setattr(sys, "executable", str(python))
    assert f"cannot read {python}" in str(doctor.readable())
    python.chmod(0o755)
    assert f"cannot read {homes[0]}" in str(doctor.readable())


def test_ci_tests_each_python_that_the_course_supports_and_that_of_conda():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text()
    jobs = yaml.safe_load(workflow)["jobs"]
    tested = set(jobs["pythons"]["strategy"]["matrix"]["python"])
    for step in jobs["test"]["steps"]:
        tested |= set(step.get("with", {}).get("python-version", "").split()[-1:])
    supported = re.search(r"\((3), (\d+)\) <= .* <= \(3, (\d+)\)", (ROOT / "Makefile").read_text())
    first, last = int(supported[2]), int(supported[3])
    assert tested == {f"3.{minor}" for minor in range(first, last + 1)}
    assert re.search(r"python=(3\.\d+)", (ROOT / "environment.yml").read_text())[1] in tested
    # README's lines for conda, and its command for nbval, are what the job runs.
    readme, conda = (ROOT / "README.md").read_text(), jobs["conda"]["steps"]
    name = yaml.safe_load((ROOT / "environment.yml").read_text())["name"]
    assert "conda env create -f environment.yml" in readme and f"conda activate {name}" in readme
    command = next(step["run"] for step in conda if "run" in step)
    assert command.rpartition(" ")[0] in readme
    assert (ROOT / "solutions" / command.rpartition(" ")[2]).exists()


def test_libtpu_stays_below_the_version_that_ends_v2_and_v3():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra, lines in lists.items():
        wanted = [Requirement(line) for line in lines]
        bounds = [each.specifier for each in wanted if each.name == "libtpu"]
        assert not any("1.0.0" in specifier for specifier in bounds), extra
        assert bounds or not any(each.name == "jax" and each.extras for each in wanted), extra


def test_the_files_of_other_places_name_what_there_is():
    """No daemon here builds the container: what can be read of it agrees with the repository."""
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    (run,) = (step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step)
    assert (ROOT / run).stat().st_mode & 0o111
    lines = (ROOT / ".devcontainer/Dockerfile").read_text().splitlines()
    assert lines.index("USER learner") < lines.index("RUN make setup"), "not as root"
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    assert container["postCreateCommand"] == "make setup" and container["remoteUser"] != "root"


def test_the_citation_says_what_the_package_says():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    stated = [cited[key] for key in ("version", "license")]
    assert stated == [project[key] for key in ("version", "license")] and cited["authors"]
    wheel = f"{project['name'].replace('-', '_')}-{project['version']}-py3-none-any.whl"
    assert wheel in (ROOT / "README.md").read_text()


def test_the_environment_of_make_setup_finds_the_checkout_by_a_relative_path():
    """Before Python 3.13 a whole path with an umlaut ends every start of Python where LC_ALL is C."""
    made = list((ROOT / ".venv").glob("lib/*/site-packages/_editable_impl_tpu_porting_labs.pth"))
    if not made:
        pytest.skip("no .venv of `make setup` here")
    assert Path(made[0].parent, made[0].read_text()).resolve() == ROOT.resolve()
    assert not os.path.isabs(made[0].read_text())
