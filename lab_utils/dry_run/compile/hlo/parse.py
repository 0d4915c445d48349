"""The text of an HLO module as computations and instructions, and how often its loops go round.

`f32[128,74,74,20]{0,3,2,1:T(8,128)}` has 4 axes; axis 0 lies innermost and axis 3 next to
it; they are stored in tiles of 8 by 128, so that axis 0 is padded to a multiple of 128 and axis 3 to
a multiple of 8. A second tile such as (2,1) packs narrow types and pads nothing more.
(openxla.org/xla/tiled_layout.)
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

_BYTES = {"pred": 1, "bf16": 2, "c64": 8, "c128": 16, "s4": 0.5, "u4": 0.5}
_SHAPE = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)((?::[^}]*)?)\})?")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r" ([a-z][a-z0-9\-]*)\(")
_CALLS = "calls|body|condition|to_apply|branch_computations|true_computation|false_computation"


@dataclass(frozen=True)
class Shape:
    """An array as the chip stores it; `order` lists its axes from the innermost."""

    dtype: str
    dims: tuple[int, ...]
    order: tuple[int, ...] = ()
    tile: tuple[int, ...] = ()
    memory_space: int = 0  # 0 is HBM

    @property
    def item_bytes(self) -> float:
        """Bytes of an element."""
        return _BYTES.get(self.dtype) or int(re.sub(r"\D.*", "", self.dtype[1:]) or 8) / 8

    @property
    def bytes(self) -> int:
        """Bytes of the data themselves."""
        return math.ceil(math.prod(self.dims) * self.item_bytes)

    @property
    def padded_dims(self) -> tuple[int, ...]:
        """The sizes of the axes, each filled up to whole tiles."""
        padded = list(self.dims)
        for axis, size in zip(self.order, reversed(self.tile), strict=False):
            padded[axis] = math.ceil(padded[axis] / size) * size
        return tuple(padded)

    @property
    def padded_bytes(self) -> int:
        """Bytes that the array takes in memory."""
        elements = math.prod(self.padded_dims)
        # A tile of more axes than the array has: the array is padded to one whole tile.
        missing = self.tile[: max(0, len(self.tile) - len(self.dims))]
        return math.ceil(elements * math.prod(missing) * self.item_bytes)

    @property
    def worst_axis(self) -> int | None:
        """The axis whose padding costs most; None where nothing is padded."""
        growth = [p / d if d else 1 for p, d in zip(self.padded_dims, self.dims, strict=True)]
        if not growth or max(growth) <= 1:
            return None
        return growth.index(max(growth))

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


def shapes(text: str) -> list[Shape]:
    """All array shapes in a piece of HLO text: one, or those of a tuple."""
    arrays = []
    for dtype, dims, order, rest in _SHAPE.findall(text):
        tile = re.search(r"T\(([\d,]+)\)", rest)
        space = re.search(r"S\((\d+)\)", rest)
        arrays.append(
            Shape(dtype, numbers(dims), numbers(order), numbers(tile[1] if tile else ""),
                  int(space[1]) if space else 0)
        )  # fmt: skip
    return arrays


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list such as "0,3,2"."""
    return tuple(int(number) for number in text.split(",") if number)


def members(text: str) -> tuple[int, ...]:
    """The first group of cores that exchange something in a collective; () where it names none, and all do.

    The forms of its replica_groups are `{{0,1},{2,3}}`, `[4,2]<=[2,4]T(1,0)` (four groups of two) and
    `mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)) {'b'}`, where the ids may be left out. A permutation has
    source_target_pairs instead.
    """
    if match := re.search(
        r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((.*?)\))? ?\{([^}]*)\}", text
    ):
        sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", match[1])}
        ids = _ids(match[2] or f"[{math.prod(sizes.values())}]").reshape(tuple(sizes.values()))
        among = re.findall(r"'([^']*)'", match[3])
        first = tuple(slice(None) if name in among else 0 for name in sizes)
        return tuple(int(number) for number in ids[first].flat)
    if match := re.search(r"replica_groups=\[([\d,]+)\]<=(\[[\d,]+\](?:T\([\d,]+\))?)", text):
        return tuple(int(number) for number in _ids(match[2]).reshape(numbers(match[1]))[0])
    if match := re.search(r"source_target_pairs=\{(\{.*?\})\}", text):
        target = dict(map(numbers, re.findall(r"\{([\d,]+)\}", match[1])))
        chain = [next(iter(target))]
        while (following := target.get(chain[-1])) is not None and following not in chain:
            chain.append(following)
        return tuple(chain)
    match = re.search(r"replica_groups=\{\{([\d,]+)\}", text)
    return numbers(match[1]) if match else ()


def _ids(text: str) -> np.ndarray:
    """The numbers of cores that `[2,4]T(1,0)` stands for: 0 to 7 as 2 by 4, with its axes turned."""
    sizes, turned = re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text).groups()
    ids = np.arange(math.prod(numbers(sizes))).reshape(numbers(sizes))
    return ids.transpose(numbers(turned)) if turned else ids


