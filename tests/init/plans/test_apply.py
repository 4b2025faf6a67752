"""Plans carried out: seeded, in any type, all or nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.errors import InitError
from nethook.init import apply_, plan
from tests.init.networks import ResNet, mlp, rms, transformer

X = torch.randn(64, 64)


def weights(model):
    return [each.detach().clone() for each in model.parameters()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def test_a_seed_gives_the_same_weights():
    model = mlp(4, nn.ReLU)
    found = plan(model, X)
    before = torch.get_rng_state()
    assert apply_(model, found, 7) is model
    assert torch.equal(torch.get_rng_state(), before)
    first = weights(model)
    apply_(model, found, torch.Generator().manual_seed(7))
    assert same(weights(model), first)
    apply_(model, found, 8)
    assert not same(weights(model), first)
    torch.manual_seed(7)
    apply_(model, found)
    third = weights(model)
    torch.manual_seed(7)
    apply_(model, found)
    assert same(weights(model), third)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_type_does_not_change_what_is_drawn(dtype):
    wide, narrow = mlp(3, nn.ReLU), mlp(3, nn.ReLU).to(dtype)
    found = plan(wide, X)
    apply_(wide, found, 1)
    apply_(narrow, found, 1)
    for a, b in zip(wide.parameters(), narrow.parameters(), strict=True):
        assert b.dtype == dtype
        if dtype == torch.float64:
            continue  # drawn with more digits
        assert torch.equal(a.to(dtype), b)


def test_what_was_planned_is_what_is_there():
    model = ResNet(2, norm=False)
    found = plan(model, torch.randn(4, 3, 8, 8))
    apply_(model, found, 0)
    named = dict(model.named_parameters())
    for row in found:
        assert rms(named[row.parameter]) == pytest.approx(row.std, rel=0.1, abs=1e-9)
        assert named[row.parameter].requires_grad
        assert named[row.parameter].grad is None


def test_frozen_parameters_stay():
    model = mlp(3, nn.ReLU)
    found = plan(model, X)
    model[0].weight.requires_grad_(False)  # after the plan was made
    before = model[0].weight.clone()
    apply_(model, found, 0)
    assert torch.equal(model[0].weight, before)
    assert not model[0].weight.requires_grad


def test_cloned_layers_differ_afterwards():
    model, x = transformer(3), torch.randn(2, 5, 32)
    assert torch.equal(model.layers[0].linear1.weight, model.layers[1].linear1.weight)
    found = plan(model, x)
    assert any("copies of one another" in each for each in found.warnings)
    apply_(model, found, 0)
    assert not torch.equal(model.layers[0].linear1.weight, model.layers[1].linear1.weight)
    assert not plan(model, x).warnings


def test_an_optimizer_keeps_its_parameters():
    model = mlp(2, nn.ReLU)
    ids = [id(each) for each in model.parameters()]
    apply_(model, plan(model, X), 0)
    assert [id(each) for each in model.parameters()] == ids
    assert model[0].weight._version > 0


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda model: model.to("meta"), "to_empty"),
        (lambda model: model.append(nn.Linear(3, 3)) and model.__delitem__(0), "is not there"),
        (lambda model: model.__setitem__(2, nn.Linear(5, 5)), r"has shape \(5, 5\)"),
    ],
    ids=["meta", "missing", "shape"],
)
def test_all_or_nothing(change, text):
    model = mlp(3, nn.ReLU)
    found = plan(model, X)
    change(model)
    before = [] if model[0].__class__ is nn.ReLU else weights(model)
    with pytest.raises(InitError, match=text):
        apply_(model, found, 0)
    if before and not before[0].is_meta:
        assert same(weights(model), before)


def test_a_sharded_model_is_refused_with_the_fix(tmp_path):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import distribute_tensor

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    try:
        mesh = init_device_mesh("cpu", (1,))
        model = mlp(2, nn.ReLU, 8)
        found = plan(model, torch.randn(4, 8))
        model[0].weight = nn.Parameter(distribute_tensor(model[0].weight.detach(), mesh))
        before = model[2].weight.clone()
        with pytest.raises(InitError, match="before it is sharded"):
            apply_(model, found, 0)
        assert torch.equal(model[2].weight, before)
    finally:
        dist.destroy_process_group()
