"""InstrumentedModel: both generations, told apart by their arguments."""

import copy
import gc

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook import InstrumentedModel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.last = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        return self.last(self.relu(self.conv(x)))


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def x():
    return torch.randn(3, 1, 5, 5, generator=torch.Generator().manual_seed(1))


# -- the wrapper ----------------------------------------------------------------------------------


def test_it_is_a_module_that_delegates(model, x):
    inst = InstrumentedModel(model)
    assert inst.model is model
    assert torch.equal(inst(x), model(x))
    assert inst.layer_names() == ["", "conv", "relu", "last"]
    assert set(inst.state_dict()) == {f"model.{name}" for name in model.state_dict()}
    inst.eval()
    assert not model.training


def test_the_forward_of_a_layer_is_never_replaced(model, x):
    with InstrumentedModel(model) as inst:
        inst.retain_layer("conv")
        inst.edit_layer("conv", 0.5)
        inst(x)
        assert "forward" not in vars(model.conv)
    assert list(nethook.audit(model)) == []


def test_arguments_by_name_are_passed_on():
    class Named(nn.Module):
        def forward(self, x, *, scale):
            return x * scale

    assert torch.equal(InstrumentedModel(Named())(torch.ones(2), scale=3), torch.full((2,), 3.0))


# -- retaining ------------------------------------------------------------------------------------


def test_what_is_retained_is_the_output_before_the_edit(model, x):
    with InstrumentedModel(model) as inst:
        inst.retain_layer("conv")
        assert inst.retained_layer("conv") is None
        inst.edit_layer("conv", rule=lambda x: x * 0)
        y = inst(x)
        assert torch.equal(
            inst.retained_layer(), model.conv._conv_forward(x, model.conv.weight, model.conv.bias)
        )
        assert torch.equal(y, model.last(torch.zeros(3, 4, 5, 5)))


def test_an_in_place_operation_does_not_reach_what_was_retained(model, x):
    """Old: the values after the in-place ReLU."""
    for detach in (True, False):
        with InstrumentedModel(model) as inst:
            inst.retain_layer("conv", detach=detach)
            inst(x)
            kept = inst.retained_layer("conv")
        assert (kept < 0).any()
        assert kept.requires_grad is not detach


def test_a_layer_may_be_called_by_another_name(model, x):
    with InstrumentedModel(model) as inst:
        inst.retain_layers([("conv", "first"), "last"])
        inst(x)
        features = inst.retained_features()
        assert list(features) == ["first", "last"]
        assert inst.retained_layer() is inst.retained_layer("first")
        with pytest.raises(KeyError):
            inst.retained_layer("conv")


def test_features_are_a_copy_and_can_be_cleared(model, x):
    with InstrumentedModel(model) as inst:
        inst.retain_layers(["conv", "last"])
        inst(x)
        features = inst.retained_features(clear=True)
        assert features["conv"].shape == (3, 4, 5, 5)
        assert inst.retained_features() == {"conv": None, "last": None}
        inst(x)
        assert inst.retained_layer("last", clear=True) is not None
        assert inst.retained_layer("last") is None


def test_the_first_word_on_detaching_counts_until_retaining_is_stopped(model, x):
    with InstrumentedModel(model) as inst:
        inst.retain_layer("conv", detach=False)
        inst.retain_layer("conv")
        inst(x)
        assert inst.retained_layer().requires_grad
        inst.stop_retaining_layers(["conv"])
        inst.retain_layer("conv")
        inst(x)
        assert not inst.retained_layer().requires_grad


def test_retaining_can_be_stopped(model, x):
    with InstrumentedModel(model) as inst:
        inst.retain_layers(["conv", "last"])
        inst.stop_retaining_layers(["conv"])
        inst(x)
        assert list(inst.retained_features()) == ["last"]


def test_outputs_may_be_nested():
    """Old: tensors only."""
    inst = InstrumentedModel(nn.Sequential(nn.LSTM(3, 2)))
    inst.retain_layer("0")
    inst(torch.ones(4, 3))
    output, (h, _) = inst.retained_layer()
    assert output.shape == (4, 2)
    assert not h.requires_grad


def test_an_object_is_retained_as_it_was():
    class Out:
        pass

    class Holds(nn.Module):
        def forward(self, x):
            out = Out()
            out.value = x * 2
            return out

    inst = InstrumentedModel(nn.Sequential(Holds()))
    inst.retain_layer("0")
    with torch.no_grad():
        out = inst(torch.ones(2))
        out.value.zero_()
    assert inst.retained_layer().value.tolist() == [2, 2]