@dataclass
class Instruction:
    """One line: its result's shapes (several for a tuple), and the names of its operands."""

    name: str
    opcode: str
    shapes: list[Shape]
    operands: list[str]
    text: str

    def calls(self) -> Iterator[tuple[str, str]]:
        """The computations that it calls: pairs of the attribute ("body", "calls" ...) and the name."""
        for key, several, one in re.findall(
            rf"\b({_CALLS})=(?:\{{([^}}]*)\}}|%?([\w.\-]+))", self.text
        ):
            for name in several.split(",") if several else [one]:
                yield key, name.strip().lstrip("%")

    @property
    def op_name(self) -> str:
        """The TensorFlow op that it stems from, or its own name."""
        match = re.search(r'op_name="([^"]*)"', self.text)
        name = match[1].split(";")[-1] if match else ""
        return re.sub(r"^(StatefulPartitionedCall/)?(PartitionedCall/)?", "", name) or self.name


@dataclass(frozen=True)
class Visit:
    """An instruction where the program does it.

    Attributes:
        times: how often, as far as the rounds of loops around it can be seen.
        body: the computation that it stands in.
        fused: it is part of a fusion, whose parts never reach HBM.
        aside: so, or part of a loop's condition or of what runs asynchronously.
    """

    instruction: Instruction
    times: int
    body: str
    fused: bool
    aside: bool


class Module:
    """An HLO module, read from its text.

    Attributes:
        text: of the module.
        computations: the instructions of each computation, by its name.
        entry: the name of the computation that the program begins with.
        instructions: every instruction, by its name.
    """

    def __init__(self, text: str) -> None:
        self.text, self.entry = text, ""
        self.computations: dict[str, list[Instruction]] = {}
        current = None
        for line in text.splitlines():
            if header := _COMPUTATION.match(line):
                current = self.computations.setdefault(header[2], [])
                self.entry = header[2] if header[1] else self.entry
            elif current is not None and (match := _INSTRUCTION.match(line)):
                line_after = " " + match[3]
                if opcode := _OPCODE.search(line_after):
                    arguments = line_after[opcode.end() :].split(")")[0]
                    operands = re.findall(r"%([\w.\-]+)", arguments)
                    result = shapes(line_after[: opcode.start()])
                    current.append(Instruction(match[2], opcode[1], result, operands, line_after))
        self.instructions = {op.name: op for body in self.computations.values() for op in body}

    def operands(self, op: Instruction) -> list[Instruction]:
        """The instructions whose results it takes."""
        return [self.instructions[name] for name in op.operands if name in self.instructions]

    @cached_property
    def users(self) -> dict[str, list[Instruction]]:
        """By the name of an instruction those that take its result."""
        users: dict[str, list[Instruction]] = {}
        for instruction in self.instructions.values():
            for name in instruction.operands:
                users.setdefault(name, []).append(instruction)
        return users

    @property
    def results(self) -> list[Shape]:
        """The shapes of what the program returns."""
        body = self.computations.get(self.entry)
        return body[-1].shapes if body else []

    def visits(self) -> Iterator[Visit]:
        """The instructions in the order of the program, those of loops and branches once."""

        def walk(name: str, times: int, fused: bool, aside: bool) -> Iterator[Visit]:
            for op in self.computations.get(name, ()):
                yield Visit(op, times, name, fused, aside)
                loop = op.opcode == "while"
                inner = times * ((loop and self.rounds(op)) or 1)
                # "call-start": another unit, as a SparseCore that gathers, works beside the core.
                for key, call in op.calls():
                    if key != "to_apply" or op.opcode in ("call", "call-start"):
                        within = fused or op.opcode in ("fusion", "call-start")
                        yield from walk(call, inner, within, aside or key in ("calls", "condition"))

        return walk(self.entry, 1, False, False)

    def rounds(self, loop: Instruction) -> int | None:
        """How often a while loop goes round, if that can be seen: it counts from a constant to one."""
        span = self._span(loop)
        return None if span is None else max(0, span[2] - span[1])

    def _span(self, loop: Instruction) -> tuple[int, int, int] | None:
        """(index of the counter in the loop's tuple, its first value, its limit) of `i < limit`."""
        condition = self.computations.get(dict(loop.calls()).get("condition", ""), [])
        root = condition[-1] if condition else None
        if root is None or root.opcode != "compare" or "direction=LT" not in root.text:
            return None
        state = self.instructions.get(loop.operands[0])
        if state is None or state.opcode != "tuple":
            return None
        local = {op.name: op for op in condition}
        counter, limit = (local.get(name) for name in root.operands[:2])
        if counter is None or limit is None or counter.opcode != "get-tuple-element":
            return None
        index = _index(counter)
        start = self._value(self.instructions.get(state.operands[index]))
        if limit.opcode == "get-tuple-element":
            limit = self.instructions.get(state.operands[_index(limit)])
        end = self._value(limit)
        return None if start is None or end is None else (index, start, end)

    def _value(self, op: Instruction | None) -> int | None:
        """The whole number that an instruction is, if that can be seen."""
        if op is None:
            return None
        if op.opcode == "constant":
            number = re.search(r" constant\((-?\d+)\)", op.text)
            return int(number[1]) if number else None
        if op.opcode in ("copy", "bitcast", "convert"):
            return self._value(self.instructions.get(op.operands[0]))
        if op.opcode == "get-tuple-element":
            source = self.instructions.get(op.operands[0])
            if source is not None and source.opcode == "while":
                # A loop leaves its counter at the limit; of its other values nothing is known.
                span = self._span(source)
                return span[2] if span and span[0] == _index(op) else None
            if source is not None and source.opcode == "tuple":
                return self._value(self.instructions.get(source.operands[_index(op)]))
        return None


def _index(op: Instruction) -> int:
    return int(re.search(r"index=(\d+)", op.text)[1])
