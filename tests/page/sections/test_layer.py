"""One layer at one step, and the list of layers."""

from __future__ import annotations

from nethook.page.sections.layer import chosen_series, layer, layers, with_step
from tests.figures.made import LAYERS
from tests.page.shown import figures_of, opened, reading, text_of, where


def test_the_list_has_every_layer_in_order() -> None:
    shown = text_of(layers(opened(), reading()))
    places = [shown.index(f'"{address}"') for address, *_ in LAYERS]
    assert places == sorted(places)
    assert "dead-units" in shown


def test_a_layer_has_its_numbers_and_figures() -> None:
    shown = layer(opened(), reading(), where("?at=conv1&step=17"))
    assert shown.step == 17
    assert {"courses", "histogram", "bands"} <= set(figures_of(shown))
    assert "net.py:12" in text_of(shown)


def test_a_step_after_the_last_is_the_last() -> None:
    assert layer(opened(), reading(), where("?at=conv1&step=100000")).step == 119
    assert layer(opened(), reading(), where("?at=conv1")).step == 119


def test_an_address_that_is_not_there_leads_to_the_list() -> None:
    listed = layers(opened(), reading()).title
    assert layer(opened(), reading(), where("?at=nowhere")).title == listed
    assert layer(opened(), reading(), where()).title == listed


def test_outputs_are_shown_unless_another_series_is_asked_for() -> None:
    assert chosen_series(reading(), "conv1", "") == ("conv1", "outputs")
    assert chosen_series(reading(), "conv1", "grads") == ("conv1", "grads")
    assert chosen_series(reading(), "conv1", "params:conv1.weight") == ("conv1.weight", "params")
    assert chosen_series(reading(), "conv1", "speed") == ("conv1", "outputs")
    assert chosen_series(reading(), "conv1", "params:nowhere") == ("conv1", "outputs")


def test_a_figure_that_is_not_there_stays_so() -> None:
    assert with_step(None) is None
