"""The modules of a model as a tree."""

from __future__ import annotations

from nethook.page.sections.model import model
from tests.figures.made import LAYERS
from tests.page.shown import opened, reading, text_of, where


def test_every_module_is_there_with_its_type() -> None:
    shown = text_of(model(opened(), reading(), where()))
    for address, kind, *_ in LAYERS:
        assert address.rpartition(".")[2] in shown
        assert kind in shown


def test_what_is_never_called_says_so() -> None:
    assert "never called" in text_of(model(opened(), reading(), where()))


def test_layers_with_findings_are_marked() -> None:
    assert "error" in text_of(model(opened(), reading(), where()))
