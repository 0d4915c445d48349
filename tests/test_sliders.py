"""The sliders: a table where no script runs, all answers in the page, and answers that the compiler gives."""

import json
import re

import pytest

from lab_utils.notebook import sliders
from lab_utils.teach import make_sliders

NAMES = ("topology",)


@pytest.mark.parametrize("name", NAMES)
def test_the_table_holds_what_the_slider_shows_and_nothing_is_fetched(name):
    slider = sliders.slider(name)
    page = slider._repr_html_()
    without_script = re.sub(r"<script>.*</script>", "", page, flags=re.S)
    for place, figures in slider.rows.items():
        row = "".join(f"<td>{each:,}</td>" for each in figures.values())
        assert f"<td>{place}</td>{row}" in without_script
        assert all(f"{each:,}" in str(slider) for each in figures.values())
    data = json.loads(re.search(r"var data = (\{.*?\}), table", page)[1])
    assert [row[0] for row in data["rows"]] == list(slider.rows)
    assert not re.search(r"https?:|src=|@import|fetch\(", page)


def test_places_are_those_that_the_compiler_was_asked_at():
    slider = sliders.slider("topology")
    assert tuple(slider.rows) == make_sliders.TOPOLOGIES and slider.axis == "topology"


def test_an_unknown_slider_names_the_others():
    with pytest.raises(ValueError, match="there are topology"):
        sliders.slider("speed")


@pytest.mark.slow
def test_a_stored_answer_is_the_compilers():
    assert make_sliders.row("v5e:2x2") == sliders.slider("topology").rows["v5e:2x2"]
