"""A number, its unit and how it is known; and numbers as people read them: 36.7 GFLOP, 2.78 GiB, 35.4 ms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

from lab_utils.common.enums import StrEnum

_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL_SI = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_BINARY = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_SCALED_UNITS = ("B", "B/s", "FLOP", "FLOP/s", "FLOP/B")


class Kind(StrEnum):
    """Where a figure comes from. A compiler's figure or a published one is not a measurement."""

    COMPILER = "computed by the TPU compiler"
    ESTIMATED = "estimated by the TPU compiler"
    MEASURED = "measured here"
    QUOTED = "quoted"
    DERIVED = "computed from the figures next to it"


@dataclass(frozen=True)
class Figure:
    """A number with its unit and its kind; `source` says where a quoted one was read, and when."""

    name: str
    value: float
    unit: str
    kind: Kind
    source: str = ""


class FigureTable(Mapping[str, Figure]):
    """Base of dataclasses whose fields are `Figure | None`; also a mapping of those that are known.

    `table.flops` is None where it is not known; `table["flops"]` raises KeyError there.
    """

    def __getitem__(self, key: str) -> Figure:
        if key not in list(self):
            known = any(field.name == key for field in fields(self))
            raise KeyError(f"{key}: not known here; the report says why" if known else key)
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self) if getattr(self, field.name) is not None)

    def __len__(self) -> int:
        return len(list(iter(self)))


def rounded(value: float) -> str:
    """Three significant digits: 0.0123, 1.23, 12.3, 123, 12,300."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{float(f'{value:.3g}'):,.0f}"
    if magnitude >= 10:
        return f"{value:.1f}"
    if magnitude >= 1:
        return f"{value:.2f}"
    return f"{value:.3g}" if magnitude >= 1e-4 else f"{value:.1e}"


def scaled(value: float, unit: str) -> str:
    """`value` in `unit` with the decimal prefix that suits it: 3.67e10 FLOP is "36.7 GFLOP"."""
    prefixes = _SMALL_SI if unit == "s" else _SI
    fits = (pair for pair in prefixes if abs(value) >= pair[0])
    factor, prefix = next(fits, prefixes[-1])
    return f"{rounded(value / factor)} {prefix}{unit}"


def memory(size: float) -> str:
    """`size` bytes in binary units, as memory is counted: 2,987,000,000 is "2.78 GiB"."""
    for factor, unit in _BINARY:
        if abs(size) >= factor:
            return f"{rounded(size / factor)} {unit}"
    return f"{size:.0f} B"


def figure_text(figure: Figure) -> str:
    """A figure's value with its unit; "bytes" (memory) is counted in binary units, "B" in decimal ones."""
    if figure.unit == "bytes":
        return memory(figure.value)
    if figure.unit == "share":
        return f"{figure.value:.0%}" if figure.value >= 0.01 else f"{figure.value:.1%}"
    if figure.unit in _SCALED_UNITS or figure.unit == "s":
        return scaled(figure.value, figure.unit)
    whole = float(figure.value).is_integer()
    text = f"{figure.value:,.0f}" if whole else rounded(figure.value)
    return f"{text} {figure.unit}".rstrip()


def kind_text(figure: Figure) -> str:
    """What stands behind a figure: its kind, and for a quoted one the source."""
    return f"{figure.kind}: {figure.source}" if figure.source else str(figure.kind)


def counted(number: int, noun: str) -> str:
    """How many of something, as people write it: "1 core", "1,024 cores", "3 batches"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith(('ch', 's', 'sh', 'x')) else 's'}"
