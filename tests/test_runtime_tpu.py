"""What is set before an import, what is left alone, and what is said where there is no TPU."""

import os
import socket
import sys
import types

import pytest

from lab_utils import runtime
from lab_utils.runtime import tpu

COLAB = runtime.Machine("Colab", "TPU", 1, "v5e")
HIDDEN = runtime.Machine("Colab", "TPU", 1)
OLD = runtime.Machine("TPU VM", "TPU", 4, "v2 or v3")
LAPTOP = runtime.Machine("this machine", "CPU")
PJRT = {*tpu._PJRT, "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"}


@pytest.fixture
def on(monkeypatch):
    """Puts this process on another machine, with other packages, and an environment of its own."""

    def be(machine, imported=(), **packages):
        versions = {name.replace("_", "-"): version for name, version in packages.items()}
        monkeypatch.setattr(tpu, "detect", lambda: machine)
        monkeypatch.setattr(tpu, "version", lambda name: versions.get(name, ""))
        libtpu = types.SimpleNamespace(get_library_path=lambda: "/somewhere/libtpu.so")
        monkeypatch.setitem(sys.modules, "libtpu", libtpu)
        for name in ("tensorflow", "jax"):
            if name in imported:
                monkeypatch.setitem(sys.modules, name, object())
            else:
                monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(os, "environ", {"HOME": "/nowhere"})
        return os.environ

    return be


@pytest.mark.parametrize("machine", [COLAB, HIDDEN])
def test_tensorflow_on_a_new_tpu_needs_pjrt(on, machine):
    environ = on(machine, tensorflow_tpu="2.20.0", libtpu="0.0.21.1")
    runtime.prepare_tpu()
    assert set(environ) >= PJRT
    assert environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] == "/somewhere/libtpu.so"


@pytest.mark.parametrize(("machine", "framework"), [(OLD, "tensorflow"), (COLAB, "jax")])
def test_stream_executor_and_jax_need_nothing(on, machine, framework):
    environ = on(machine)
    assert "nothing had to be set" in runtime.prepare_tpu(framework)
    assert not PJRT & set(environ)


def test_what_the_user_set_stays(on):
    environ = on(COLAB, tensorflow_tpu="2.20.0", libtpu="0.0.21.1")
    environ.update(PJRT_DEVICE="CPU", TF_XLA_FLAGS="--mine")
    said = runtime.prepare_tpu()
    assert environ["PJRT_DEVICE"] == "CPU" and environ["TF_XLA_FLAGS"] == "--mine"
    assert environ["TF_PLUGGABLE_DEVICE_LIBRARY_PATH"] == "/somewhere/libtpu.so"
    assert said.startswith("Colab, 1 TPU chip v5e: set NEXT_PLUGGABLE") and "tensorflow" in said


def test_what_is_missing_is_said(on):
    on(COLAB)
    said = runtime.prepare_tpu("tensorflow")
    assert "tensorflow-tpu==2.20.0 with libtpu==0.0.21.1" in said and "KERAS_BACKEND=jax" in said
    environ = on(LAPTOP)
    assert runtime.prepare_tpu() == "this machine, CPU, no TPU chip: the code runs on the CPU."
    assert environ["TPU_SKIP_MDS_QUERY"] == "1"


def test_too_late_is_refused_where_it_matters(on):
    on(COLAB, imported=["tensorflow"], tensorflow_tpu="2.20.0", libtpu="0.0.21.1")
    with pytest.raises(RuntimeError, match="imported before PJRT_DEVICE.*restart"):
        runtime.prepare_tpu()
    on(LAPTOP, imported=["tensorflow", "jax"])
    runtime.prepare_tpu()


def test_a_pair_that_would_end_the_process_is_refused_before(on):
    for libtpu in ("0.0.14", "0.0.31"):
        on(COLAB, tensorflow_tpu="2.20.0", libtpu=libtpu)
        runtime.prepare_tpu()
    on(COLAB, tensorflow_tpu="2.20.0", libtpu="0.0.32")
    with pytest.raises(RuntimeError, match=r"libtpu 0\.0\.32.*libtpu==0\.0\."):
        runtime.prepare_tpu()


def test_an_address_that_does_not_answer_is_told_within_the_limit():
    with socket.create_server(("127.0.0.1", 0)) as server:
        alive = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        runtime.answers(alive)
    runtime.answers("")  # this machine
    for dead in (alive, "grpc://host.invalid:8470", "grpc://10.0.0.1", "grpc://h:99999"):
        with pytest.raises(RuntimeError, match="nothing answered at grpc://.* within 0.5 s"):
            runtime.answers(dead, seconds=0.5)