# -- editing: the first generation ----------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda inst, a, r: inst.edit_layer("conv", a, r),
        lambda inst, a, r: inst.edit_layer("conv", ablation=a, replacement=r),
        lambda inst, a, r: inst.edit_layer("conv", a, replacement=r),
    ],
    ids=["by place", "by name", "mixed"],
)
def test_ablation_and_replacement(model, x, call):
    mask = torch.tensor([1.0, 0.0, 0.5, 0.0])
    plain = model.conv(x)
    wide = mask.view(1, 4, 1, 1)
    expected = model.last(torch.relu(plain * (1 - wide) + 7 * wide))
    with InstrumentedModel(model) as inst:
        call(inst, mask, 7)
        assert torch.allclose(inst(x), expected)


@pytest.mark.parametrize(
    "value", [0.5, [0.5] * 4, np.full(4, 0.5), torch.full((4, 5, 5), 0.5), np.float64(0.5)]
)
def test_values_of_any_kind_are_matched(model, x, value):
    with InstrumentedModel(model) as inst:
        inst.edit_layer("conv", ablation=value)
        assert torch.allclose(inst(x), model_with(model, x, lambda y: y * 0.5), atol=1e-6)


def model_with(model, x, change):
    return model.last(
        torch.relu(change(model.conv._conv_forward(x, model.conv.weight, model.conv.bias)))
    )


def test_a_replacement_alone_replaces_all(model, x):
    """Old: nothing at all happened in the second generation."""
    with InstrumentedModel(model) as inst:
        inst.edit_layer("conv", replacement=2.0)
        assert torch.allclose(inst(x), model.last(torch.full((3, 4, 5, 5), 2.0)))


def test_gradients_reach_the_ablation(model, x):
    ablation = torch.zeros(4, requires_grad=True)
    with InstrumentedModel(model) as inst:
        inst.edit_layer("conv", ablation=ablation, replacement=1.0)
        inst(x).sum().backward()
    assert ablation.grad.abs().sum() > 0


# -- editing: the second generation ---------------------------------------------------------------


def test_a_rule_is_called_with_what_it_takes(model, x):
    seen = {}

    def rule(x, imodel, name, strength):
        seen.update(imodel=imodel, name=name, strength=strength)
        return x * strength

    with InstrumentedModel(model) as inst:
        inst.edit_layer(("conv", "aka"), rule, strength=3)
        assert torch.allclose(inst(x), model_with(model, x, lambda y: y * 3), atol=1e-5)
        assert seen == {"imodel": inst, "name": "aka", "strength": 3}
        inst.edit_layer(("conv", "aka"), rule, strength=0)
        assert torch.allclose(inst(x), model_with(model, x, lambda y: y * 0))
        inst.edit_layer(("conv", "aka"), strength=5)  # no rule: the blend, and nothing to blend
        assert torch.allclose(inst(x), model_with(model, x, lambda y: y))
        inst.edit_layer(("conv", "aka"), rule)  # arguments for rules add up
        assert torch.allclose(inst(x), model_with(model, x, lambda y: y * 5), atol=1e-5)
        inst.edit_layer(("conv", "aka"), rule=torch.neg)
        assert torch.allclose(inst(x), model_with(model, x, torch.neg))


def test_a_rule_that_returns_none_changes_nothing(model, x):
    plain = model(x)
    with InstrumentedModel(model) as inst:
        inst.edit_layer("conv", lambda x: None)
        assert torch.equal(inst(x), plain)


def test_an_ablation_given_twice_is_an_error(model):
    with pytest.raises(TypeError, match="given twice: by position and by name"):
        InstrumentedModel(model).edit_layer("conv", 1.0, ablation=0.5)


def test_edits_are_removed_one_by_one_or_all(model, x):
    plain = model(x)
    with InstrumentedModel(model) as inst:
        inst.edit_layer("conv", 1.0)
        inst.edit_layer(("last", "end"), 1.0)
        inst.remove_edits(("last", "end"))
        assert torch.allclose(inst(x), model.last(torch.zeros(3, 4, 5, 5)))
        inst.remove_edits("conv")
        assert torch.equal(inst(x), plain)
        inst.edit_layer("conv", 1.0)
        inst.remove_edits()
        assert torch.equal(inst(x), plain)


# -- hooks ----------------------------------------------------------------------------------------


