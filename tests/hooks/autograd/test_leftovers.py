"""No gradient hook of a scope stays on tensors that live on in the model."""

import gc
import types
import weakref

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NoGradientError
from nethook.hooks.autograd.leftovers import kept_tensors


def in_buffer(module, value):
    module.register_buffer("kept", value)
    return lambda: module.kept


def in_attribute(module, value):
    module.kept = value
    return lambda: module.kept


def in_list(module, value):
    module.kept = [{"a": (value,)}]
    return lambda: module.kept[0]["a"][0]


def in_object(module, value):
    module.kept = types.SimpleNamespace(layers=[types.SimpleNamespace(keys=value)])
    return lambda: module.kept.layers[0].keys


def in_closure_of_child(module, value):
    module.fc.kept = {"a": value}
    return lambda: module.fc.kept["a"]


PLACES = [in_buffer, in_attribute, in_list, in_object, in_closure_of_child]
everywhere = pytest.mark.parametrize("place", PLACES)


class Keeps(nn.Module):
    """Keeps the output of a layer, with its graph."""

    def __init__(self, place, view=False):
        super().__init__()
        torch.manual_seed(0)
        self.fc = nn.Linear(2, 2)
        self.out = nn.Linear(2, 1)
        self.place = place
        self.shape = (2, 1, 2) if view else (2, 2)
        self.read = None

    def forward(self, x):
        y = self.fc(x.view(self.shape))
        if self.read is None:
            self.read = self.place(self, y)
        return self.out(y)


def hooks_on(tensor):
    behind = tensor._base
    return len(tensor._backward_hooks or ()) + (
        len(behind._backward_hooks or ()) if behind is not None else 0
    )


X = torch.ones(2, 2)
each_shape = pytest.mark.parametrize("view", [False, True], ids=["tensor", "view"])


@everywhere
@each_shape
def test_after_a_backward_nothing_is_left_and_nothing_more_is_recorded(place, view):
    model = Keeps(place, view)
    with nethook.trace(model, "fc", grads=True) as tape:
        model(X).sum().backward(retain_graph=True)
    assert hooks_on(model.read()) == 0
    assert not nethook.audit(model)
    expected = tape["fc"].grad.clone()
    (model.read() * 5).sum().backward()  # a later graph, built on what the model kept
    assert len(tape["fc"].grads) == 1
    assert torch.equal(tape["fc"].grad, expected)


@everywhere
@each_shape
def test_a_backward_after_the_scope_is_recorded_once(place, view):
    model = Keeps(place, view)
    with nethook.trace(model, "fc", grads=True) as tape:
        loss = model(X).sum()
    assert hooks_on(model.read()) == 0
    assert not nethook.audit(model)
    (expected,) = torch.autograd.grad(loss, model.read(), retain_graph=True)
    loss.backward(retain_graph=True)
    assert torch.equal(tape["fc"].grad, expected)
    (model.read() * 5).sum().backward()
    assert torch.equal(tape["fc"].grad, expected)


def test_what_the_model_does_not_keep_hears_every_pass_through_its_graph():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    with nethook.trace(model, "0", grads=True) as tape:
        out = model(X)
        out.sum().backward(retain_graph=True)
    (out * 3).sum().backward()
    first, second = tape["0"].grads
    assert torch.equal(first * 3, second)


@everywhere
def test_a_tensor_written_since_gives_the_gradient_of_what_it_was(place):
    model = Keeps(place)
    with nethook.trace(model, "fc", grads=True) as tape:
        model(X)
        model.read().mul_(2)
    model.read().sum().backward()
    assert tape["fc"].grad.tolist() == [[2, 2], [2, 2]]
    assert hooks_on(model.read()) == 0


def test_a_tape_that_is_gone_is_not_asked_for():
    model = Keeps(in_buffer)
    with nethook.trace(model, "fc", grads=True) as tape:
        loss = model(X).sum()
    del tape
    gc.collect()
    loss.backward()
    assert hooks_on(model.kept) == 0


