"""Counts as people write them: one core, eight cores; and printed lines that a narrow window holds."""

import json
from pathlib import Path

import pytest

from lab_utils.common.figures import counted
from lab_utils.notebook.look import WIDTH, wrapped

ROOT = Path(__file__).parents[1]
AS_IT_IS = (("13", "ROSALIND"),)  # (lab, part of a line that others wrote, and so is not broken)


@pytest.mark.parametrize(
    "text", ["0 steps", "1 virtual core", "2 batches", "3 classes", "1,024 TODOs"]
)
def test_a_count_has_the_noun_that_it_needs(text):
    number, noun = text.split(" ", 1)
    singular = {"batches": "batch", "classes": "class"}.get(noun, noun.removesuffix("s"))
    assert counted(int(number.replace(",", "")), singular) == text


def test_lines_are_broken_between_words_and_keep_their_indent():
    said = wrapped(f"TPU101 {'word ' * 20}\n\n  {'more ' * 20}end\n{'x' * 100}")
    first, second, blank, third, fourth, long = said.splitlines()
    assert max(map(len, (first, second, third, fourth))) <= WIDTH
    assert (
        second.startswith("  word") and third.startswith("  more") and fourth.startswith("    more")
    )
    assert blank == "" and long == "x" * 100
    assert said.split() == f"TPU101 {'word ' * 20} {'more ' * 20}end {'x' * 100}".split()


@pytest.mark.parametrize(
    "path", sorted((ROOT / "solutions").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_no_printed_line_is_broken_inside_a_word(path):
    """JupyterLab breaks lines that are longer than the window anywhere."""
    long = [
        f"cell {number}, {len(line)} signs: {line[:60]}"
        for number, cell in enumerate(json.loads(path.read_text("utf-8"))["cells"])
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
        for line in "".join(output["text"]).splitlines()
        if len(line) > WIDTH + 2
        and not any(path.name.startswith(lab) and part in line for lab, part in AS_IT_IS)
    ]
    assert not long
