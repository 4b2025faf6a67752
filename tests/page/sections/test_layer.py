"""One layer at one step."""

from __future__ import annotations

from nethook.page.sections.layer import (
    chosen_series,
    folded_layer,
    latest_numbers,
    layer,
    layer_facts,
    numbers_at,
    step_of,
    with_step,
)
from nethook.text.numbers import number
from tests.page.shown import figures_of, html_of, in_report, reading, subject, text_of, where


def test_a_layer_has_its_numbers_and_figures() -> None:
    section = layer(subject(), where("?at=conv1&step=17"), "conv1")
    made = figures_of(section)
    assert {"courses", "histogram", "bands"} <= set(made)
    assert made["units"] is None  # of a convolution none is recorded as dead
    shown = text_of(section)
    assert "net.py:12" in shown
    series = reading().run.series("conv1", "outputs")
    assert number(float(series["mean"][17]), 4) in shown
    assert number(float(series["std"][17]), 4) in shown


def test_the_ways_to_the_layers_around_keep_the_step() -> None:
    shown = html_of(layer(subject(), where("?at=relu1&step=50"), "relu1"))
    assert 'id="layer-before" href="/run/' in shown
    assert "layer?at=block.conv2&amp;step=50" in shown
    assert 'id="layer-before"' not in html_of(layer(subject(), where("?at=conv1"), "conv1"))


def test_a_step_after_the_last_is_the_last() -> None:
    assert step_of(reading(), where("?step=100000")) == (119, 100000)
    assert step_of(reading(), where()) == (119, None)
    rows = numbers_at(reading(), "conv1", 119)
    assert rows[0][0] == "outputs"
    assert len({len(row) for row in rows}) == 1


def test_outputs_are_shown_unless_another_series_is_asked_for() -> None:
    assert chosen_series(reading(), "conv1", "") == ("conv1", "outputs")
    assert chosen_series(reading(), "conv1", "grads") == ("conv1", "grads")
    assert chosen_series(reading(), "conv1", "params:conv1.weight") == ("conv1.weight", "params")
    assert chosen_series(reading(), "conv1", "speed") == ("conv1", "outputs")
    assert chosen_series(reading(), "conv1", "params:nowhere") == ("conv1", "outputs")


def test_a_figure_that_is_not_there_stays_so() -> None:
    assert with_step(None) is None


def test_in_a_report_a_layer_is_unfolded_and_without_columns_it_has_no_figures() -> None:
    section = folded_layer(in_report(), 3, "block.relu2", 64)
    made = figures_of(section)
    assert {"layer-3-courses", "layer-3-bands", "layer-3-units"} <= set(made)
    shown = html_of(section, live=False, drawn=made)
    assert '<details class="layer" id="layer-3" data-name="block.relu2">' in shown
    assert "dead-units" in shown
    assert not folded_layer(in_report(), 3, "block.relu2", 0).figures


def test_the_latest_numbers_of_a_layer() -> None:
    text = latest_numbers(reading(), "block.relu2")
    assert text.startswith("std ")
    assert " · grad " in text
    assert " · dead " in text
    assert "dead" not in latest_numbers(reading(), "fc1")
    assert latest_numbers(reading(), "none") == ""


def test_facts_name_parameters_and_the_line_of_the_source() -> None:
    text = str(layer_facts(reading(), "fc1"))
    for word in ("weight", "bias", "float32", "cpu", "net.py:12"):
        assert word in text
    assert layer_facts(reading(), "none") == []
