"""What is exported is the model without nethook's hooks, and they are on again afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.audit import audit
from nethook.hooks.exporting import export_without_hooks
from nethook.hooks.hook import Owner
from nethook.tracing.scope import trace


@pytest.fixture(autouse=True)
def hooks() -> Iterator[Attachment]:
    with Attachment(Owner("test")) as hooks, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
        export_without_hooks(hooks)
        yield hooks


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 3), nn.ReLU()).eval()


X = torch.linspace(-1, 1, 6).reshape(2, 3)


def test_a_hooked_model_is_exported_in_every_way(model: nn.Module) -> None:
    bare = str(torch.jit.script(model).graph), str(torch.export.export(model, (X,)).graph)
    with trace(model, grads=True):
        hooked = audit(model)
        assert str(torch.jit.script(model).graph) == bare[0]
        assert str(torch.export.export(model, (X,)).graph) == bare[1]
        assert torch.equal(torch.jit.trace(model, X)(X), model(X))
        assert torch.equal(torch.jit.trace_module(model, {"forward": X})(X), model(X))
        assert torch.equal(torch.jit.script(obj=model)(X), model(X))
        assert audit(model) == hooked


def test_functions_are_scripted_as_ever() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert torch.equal(torch.jit.script(double)(X), X * 2)


def test_the_functions_come_back(hooks: Attachment) -> None:
    wrapped = torch.jit.script
    hooks.remove()
    assert torch.jit.script is not wrapped
    assert torch.jit.script.__module__ == "torch.jit._script"


def test_an_error_leaves_the_hooks_on(model: nn.Module) -> None:
    with trace(model):
        hooked = audit(model)
        with pytest.raises(RuntimeError):
            torch.jit.trace(model, torch.ones(1, 7))
        assert audit(model) == hooked
