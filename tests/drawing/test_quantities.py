"""What can be drawn: every quantity explains itself."""

from __future__ import annotations

from nethook.drawing.quantities import QUANTITIES


def test_every_quantity_has_a_name_of_its_own():
    assert all(name == quantity.name for name, quantity in QUANTITIES.items())
    titles = [quantity.title for quantity in QUANTITIES.values()]
    assert len(set(titles)) == len(titles) == len(QUANTITIES)


def test_each_is_explained_in_one_sentence():
    for quantity in QUANTITIES.values():
        assert quantity.explain[0].isupper()
        assert quantity.explain.endswith(".")
        assert quantity.explain.count(". ") == 0
        assert quantity.unit


def test_every_scale_is_one_that_figures_draw():
    assert {quantity.scale for quantity in QUANTITIES.values()} == {"log", "share", "signed"}


def test_shares_are_of_something():
    for quantity in QUANTITIES.values():
        assert quantity.unit.startswith("of the ") == (quantity.scale == "share")
