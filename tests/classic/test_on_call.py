"""Hooks that hand calls to a function: what it is told, and how long they stay."""

import gc

import pytest
import torch
from torch import nn

import nethook
from nethook.addresses.tree import Tree
from nethook.classic.on_call import OnCall, put_on
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner


class Scale(nn.Module):
    def forward(self, x, *, by=2):
        return x * by


@pytest.fixture
def hooks():
    with Attachment(Owner("test")) as attachment:
        yield attachment


def fused():
    torch.manual_seed(0)
    return nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)).eval()


def test_the_functions_are_told_arguments_and_output(hooks):
    model, told = nn.Sequential(Scale()), []
    put_on(
        hooks,
        Tree(model),
        model[0],
        "0",
        before=lambda *given: told.append(given),
        after=lambda *given: told.append(given),
    )
    x = torch.ones(2)
    y = model[0](x, by=3)
    assert told[0] == ((x,), {"by": 3})
    args, kwargs, output = told[1]
    assert args[0] is x
    assert kwargs == {"by": 3}
    assert output is y


def test_what_comes_after_may_return_another_output(hooks):
    model = nn.Sequential(Scale())
    put_on(hooks, Tree(model), model[0], "0", after=lambda *_: torch.zeros(1), changes=True)
    assert model(torch.ones(2)).tolist() == [0]


def test_a_fused_layer_is_watched_from_outside_unless_it_is_to_be_changed(hooks):
    model, told = fused(), []
    layer, x = model[0], torch.randn(2, 5, 8)
    with torch.no_grad():
        expected = model(x)
        before = lambda *given: told.append(given)  # noqa: E731
        put_on(hooks, Tree(model), layer, "0", before=before, after=before)
        assert torch.equal(model(x), expected)
    assert [len(given) for given in told] == [1, 3]  # no keyword arguments before the call
    assert not layer._forward_hooks
    put_on(hooks, Tree(model), layer, "0", after=lambda *_: None, changes=True)
    assert len(layer._forward_hooks) == 1


def test_a_hook_stays_as_long_as_its_function_holds_the_attachment():
    class Counter:
        def __init__(self, layer):
            self.calls = 0
            self.hooks = Attachment(Owner("test"))
            self.hooks.forward(layer, OnCall(self.hooks.owner, "", self.count))

        def count(self, args, output):
            self.calls += 1

    layer = nn.Identity()
    Counter(layer)  # nobody keeps it
    gc.collect()
    (hook,) = layer._forward_hooks.values()
    layer(1)
    assert hook._function.__self__.calls == 1
    hook._function.__self__.hooks.remove()
    assert list(nethook.audit(layer)) == []
