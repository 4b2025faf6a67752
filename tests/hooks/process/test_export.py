"""What is exported is the model without nethook's hooks, and they are on again afterwards."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from torch import nn

from nethook.errors import ScopeError
from nethook.hooks.attachment import Attachment
from nethook.hooks.audit import audit
from nethook.hooks.hook import Owner
from nethook.hooks.process.export import export_without_hooks
from nethook.tracing.scope import trace


@pytest.fixture(autouse=True)
def hooks() -> Iterator[Attachment]:
    with Attachment(Owner("test")) as hooks, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit")  # deprecated, from 2.10 on
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


@pytest.fixture
def graphed(hooks: Attachment, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torch's function, which needs a GPU, gives back what it is called with."""
    hooks.remove()
    monkeypatch.setattr(
        torch.cuda, "make_graphed_callables", lambda *args, **kwargs: (args, kwargs)
    )
    with Attachment(Owner("nethook.test")) as others:
        export_without_hooks(others)
        yield


@pytest.mark.usefixtures("graphed")
def test_a_hooked_model_is_not_made_a_cuda_graph(model: nn.Module) -> None:
    other = nn.ReLU()
    other.register_forward_hook(lambda *_: None)  # of somebody else's
    graph = torch.cuda.make_graphed_callables
    assert graph(other, (X,), num_warmup_iters=1) == ((other, (X,)), {"num_warmup_iters": 1})
    with trace(model, "0"):
        model[0].register_forward_hook(lambda *_: None)
        assert graph((other, torch.relu), (X,)) == (((other, torch.relu), (X,)), {})
        for given in (model, (other, model), (torch.relu, model)):
            with pytest.raises(
                ScopeError, match=r"hooked by nethook\.test, and a CUDA graph would"
            ):
                graph(given, (X,))
        with pytest.raises(ScopeError, match="CUDA graph"):
            graph(callables=model, sample_args=(X,))
    assert graph(model, (X,)) == ((model, (X,)), {})


def test_models_may_be_given_by_name(model: nn.Module) -> None:
    bare = str(torch.export.export(model, (X,)).graph)
    with trace(model, grads=True):
        assert str(torch.export.export(mod=model, args=(X,)).graph) == bare
        traced = torch.jit.trace(func=model, example_inputs=X)
        assert torch.equal(traced(X), model(X))
        traced = torch.jit.trace_module(mod=model, inputs={"forward": X})
        assert torch.equal(traced(X), model(X))


def test_functions_are_traced_with_all_they_are_given() -> None:
    traced = torch.jit.trace(lambda x: x * 2, example_inputs=X, check_trace=False)
    assert torch.equal(traced(X), X * 2)


def test_names_are_looked_up_where_it_is_called() -> None:
    class Pair(NamedTuple):
        a: torch.Tensor
        b: torch.Tensor

    def both(x: torch.Tensor) -> Pair:
        return Pair(x, x)

    assert torch.equal(torch.jit.script(both)(X)[1], X)


def test_a_warning_of_torch_is_the_same_with_and_without(
    hooks: Attachment, model: nn.Module
) -> None:
    def warned() -> list[tuple[type[Warning], str, int]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.jit.script(model)
            torch.jit.trace(model, X)
        return [(each.category, each.filename, each.lineno) for each in caught]

    with_hooks = warned()
    hooks.remove()
    assert with_hooks == warned()


def test_an_attachment_that_is_gone_wraps_nothing(hooks: Attachment) -> None:
    hooks.remove()
    before = torch.jit.script
    others = Attachment(Owner("nethook.test"))
    export_without_hooks(others)
    assert torch.jit.script is not before
    del others
    gc.collect()
    assert torch.jit.script is before
