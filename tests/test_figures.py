"""Counts as people write them: one core, eight cores; and printed lines that a narrow window holds."""

import ast
import json
import re
from pathlib import Path
from string import Formatter

import pytest

from lab_utils.common.figures import counted
from lab_utils.dry_run import rules
from lab_utils.notebook.look import WIDTH, wrapped

ROOT = Path(__file__).parents[1]
COUNTED = re.compile(
    r" (?:[a-z]+ )?(?:argument|batch|cell|check|checkpoint|chip|class|core|device|error|example|file|finding|"
    r"host|image|lab|learner|line|notebook|page|photograph|picture|point|process|record|replica|row|rule|"
    r"shard|step|submission|test|TODO|variable|warning|worker)(?:s|es)\b(?!/)"
)
# Never one of them, and why.
MANY = {
    "chip.pod": "a pod",
    "share": "is told where it is above 1",
    "count": "cores that do not divide a size",
    "len(steps)": "is told where it is above 1",
    "files": "copies of one another",
    "number": "'2 of' the images",
    "len(sums)": "the bundled pictures",
    "len(written)": "the pages of all rules",
    "len(rules.catalogue())": "all rules",
    "len(sources.labs())": "all labs",
    "site.link_rules(options.link)": "all findings of the site",
    "text": "the code of a batch size",
    "len(taken)": "of XLA's program, beside other counts",
    "_PIXELS // 128 ** 2": "a constant",
}
# What a cell prints as others wrote it, and so is not broken: (lab, part of the line).
AS_IT_IS = (
    ("13", "ROSALIND"),  # a text that the model wrote
)


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "step", "0 steps"),
        (1, "virtual core", "1 virtual core"),
        (2, "batch", "2 batches"),
        (3, "class", "3 classes"),
        (1024, "TODO", "1,024 TODOs"),
    ],
)
def test_a_count_has_the_noun_that_it_needs(number, noun, said):
    assert counted(number, noun) == said


def test_no_message_counts_by_a_plural_of_its_own():
    """`f"{cores} cores"` says "1 cores" some day: `counted(cores, "core")`."""
    found = []
    for path in (ROOT / "lab_utils").rglob("*.py"):
        if "labs" in path.parts:  # the checks' cases are constants
            continue
        for text in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(text, ast.JoinedStr):
                continue
            for value, after in zip(text.values, text.values[1:], strict=False):
                if not isinstance(value, ast.FormattedValue) or not isinstance(after, ast.Constant):
                    continue
                said = ast.unparse(value.value)
                if COUNTED.match(after.value) and said not in MANY and not said.isupper():
                    found.append(
                        f"{path.relative_to(ROOT)}:{value.lineno}: {said}{after.value[:20]}"
                    )
    assert not found


def test_no_rule_counts_by_a_plural_of_its_own():
    always_more = {("TPU106", "cores"), ("TPU210", "iterations"), ("TPU210", "checkpoint")}
    for rule in rules.catalogue().values():
        parts = [part for text in (rule.why, rule.fix) for part in Formatter().parse(text)]
        found = {
            (rule.id, name)
            for (_, name, noun, _), (after, *_) in zip(parts, parts[1:], strict=False)
            if name and not noun and COUNTED.match(after)
        }
        assert found <= always_more, "write {name:noun}"


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
