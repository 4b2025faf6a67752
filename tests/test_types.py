"""`nethook.types`: the classes of what nethook returns."""

from __future__ import annotations

import typing

import pytest
import torch
from torch import nn

import nethook
from nethook import types


def test_the_types_that_people_annotate_with() -> None:
    # Ruff's order: names in capitals come first.
    assert types.__all__ == sorted(types.__all__, key=lambda name: (not name.isupper(), name))
    for name in types.__all__:
        assert isinstance(getattr(types, name), type)
        assert getattr(types, name).__name__ == name


def test_what_is_returned_is_of_these_types() -> None:
    model, x = nn.Linear(3, 2), torch.ones(1, 3)
    with nethook.trace(model) as tape:
        model(x)
    assert type(tape) is types.Tape
    assert type(tape[""]) is types.Record
    assert type(nethook.sites(model, x)) is types.SiteMap
    assert type(nethook.inputs(x)) is types.Inputs
    assert type(nethook.init.plan(model, x)) is types.Plan


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("open_run", "Run"),
        ("replay", "Replay"),
        ("checkup", "Checkup"),
        ("sites", "SiteMap"),
        ("inputs", "Inputs"),
    ],
)
def test_functions_say_so_in_their_annotations(function: str, name: str) -> None:
    hints = typing.get_type_hints(getattr(nethook, function))
    assert hints["return"] is getattr(types, name)


def test_those_that_are_public_are_the_same_classes() -> None:
    assert types.Finding is nethook.Finding
    assert types.Inputs is nethook.Inputs


@pytest.mark.parametrize("name", types.__all__)
def test_each_has_a_docstring(name: str) -> None:
    assert (getattr(types, name).__doc__ or "").strip()
