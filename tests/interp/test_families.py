"""A model that a test left changed is found, and built anew for the next test."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch import nn

from tests.interp import families

CHANGES: dict[str, Callable[[nn.Module], object]] = {
    "type": nn.Module.double,
    "mode": nn.Module.train,
    "gradients": lambda model: model.requires_grad_(False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_model_is_built_anew(change: str) -> None:
    model, _ = families.built("encoder")
    assert families.built("encoder")[0] is model
    assert families.changed() == []
    CHANGES[change](model)
    assert families.changed() == ["encoder"]
    again, _ = families.built("encoder")
    assert again is not model
    assert families.changed() == []
