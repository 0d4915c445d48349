"""One writer, one lock, the user's own folders: whatever ends the process, and whoever it runs as."""

import argparse
import errno
import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from lab_utils.common import files
from lab_utils.flowers import predict
from lab_utils.teach.grade import page


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a.txt"
    files.write(path, "old\r\n")
    files.write(str(path), "new, ä\n")
    assert path.read_bytes() == "new, ä\n".encode()
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_where_writing_fails_the_old_content_stays(tmp_path, monkeypatch, fails):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, fails, full)
    with pytest.raises(OSError, match="No space left"):
        files.write(path, "new")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_through_a_link_and_to_a_device(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    files.write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    files.write("/dev/null", "gone")
    assert not Path("/dev/null").is_file()


def test_a_path_with_a_scheme_goes_through_tensorflow():
    from lab_utils.estimator import tf

    files.write("ram://folder/a.txt", "text")
    assert tf.io.gfile.GFile("ram://folder/a.txt").read() == "text"
    assert tf.io.gfile.listdir("ram://folder") == ["a.txt"]


def test_one_holder_at_a_time(tmp_path):
    with (
        files.locked(tmp_path / ".lock"),
        pytest.raises(files.InUseError, match="is in use by another process"),
        files.locked(tmp_path / ".lock"),
    ):
        pass
    with files.locked(tmp_path / ".lock"):
        pass


def test_without_locks_the_work_goes_on(tmp_path, monkeypatch):
    import fcntl

    def none(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with files.locked(tmp_path / ".lock"), files.locked("gs://bucket/.lock"):
        assert (tmp_path / ".lock").exists()


def test_a_user_without_a_home_is_an_os_error(monkeypatch):
    def nobody():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(files.Path, "home", nobody)
    with pytest.raises(OSError, match="set HOME or XDG_STATE_HOME"):
        files.user_folder("XDG_STATE_HOME", ".local/state")


@pytest.mark.parametrize(
    "command",
    ["flowers.task --train_data_path= --eval_data_path=b --output_dir=c", "runtime --output="],
)
def test_no_command_takes_an_empty_path(command, tmp_path, monkeypatch, capfd):
    """As an unset shell variable gives it."""
    module, *arguments = command.split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module(f"lab_utils.{module}", run_name="__main__", alter_sys=True)
    assert stopped.value.code == 2 and not list(tmp_path.iterdir())
    assert re.search("the path is empty|is not set", capfd.readouterr().err)


def test_a_path_argument_is_on_this_machine(monkeypatch):
    monkeypatch.setenv("HOME", "/home/rose")
    monkeypatch.setenv("RUN", "7")
    assert files.path_argument("~/$RUN/page.html") == Path("/home/rose/7/page.html")
    assert files.path_argument("./-") == Path("-")
    for path, message in (("gs://b/x", "gs://b/x is elsewhere"), ("-", "- does not mean a file")):
        with pytest.raises(argparse.ArgumentTypeError, match=message):
            files.path_argument(path)


def test_what_a_shell_has_not_replaced_or_left_empty_is_refused(tmp_path, monkeypatch):
    """As in a YAML file, or between single quotes: a folder of that name would be made."""
    monkeypatch.chdir(tmp_path)
    for path in ("$DATA/run", "${DATA}/run", "gs://$DATA/run", "gs:///run", "~nobody.here/run"):
        with pytest.raises(ValueError, match="no user, variable or bucket of that name"):
            files.expanded(path)
    Path("$DATA").touch()
    for name in ("$DATA", "a%20b", "5$", "train-*", "gs://bucket/run", "C:"):
        assert files.expanded(name) == name


def test_what_cannot_be_written_is_named_as_the_user_named_it(tmp_path):
    for path, says in (("/dev/full", "No space left"), (tmp_path / "no" / "page.html", "No such")):
        with pytest.raises(OSError, match=says) as raised:
            files.write(path, "text")
        assert raised.value.filename == str(path) and raised.value.errno


def test_where_a_command_cannot_write_is_said_before_its_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("locked").mkdir()
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: "locked" not in str(p) and allowed(p, mode))
    for name in ("report.json", "file", "/dev/null"):
        assert files.output(files.JSON)(name) == Path(name)
    for name in (".", "missing/report.json", "file/report.json", "locked/report.json"):
        with pytest.raises(argparse.ArgumentTypeError, match="cannot be written"):
            files.output(files.JSON)(name)


OUTPUTS = {
    files.JSON: ([b'{"format": 1}', b'{\n "x": 1'], [b'{\n "cells": []}', b"import os", b"[1]"]),
    files.HTML: ([b"<!DOCTYPE html>", b"\n<html>"], [b"<svg>", b"{}"]),
    page.CSV: ([b"learner,points", b'\xef\xbb\xbf"learner";'], [b"name,mark", b"PK\3\4"]),
    predict._OURS: (
        [b"\x89PNG\r\n...Software\0Matplotlib 3"],
        [b"\x89PNG\r\n...", b"\xff\xd8\xff"],
    ),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_a_file_of_another_kind_is_not_replaced(kind, tmp_path):
    """`--output *.png` names the first photograph, and `-o` in front of a list the first notebook."""
    path, (ours, others) = tmp_path / "output", OUTPUTS[kind]
    for content in (b"", *ours):
        path.write_bytes(content)
        assert files.output(kind)(str(path)) == path
    for content in others:
        path.write_bytes(content)
        with pytest.raises(argparse.ArgumentTypeError, match="was not written by this command"):
            files.output(kind)(str(path))