def test_what_cannot_be_hooked(model):
    inst = InstrumentedModel(model)
    with pytest.raises(ValueError, match=r"^Layer fc not found in model$"):
        inst.retain_layers(["conv", "fc"])
    inst.add_hooks([("conv", "a")])
    inst.add_hooks([("conv", "a")])
    with pytest.raises(ValueError, match=r"^Layer a already hooked$"):
        inst.add_hooks([("last", "a")])
    with pytest.raises(ValueError, match=r"^Layer conv already hooked$"):
        inst.add_hooks(["conv"])


def test_one_wrong_name_leaves_no_hook(model):
    inst = InstrumentedModel(model)
    with pytest.raises(ValueError, match="fc"):
        inst.retain_layers(["conv", "fc"])
    assert list(nethook.audit(model)) == []
    assert inst.retained_features() == {}


def test_close_after_retaining(model, x):
    """Old, first generation: KeyError, and the other layers stayed hooked."""
    inst = InstrumentedModel(model)
    inst.retain_layers(["conv", "last"])
    inst(x)
    inst.close()
    inst.close()
    assert list(nethook.audit(model)) == []
    inst.retain_layer("conv")  # and it can be used again
    inst(x)
    assert inst.retained_layer().shape == (3, 4, 5, 5)
    inst.close()


def test_close_with_other_names(model):
    """Old, both generations: AssertionError."""
    with InstrumentedModel(model) as inst:
        inst.retain_layer(("conv", "first"))
        inst.edit_layer(("last", "end"), 0.5)
    assert list(nethook.audit(model)) == []


def test_two_wrappers_closed_in_any_order(model, x):
    """Old: closing the first one first left the forward of the second behind for ever."""
    plain = model(x)
    one, two = InstrumentedModel(model), InstrumentedModel(model)
    one.edit_layer("conv", 1.0)
    two.edit_layer("conv", 1.0)
    one.close()
    two.close()
    assert torch.equal(model(x), plain)
    assert list(nethook.audit(model)) == []


def test_a_wrapper_that_nobody_kept_goes_on(model, x):
    InstrumentedModel(model).edit_layer("conv", 1.0)
    gc.collect()
    assert torch.allclose(model(x), model.last(torch.zeros(3, 4, 5, 5)))


def test_a_copy_of_the_model_is_not_edited(model, x):
    plain = model(x)
    with InstrumentedModel(model) as inst:
        inst.edit_layer("conv", 1.0)
        assert torch.equal(copy.deepcopy(model)(x), plain)


def test_layers_that_are_run_in_part_are_retained_and_edited():
    sequential = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3), nn.Tanh())
    x = torch.randn(2, 3)
    with InstrumentedModel(sequential) as inst:
        inst.retain_layer("0")
        inst.edit_layer("1", 1.0)
        assert torch.equal(inst(x, last_layer="1"), torch.zeros(2, 3))
        assert inst.retained_layer("0").shape == (2, 3)


def test_a_fused_encoder_layer_is_retained_without_changing_its_bits():
    torch.manual_seed(0)
    model = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)).eval()
    x = torch.randn(2, 5, 8)
    with torch.no_grad(), InstrumentedModel(model) as inst:
        plain = model(x)
        inst.retain_layer("0")
        assert torch.equal(inst(x), plain)
        assert torch.equal(inst.retained_layer("0"), plain)
        inst.edit_layer("0", 1.0)
        assert torch.equal(inst(x), plain * 0)
        assert torch.allclose(inst.retained_layer("0"), plain, atol=1e-5)


# -- what follows from hooks in place of a replaced forward (docs/classic.md names it) -------------


def test_a_layer_run_through_its_forward_is_not_seen(x):
    class Direct(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, x):
            return self.inner.forward(x)

    with InstrumentedModel(Direct()) as inst:
        inst.retain_layer("inner")
        inst.edit_layer("inner", 1.0)
        assert torch.equal(inst(x), x)
        assert inst.retained_layer() is None


def test_hooks_registered_before_see_the_unedited_value_and_later_ones_the_edited(x):
    layer, seen = nn.Identity(), {}
    model = nn.Sequential(layer)
    layer.register_forward_hook(lambda _m, _i, output: seen.update(before=output))
    with InstrumentedModel(model) as inst:
        inst.edit_layer("0", 1.0)
        layer.register_forward_hook(lambda _m, _i, output: seen.update(later=output))
        inst(x)
    assert torch.equal(seen["before"], x)
    assert torch.equal(seen["later"], x * 0)
