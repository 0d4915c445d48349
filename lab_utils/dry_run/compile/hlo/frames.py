"""Where the instructions of an optimised HLO module come from, by its own tables of files and stacks."""

import re
from traceback import FrameSummary

from lab_utils.common import source
from lab_utils.common.source import NOWHERE, Place
from lab_utils.dry_run.compile.hlo.parse import Instruction, Module

_ROW = re.compile(r"^(\d+) (?:\"(.*)\"|\{(.*)\})$")
_METADATA = re.compile(r'source_file="([^"]*)".*?source_line=(\d+)')
_NO_FILE = "dummy_file_name"  # what TensorFlow's bridge writes
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


class Origins:
    """The learner's line and the framework's op behind each instruction of a module."""

    def __init__(self, module: Module) -> None:
        self._stacks, self._users = stacks(module.text), module.users

    def of(self, instruction: Instruction, depth: int = 5) -> tuple[Place, str]:
        """Line and op of an instruction; the compiler's own copies have those of what uses them.

        The line is NOWHERE, and the op "", where the module names none.
        """
        place = line_of(instruction.text, self._stacks)
        has_op = 'op_name="' in instruction.text
        if place or has_op or not depth:
            return place, instruction.op_name if has_op else ""
        origins = (self.of(user, depth - 1) for user in self._users.get(instruction.name, ()))
        return next((origin for origin in origins if any(origin)), (NOWHERE, ""))


def stacks(text: str) -> dict[str, list[FrameSummary]]:
    """The frames of each stack by its id, outermost first."""
    tables: dict[str, dict[str, str]] = {name: {} for name in _TABLES}
    current = None
    for line in text.splitlines():
        if line in _TABLES:
            current = tables[line]
        elif current is not None and (row := _ROW.match(line)):
            current[row[1]] = row[2] if row[2] is not None else row[3]
        elif line.startswith(("%", "ENTRY")):
            break
    names, functions, *numbers = tables.values()
    locations, frames = (
        {key: dict(re.findall(r"(\w+)=(\d+)", row)) for key, row in table.items()}
        for table in numbers
    )
    # Ids of parents count from 1 where 1 means none: a frame without a parent then names itself.
    shift = any(number == frame.get("parent_frame_id") for number, frame in frames.items())
    paths: dict[str, list[FrameSummary]] = {}
    for number, frame in frames.items():  # a parent stands before its children
        where = locations.get(frame.get("file_location_id", ""), {})
        file = names.get(where.get("file_name_id", ""), "")
        function = functions.get(where.get("function_name_id", ""), "").rpartition(".")[2]
        last = FrameSummary(file, int(where.get("line", 0)), function, lookup_line=False)
        parent = str(int(frame.get("parent_frame_id", 0)) - shift)
        paths[number] = [*paths.get(parent, ()), last]
    return paths


def line_of(instruction: str, paths: dict[str, list[FrameSummary]]) -> Place:
    """The learner's line behind an instruction's text; NOWHERE where it names none."""
    if stack := re.search(r"stack_frame_id=(\d+)", instruction):
        frame = source.own_frame(paths.get(stack[1], ()))
        file, line = (frame.filename, frame.lineno) if frame else ("", 0)
    elif match := _METADATA.search(instruction):
        file, line = ("", 0) if source.is_installed(match[1]) else (match[1], int(match[2]))
    else:
        return NOWHERE
    return NOWHERE if file == _NO_FILE else source.place_of_line(file, line)
