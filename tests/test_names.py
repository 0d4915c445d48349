"""The names of classes."""

from lab_utils.common import names


def test_of_many_names_that_look_alike_some_are_told_and_the_others_counted():
    """Within a moment, also of the 21,841 classes of the whole ImageNet."""
    many = [f"class {number}" for number in range(21_000)]
    assert not list(names.notes(many))
    told = list(names.notes([*many, *(f"Class {number}" for number in range(8)), "a\u200b"]))
    assert told[0] == "the classes 'Class 0' and 'class 0' differ in upper and lower case alone"
    assert len(told) == 6 and told[-1] == "so do 4 classes more, or hold such signs"


def test_what_cannot_be_seen_is_left_out_but_for_joiners():
    joined = "\u0645\u06cc\u200c\u062e\u06a9"  # Persian for carnation
    assert names.visible(f"\ufeffro\u00ad{joined}\u200b") == f"ro{joined}"
