"""Calls of torch's loss functions without gradient."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy
from torch.overrides import TorchFunctionMode

import nethook
from nethook.hooks.hook import Owner
from nethook.hooks.process.loss_functions import LOSSES, LossFunctions


class Seen:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *call: Any) -> None:
        self.calls.append(call)

    @property
    def kinds(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture
def seen():
    seen = Seen()
    handle = LossFunctions(Owner("test"), seen)
    handle.put_on()
    seen.handle = handle
    yield seen
    handle.remove()


def test_by_attribute_by_name_and_as_a_module(seen):
    x, y = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    with torch.no_grad():
        results = [F.cross_entropy(x, y), cross_entropy(x, y), nn.CrossEntropyLoss()(x, y)]
        binary_cross_entropy_with_logits(x, torch.ones(4, 3))
    assert seen.kinds == ["cross_entropy"] * 3 + ["bce_with_logits"]
    for call, result in zip(seen.calls, results, strict=False):
        assert call[3] is result
        assert call[1][0] is x


@pytest.mark.parametrize("kind", sorted(set(LOSSES.values())))
def test_every_loss_module_of_torch_is_seen(kind, seen):
    x, y = torch.rand(4, 3), torch.rand(4, 3)
    ones, classes = torch.ones(4), torch.tensor([0, 1, 2, 0])
    calls = {
        "cross_entropy": lambda: nn.CrossEntropyLoss()(x, classes),
        "nll": lambda: nn.NLLLoss()(x, classes),
        "mse": lambda: nn.MSELoss()(x, y),
        "l1": lambda: nn.L1Loss()(x, y),
        "smooth_l1": lambda: nn.SmoothL1Loss()(x, y),
        "huber": lambda: nn.HuberLoss()(x, y),
        "bce": lambda: nn.BCELoss()(x, y),
        "bce_with_logits": lambda: nn.BCEWithLogitsLoss()(x, y),
        "multi_margin": lambda: nn.MultiMarginLoss()(x, classes),
        "multilabel_margin": lambda: nn.MultiLabelMarginLoss()(x, torch.full((4, 3), -1)),
        "soft_margin": lambda: nn.SoftMarginLoss()(x, torch.ones(4, 3)),
        "kl_div": lambda: nn.KLDivLoss(reduction="batchmean")(x.log_softmax(1), y.softmax(1)),
        "ctc": lambda: nn.CTCLoss()(
            torch.randn(5, 1, 3).log_softmax(2),
            torch.tensor([[1, 2]]),
            torch.tensor([5]),
            torch.tensor([2]),
        ),
        "poisson_nll": lambda: nn.PoissonNLLLoss()(x, y),
        "cosine_embedding": lambda: nn.CosineEmbeddingLoss()(x, y, ones),
        "hinge_embedding": lambda: nn.HingeEmbeddingLoss()(x, torch.ones(4, 3)),
        "margin_ranking": lambda: nn.MarginRankingLoss()(x, y, torch.ones(4, 3)),
        "triplet_margin": lambda: nn.TripletMarginLoss()(x, y, y + 1),
    }
    with torch.no_grad():
        calls[kind]()
    assert seen.kinds == [kind]


def test_every_place_is_the_one_that_functional_calls():
    source = inspect.getsource(F)
    for holder, name in LOSSES:
        assert f"{holder}.{name}(" in source


def test_with_gradient_nothing_is_told(seen):
    x = torch.randn(4, 3, requires_grad=True)
    F.mse_loss(x, torch.zeros(4, 3)).backward()
    assert seen.calls == []
    assert x.grad is not None


def test_a_mode_of_the_user_sees_what_it_would_see_without(seen):
    class Counting(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.names: list[str] = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    names = []
    for _ in range(2):
        with torch.no_grad(), Counting() as mode:
            F.mse_loss(torch.ones(2), torch.zeros(2))
        names.append(mode.names)
        seen.handle.remove()
    assert names[0] == names[1]


def test_off_means_torch_is_as_it_was():
    originals = _functions()
    handle = LossFunctions(Owner("test"), Seen())
    handle.put_on()
    assert all(_functions()[place] is not originals[place] for place in LOSSES)
    handle.remove()
    handle.remove()
    assert all(_functions()[place] is originals[place] for place in LOSSES)
    handle.put_on()
    handle.put_on()
    with torch.no_grad():
        F.l1_loss(torch.ones(2), torch.zeros(2))
    handle.remove()
    assert all(_functions()[place] is originals[place] for place in LOSSES)


def _functions():
    holders = {"torch": torch, "torch._C._nn": torch._C._nn}
    return {place: getattr(holders[place[0]], place[1]) for place in LOSSES}


def test_on_again_each_call_is_told_once(seen):
    for _ in range(3):
        seen.handle.remove()
        seen.handle.put_on()
    with torch.no_grad():
        F.l1_loss(torch.ones(2), torch.zeros(2))
    assert seen.kinds == ["l1"]


def test_an_audit_lists_them(seen):
    listed = [info.address for info in nethook.audit(nn.Linear(1, 1))]
    assert "torch._C._nn.cross_entropy_loss" in listed
    seen.handle.remove()
    assert len(nethook.audit(nn.Linear(1, 1))) == 0


def test_when_the_owner_is_gone_nothing_is_told():
    owner, seen = Owner("test"), Seen()
    handle = LossFunctions(owner, seen)
    handle.put_on()
    owner.alive = False
    with torch.no_grad():
        F.l1_loss(torch.ones(2), torch.zeros(2))
    handle.remove()
    assert seen.calls == []


def test_torch_still_knows_its_functions_afterwards(seen):
    assert torch.kl_div is not None
    seen.handle.remove()
    listed = torch.overrides.get_overridable_functions()[torch]
    assert torch.kl_div in listed
    assert copy.copy(F.cross_entropy) in torch.overrides.get_testing_overrides()


def test_a_compiled_loss_is_the_same_graph(seen):
    x, y = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    graphs = []

    def keep(graph, _):
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph.forward

    def loss(x):
        return F.cross_entropy(x, y) + F.kl_div(x.log_softmax(1), x.softmax(1), reduction="sum")

    with torch.no_grad():
        compiled = torch.compile(loss, fullgraph=True, backend=keep)
        with_them = compiled(x)
        seen.handle.remove()
        torch.compiler.reset()
        without = torch.compile(loss, fullgraph=True, backend=keep)(x)
    assert torch.equal(with_them, without)
    assert [str(names).split(" at ")[0] for names in graphs[0]] == [
        str(names).split(" at ")[0] for names in graphs[1]
    ]