def test_the_graph_dies_with_what_the_model_keeps():
    model = Keeps(in_attribute)
    with nethook.trace(model, "fc", grads=True) as tape:
        model(X)
    gone = weakref.ref(model.kept)
    model.kept = None
    gc.collect()
    assert gone() is None
    assert tape["fc"].output.shape == (2, 2)


@everywhere
def test_edits_leave_nothing(place):
    model = Keeps(place)
    with nethook.edit(model, grads={"fc": lambda grad: grad * 2}):
        model(X).sum().backward(retain_graph=True)
    assert hooks_on(model.read()) == 0
    assert not nethook.audit(model)


def test_callbacks_leave_nothing():
    model = Keeps(in_buffer)
    callbacks, seen = nethook.Callbacks(model), []
    callbacks.on_grad("fc")(lambda grad: seen.append(grad))
    with callbacks:
        model(X).sum().backward(retain_graph=True)
    (model.kept * 2).sum().backward()
    assert len(seen) == 1
    assert not nethook.audit(model)


@everywhere
def test_a_watch_leaves_nothing(place, tmp_path):
    model = Keeps(place)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with nethook.watch(model, optimizer, tmp_path / "run.db"):
        model(X).sum().backward()
        optimizer.step()
    assert hooks_on(model.read()) == 0
    assert not nethook.audit(model)


def test_operations_leave_nothing():
    class Adds(nn.Module):
        def forward(self, x):
            self.kept = x + 1
            return self.kept * 2

    model, x = Adds(), torch.ones(2, requires_grad=True)
    with nethook.trace(model, "/add", grads=True) as tape:
        model(x).sum().backward(retain_graph=True)
    (model.kept * 3).sum().backward()
    assert tape["/add"].grad.tolist() == [2, 2]
    assert hooks_on(model.kept) == 0


def test_a_leaf_of_the_models_own_carries_no_hook_after_the_scope():
    class Gives(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("start", torch.ones(2, requires_grad=True))

        def forward(self):
            return self.start

    model = Gives()
    with nethook.trace(model, "", grads=True) as tape:
        model()
        assert nethook.audit(model).ours
    assert not nethook.audit(model)
    (model() * 2).sum().backward()
    with pytest.raises(NoGradientError):
        tape[""].grad


def test_hooks_of_others_and_of_other_scopes_stay():
    model = Keeps(in_buffer)
    seen = []
    with nethook.trace(model, "fc", grads=True) as outer:
        with nethook.trace(model, "fc", grads=True) as inner:
            loss = model(X).sum()
            model.kept.register_hook(lambda grad: seen.append(grad))
        loss.backward()
    assert len(seen) == 1
    assert torch.equal(outer["fc"].grad, inner["fc"].grad)
    assert hooks_on(model.kept) == 1


def test_finding_what_a_model_keeps_runs_no_code_and_leaves_modules_out():
    class Touchy:
        def __init__(self):
            object.__setattr__(self, "value", torch.ones(1))

        def __getattribute__(self, name):
            raise AssertionError(f"{name} was read")

    model = nn.Sequential(nn.Linear(1, 1))
    model.touchy = [Touchy()]
    model.shape = (1, 2)
    model.__dict__["hidden"] = other = nn.BatchNorm1d(1)
    found = list(kept_tensors(model))
    assert [tensor.tolist() for tensor in found] == [[1.0]]
    assert other.running_mean.tolist() == [0.0]


def test_a_model_that_holds_the_world_is_searched_no_farther_than_the_limit(monkeypatch):
    monkeypatch.setattr("nethook.hooks.autograd.leftovers.FARTHEST", 50)
    model = nn.Module()
    model.world = [[torch.ones(1)] for _ in range(200)]
    assert 0 < len(list(kept_tensors(model))) < 60
