"""The hooks of an edit, called by hand: what they return, and when they do nothing."""

import pytest
import torch
from torch import nn

from nethook import Inputs, edits
from nethook.addresses.paths import parse_path
from nethook.editing.changes import (
    Arguments,
    ChangeCall,
    ChangeInput,
    ChangeOutput,
    ChangeOutputGradient,
    ChangeParameterGradient,
    ClipTogether,
    changed_gradient,
    is_among,
)
from nethook.editing.entries import Entry
from nethook.errors import EditError
from nethook.hooks.hook import Owner

LAYER = nn.Identity()


@pytest.fixture
def owner():
    return Owner("test")


def entry(function, quantity="outputs", path=""):
    return Entry(quantity, "fc1", parse_path(path) if path else (), function)


def test_an_output_goes_through_the_entries_in_their_order(owner):
    change = ChangeOutput(owner, "fc1", [entry(edits.add(1)), entry(lambda value: value * 2)])
    assert change(LAYER, (), torch.ones(2)).tolist() == [4, 4]
    assert change.calls == 1


def test_nothing_changed_is_none(owner):
    change = ChangeOutput(owner, "fc1", [entry(lambda _: None), entry(lambda value: value)])
    assert change(LAYER, (), torch.ones(2)) is None


def test_a_hook_whose_scope_has_ended_does_nothing(owner):
    one = [entry(edits.zero())]
    hooks = [kind(owner, "fc1", one) for kind in (ChangeOutput, ChangeInput, ChangeCall)]
    owner.alive = False
    told = [torch.ones(1)], [{"x": 1}], [{"x": 1}]
    assert [hook(LAYER, (), *args) for hook, args in zip(hooks, told, strict=True)] == [None] * 3
    assert one[0].seen == 0


@pytest.mark.parametrize(
    ("args", "kwargs", "path", "expected"),
    [
        ((1,), {}, "", ((10,), {})),
        ((), {"x": 1}, "", ((), {"x": 10})),
        ((1, 2), {"x": 3}, "[1]", ((1, 20), {"x": 3})),
        ((1, 2), {"x": 3}, '["x"]', ((1, 2), {"x": 30})),
        ((None, torch.ones(1)), {"x": 3}, "", ((None, torch.full((1,), 10.0)), {"x": 3})),
    ],
)
def test_an_argument_is_found_by_path_or_because_it_is_the_only_one(
    args, kwargs, path, expected, owner
):
    change = ChangeInput(owner, "fc1", [entry(lambda value: value * 10, "inputs", path)])
    assert change(LAYER, args, kwargs) == expected


def test_several_arguments_need_a_path():
    arguments = Arguments((1, 2), {"x": 3})
    with pytest.raises(EditError) as caught:
        arguments.edited(entry(lambda value: value, "inputs"), "fc1", 0)
    assert str(caught.value) == (
        "the edit at inputs['fc1'] needs one argument, and 'fc1' was called with [0], [1], "
        "[\"x\"]. Name one: {'fc1': {'[0]': ...}}."
    )


def test_a_callback_before_a_call_may_return_one_value_or_all(owner):
    one = ChangeCall(owner, "fc1", [entry(lambda given: given[0] + 1, "calls")])
    assert one(LAYER, (1,), {}) == ((2,), {})
    named = ChangeCall(owner, "fc1", [entry(lambda given: given["x"] + 1, "calls")])
    assert named(LAYER, (), {"x": 1}) == ((), {"x": 2})
    everything = ChangeCall(owner, "fc1", [entry(lambda given: Inputs((5,), {"y": 6}), "calls")])
    assert everything(LAYER, (1, 2), {}) == ((5,), {"y": 6})
    with pytest.raises(EditError, match=r"called with 2 arguments. Return nethook.inputs"):
        one(LAYER, (1, 2), {})


@pytest.mark.parametrize("kind", ["leaf", "view", "input", "own"])
def test_a_gradient_is_changed_for_this_output_alone(owner, kind):
    leaf = torch.ones(2, requires_grad=True)
    given = leaf * 1
    output = {"leaf": leaf, "view": given[:], "input": given, "own": given * 1}[kind]
    change = ChangeOutputGradient(owner, "fc1", [entry(edits.scale(10.0), "grads")])
    new = change(LAYER, (given,), {}, output)
    assert (new is None) == (kind == "own")  # a copy flows on in place of the others
    ((output if new is None else new).sum() + given.sum()).backward()
    assert leaf.grad.tolist() == [11, 11]


def test_a_gradient_edit_never_writes_to_the_gradient_itself():
    grad = torch.ones(2)
    new = changed_gradient(entry(lambda g: g.mul_(3), "grads"), grad, "fc1", 0)
    assert new.tolist() == [3, 3]
    assert grad.tolist() == [1, 1]
    assert changed_gradient(entry(lambda g: None, "grads"), grad, "fc1", 0) is grad
    with pytest.raises(EditError, match=r"returned int for the gradient at 'fc1'"):
        changed_gradient(entry(lambda g: 3, "grads"), grad, "fc1", 0)
    with pytest.raises(EditError, match=r"shape \(1,\) .* must have shape \(2,\)"):
        changed_gradient(entry(lambda g: g[:1], "grads"), grad, "fc1", 0)


def test_each_backward_pass_is_a_call_of_a_parameter(owner):
    change = ChangeParameterGradient(owner, "weight", [entry(edits.zero(calls=1), "param_grads")])
    passes = [change(torch.ones(1)) for _ in range(3)]
    assert [None if grad is None else grad.tolist() for grad in passes] == [None, [0.0], None]


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_clipping_together_is_that_of_torch(norm_type):
    def parameters():
        torch.manual_seed(0)
        made = [torch.nn.Parameter(torch.randn(n)) for n in (2, 5)]
        for parameter in made:
            parameter.grad = torch.randn_like(parameter) * 10
        return [*made, torch.nn.Parameter(torch.ones(1))]  # the last has no gradient

    ours, theirs = parameters(), parameters()
    joint = entry(edits.clip_norm(1.0, norm_type, joint=True), "param_grads")
    ClipTogether(joint, ours)._clip()
    torch.nn.utils.clip_grad_norm_(theirs, 1.0, norm_type)
    for one, other in zip(ours[:2], theirs[:2], strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    assert ours[2].grad is None
    assert joint.fired == 1


def test_a_tensor_is_among_others_by_identity():
    one, twin = torch.ones(1), torch.ones(1)
    assert is_among(one, [twin, one])
    assert not is_among(one, [twin])
