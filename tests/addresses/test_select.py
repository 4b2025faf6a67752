"""`select`: the patterns together, what narrows them, and what comes back."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils import parametrize

import nethook
from nethook import select
from nethook.errors import InputsError, NoSuchSiteError, OptionError
from tests.addresses.networks import Cycle, Shared, Small, Tied

MODEL = Small()
NAMES = [name for name, _ in MODEL.named_modules()]


def test_no_pattern_means_everything_in_model_order():
    assert list(select(MODEL).items()) == list(MODEL.named_modules())
    tensors = {**dict(MODEL.named_parameters()), **dict(MODEL.named_buffers())}
    found = select(MODEL, params=True)
    assert found.keys() == tensors.keys()
    assert all(found[name] is tensors[name] for name in tensors)


@given(st.lists(st.sampled_from(NAMES), min_size=1))
def test_patterns_are_a_union_in_model_order_whatever_their_own(names):
    assert list(select(MODEL, *names)) == [name for name in NAMES if name in names]


@given(st.sets(st.sampled_from(NAMES), max_size=len(NAMES) - 1))
def test_what_is_excluded_is_left_out(names):
    assert list(select(MODEL, exclude=names)) == [name for name in NAMES if name not in names]


def test_the_example_of_the_docstring():
    assert list(select(MODEL, "block*.?", nn.Linear, exclude="block2.**")) == [
        "block1.0", "block1.1", "block1.2", "fc1", "fc2",
    ]  # fmt: skip


def test_exclude_takes_every_kind_of_pattern():
    assert list(select(MODEL, "fc*", exclude=MODEL.fc1)) == ["fc2"]
    assert list(select(MODEL, "block1.*", exclude=[nn.ReLU, "**.0"])) == ["block1.1"]
    assert list(select(MODEL, "fc*", exclude=lambda name, _: name == "fc2")) == ["fc1"]


def test_type_keeps_instances_of_one_class_or_of_several():
    assert list(select(MODEL, type=nn.Linear)) == ["fc1", "fc2"]
    assert list(select(MODEL, "block1.*", type=(nn.ReLU, nn.Conv2d))) == ["block1.0", "block1.2"]
    assert list(select(MODEL, "block1.*", type=nn.ReLU | nn.Conv2d)) == ["block1.0", "block1.2"]


def test_where_keeps_what_it_answers_true_for():
    found = select(MODEL, type=nn.Linear, where=lambda name, module: module.out_features == 2)
    assert found == {"fc2": MODEL.fc2}


def test_where_is_given_the_name_that_is_returned():
    asked: list[str] = []
    found = select(Shared(), "decoder.*", where=lambda name, _: not asked.append(name))
    assert list(found) == asked == ["decoder.0", "decoder.1"]


def test_where_is_asked_only_about_what_is_left():
    asked: list[str] = []
    select(
        MODEL, "fc*", "block1.*",
        exclude="fc1", type=nn.Linear, where=lambda name, _: not asked.append(name),
    )  # fmt: skip
    assert asked == ["fc2"]


def test_an_error_of_where_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        select(MODEL, where=lambda name, module: 1 / 0)


def test_all_of_it_works_for_parameters():
    assert list(select(MODEL, "fc*", params=True, exclude="**.bias")) == [
        "fc1.weight",
        "fc2.weight",
    ]
    assert list(select(MODEL, params=True, exclude=["block*", nn.Linear])) == ["scale", "steps"]
    assert list(select(MODEL, params=True, exclude=nn.Parameter, type=nn.BatchNorm2d)) == [
        "block1.1.running_mean", "block1.1.running_var", "block1.1.num_batches_tracked",
    ]  # fmt: skip
    assert list(select(MODEL, "fc1", params=True, where=lambda _, t: t.ndim == 2)) == ["fc1.weight"]
    assert list(select(MODEL, "*", params=True, type=nn.Linear)) == [
        "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias",
    ]  # fmt: skip


def test_parameters_are_the_very_tensors():
    assert select(MODEL, "fc1.weight", params=True)["fc1.weight"] is MODEL.fc1.weight
    assert select(MODEL, "steps", params=True)["steps"] is MODEL.steps


def test_a_tied_weight_is_of_the_type_of_each_owner():
    model = Tied()
    assert list(select(model, params=True, type=nn.Linear)) == ["embed.weight", "head.bias"]
    assert list(select(model, params=True, type=nn.Embedding)) == ["embed.weight"]


def test_excluding_one_name_of_a_shared_thing_excludes_the_thing():
    assert "head.weight" not in select(Tied(), "head", params=True, exclude="embed.weight")
    assert list(select(Shared(), "encoder.*", exclude="extra.inner")) == ["encoder.1"]


def test_a_parametrised_weight_is_found_as_in_the_bare_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    parametrize.register_parametrization(model[0], "weight", nn.Tanh())
    original = model[0].parametrizations.weight.original
    for wanted in ("0.weight", "**.weight", "0.parametrizations.weight.original"):
        (found,) = select(model, wanted, params=True).values()
        assert found is original
    for found in (
        select(model, "0", params=True),
        select(model, nn.Linear, params=True),
        select(model, params=True, type=nn.Linear),
    ):
        assert found.keys() == {"0.bias", "0.weight"}
    assert list(select(model, nn.Linear)) == ["0"]


def test_a_cycle_of_modules_does_not_hang():
    model = Cycle()
    assert list(select(model, "**.fc")) == ["one.fc"]
    assert list(select(model, "two.one.fc")) == ["two.one.fc"]
    assert list(select(model, "two.one", params=True)) == ["two.one.fc.weight", "two.one.fc.bias"]


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_a_scripted_model_is_selected_from():
    model = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert list(select(model, "*")) == ["0", "1"]
    assert list(select(model, "0", params=True)) == ["0.weight", "0.bias"]


def test_a_lazy_model_is_selected_from_before_it_has_shapes():
    model = nn.Sequential(nn.LazyLinear(2), nn.ReLU())
    assert list(select(model, "0", params=True)) == ["0.weight", "0.bias"]
    assert list(select(model, nn.Linear)) == ["0"]


def test_what_comes_back_is_a_new_dict():
    found = select(MODEL, "fc1")
    found.clear()
    assert list(select(MODEL, "fc1")) == ["fc1"]


def test_a_model_without_parameters_has_none_to_select():
    assert select(nn.ReLU(), params=True) == {}
    with pytest.raises(NoSuchSiteError) as caught:
        select(nn.ReLU(), "weight", params=True)
    assert str(caught.value) == (
        "no parameter matches 'weight'. The model has no parameters below its root."
    )


@pytest.mark.parametrize("params", [False, True])
def test_nothing_left_is_an_error_that_says_what_left_nothing(params):
    count = 4 if params else 2
    with pytest.raises(NoSuchSiteError) as caught:
        select(MODEL, "fc*", exclude="fc*", params=params)
    assert str(caught.value) == f"{count} matched, and none of them passes exclude=."
    with pytest.raises(NoSuchSiteError) as caught:
        select(MODEL, "fc*", type=nn.ReLU, where=lambda *_: True, params=params)
    assert str(caught.value) == (
        f"{count} matched, and none of them passes "
        "type=<class 'torch.nn.modules.activation.ReLU'> and where=."
    )


@pytest.mark.parametrize("params", [False, True])
def test_a_pattern_to_exclude_must_mean_something_too(params):
    with pytest.raises(NoSuchSiteError, match="'fc9'"):
        select(MODEL, "fc*", exclude="fc9", params=params)


@pytest.mark.parametrize("wrong", ["Linear", [nn.Linear], (nn.Linear, "ReLU"), nn.Linear(1, 1)])
def test_a_type_that_is_no_class_is_refused(wrong):
    with pytest.raises(OptionError) as caught:
        select(MODEL, type=wrong)
    assert str(caught.value) == (
        f"`type` must be a class or a tuple of classes; got {wrong!r}. Write type=nn.Conv2d."
    )


def test_the_error_of_a_wrong_name_is_a_lookup_error_and_a_key_error():
    for standard in (LookupError, KeyError, nethook.errors.NethookError):
        with pytest.raises(standard):
            select(MODEL, "fc9")


def test_what_is_no_model_is_refused():
    with pytest.raises(InputsError, match=r"`model` must be an nn.Module; got str"):
        select("resnet18", "fc1")


@pytest.mark.parametrize("params", [False, True])
def test_a_list_that_came_out_empty_matches_nothing(params):
    with pytest.raises(
        NoSuchSiteError, match="A list of patterns must hold at least one; got an empty"
    ):
        select(MODEL, [], params=params)
    assert select(MODEL, exclude=[], params=params) == select(MODEL, params=params)
