"""Where the instructions of an optimised HLO module come from, by its own tables of files and stacks."""

import re
from traceback import FrameSummary

from lab_utils.common import source

_ROW = re.compile(r"^(\d+) (?:\"(.*)\"|\{(.*)\})$")
_METADATA = re.compile(r'source_file="([^"]*)".*?source_line=(\d+)')
_NO_FILE = "dummy_file_name"  # what TensorFlow's bridge writes
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def stacks(text: str) -> dict[str, list[tuple[str, str, int]]]:
    """Frames of each stack by its id: (file, function, line), outermost first."""
    tables: dict[str, dict[str, str]] = {}
    current = None
    for line in text.splitlines():
        if line in _TABLES:
            current = tables.setdefault(line, {})
        elif current is not None and (row := _ROW.match(line)):
            current[row[1]] = row[2] if row[2] is not None else row[3]
        elif line.startswith(("%", "ENTRY")):
            break
    locations = {
        number: dict(re.findall(r"(\w+)=(\d+)", row))
        for number, row in tables.get("FileLocations", {}).items()
    }
    frames = {
        number: dict(re.findall(r"(\w+)=(\d+)", row))
        for number, row in tables.get("StackFrames", {}).items()
    }
    # Ids of parents count from 1 where 1 means none: a frame without a parent then names itself.
    shift = any(number == frame.get("parent_frame_id") for number, frame in frames.items())
    found = {}
    for number in frames:
        stack, at = [], int(number)
        while str(at) in frames and len(stack) < 100:
            frame = frames[str(at)]
            where = locations.get(frame.get("file_location_id", ""), {})
            file = tables["FileNames"].get(where.get("file_name_id", ""), "")
            function = tables["FunctionNames"].get(where.get("function_name_id", ""), "")
            stack.append((file, function.rpartition(".")[2], int(where.get("line", 0))))
            parent = int(frame.get("parent_frame_id", 0)) - shift
            at = parent if parent != at else 0
        found[number] = stack[::-1]
    return found


def line_of(instruction: str, known: dict[str, list[tuple[str, str, int]]]) -> tuple[str, int]:
    """The learner's file and line behind an instruction's text; ("", 0) where it names none."""
    if found := re.search(r"stack_frame_id=(\d+)", instruction):
        frames = [FrameSummary(file, line, name) for file, name, line in known.get(found[1], ())]
        own = source.own_frame(frames)
        return (own.filename, own.lineno) if own and own.filename != _NO_FILE else ("", 0)
    found = _METADATA.search(instruction)
    if not found or found[1] == _NO_FILE or source.is_installed(found[1]):
        return "", 0
    return found[1], int(found[2])
