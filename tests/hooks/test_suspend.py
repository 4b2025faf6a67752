"""A model without nethook's hooks for a block; then everything stands where it stood."""

import pytest
import torch
from torch import nn

import nethook
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.unhookable import RouterPair
from tests.hooks.common import Spy, all_hooks, net


class Note(Spy):
    """Writes its name into a list that all share."""

    def __init__(self, owner: Owner, name: str, order: list[str]) -> None:
        super().__init__(owner, name)
        self.order = order

    def __call__(self, *given):
        self.order.append(self.address)


class Scene:
    """A layer with hooks of ours and of others, mixed."""

    def __init__(self) -> None:
        self.model = nn.Identity()
        self.order: list[str] = []
        self.hooks = Attachment(Owner("nethook.test"))

    def ours(self, name: str, **options) -> None:
        self.hooks.forward(self.model, Note(self.hooks.owner, name, self.order), **options)

    def theirs(self, name: str, **options):
        return self.model.register_forward_hook(lambda *_: self.order.append(name), **options)

    def called(self) -> str:
        self.order.clear()
        self.model(1)
        return "".join(self.order)


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    for name in "xAyBz":
        made.ours(name) if name.isupper() else made.theirs(name)
    return made


def test_ours_are_off_inside_and_everything_is_in_place_after(scene):
    before = nethook.audit(scene.model)
    assert scene.called() == "xAyBz"
    with nethook.suspended(scene.model):
        assert scene.called() == "xyz"
        assert nethook.audit(scene.model).ours == ()
    assert scene.called() == "xAyBz"
    assert nethook.audit(scene.model) == before


def test_everything_comes_back_after_an_exception(scene):
    before = nethook.audit(scene.model)
    error = KeyError("mine")
    with pytest.raises(KeyError) as raised, nethook.suspended(scene.model):
        raise error
    assert raised.value is error
    assert nethook.audit(scene.model) == before


def test_blocks_nest(scene):
    with nethook.suspended(scene.model):
        with nethook.suspended(scene.model):
            assert scene.called() == "xyz"
        assert scene.called() == "xyz"
    assert scene.called() == "xAyBz"


def test_a_scope_that_is_left_inside_does_not_come_back(scene):
    other = Attachment(Owner("nethook.other"))
    other.forward(scene.model, Note(other.owner, "C", scene.order), with_kwargs=True)
    with nethook.suspended(scene.model):
        scene.hooks.remove()
    assert scene.called() == "xyzC"
    other.remove()
    assert scene.called() == "xyz"
    assert scene.model._forward_hooks_with_kwargs == {}


def test_a_scope_that_was_left_takes_its_options_along(scene):
    scene.ours("D", with_kwargs=True, always_call=True)
    with nethook.suspended(scene.model):
        scene.hooks.remove()
    assert scene.model._forward_hooks_with_kwargs == {}
    assert scene.model._forward_hooks_always_called == {}


def test_hooks_that_others_add_inside_stay_behind(scene):
    with nethook.suspended(scene.model):
        scene.theirs("w")
        assert scene.called() == "xyzw"
    assert scene.called() == "xAyBzw"


def test_hooks_that_others_put_first_inside_stay_first():
    scene = Scene()
    for name in "Axy":
        scene.ours(name) if name.isupper() else scene.theirs(name)
    with nethook.suspended(scene.model):
        scene.theirs("w", prepend=True)
        assert scene.called() == "wxy"
    assert scene.called() == "wAxy"


def test_hooks_that_others_take_off_inside_stay_off():
    scene = Scene()
    handles = {}
    for name in "xAyBz":
        if name.isupper():
            scene.ours(name)
        else:
            handles[name] = scene.theirs(name)
    with nethook.suspended(scene.model):
        handles["y"].remove()
    assert scene.called() == "xABz"
    with nethook.suspended(scene.model):
        handles["x"].remove()
        handles["z"].remove()
        scene.theirs("w")
    assert scene.called() == "ABw"


def test_handles_of_others_still_work_afterwards():
    scene = Scene()
    scene.ours("A")
    handle = scene.theirs("x", with_kwargs=True, always_call=True)
    with nethook.suspended(scene.model):
        pass
    assert scene.called() == "Ax"
    handle.remove()
    assert scene.called() == "A"
    scene.hooks.remove()
    assert all_hooks(scene.model) == {}


def test_hooks_of_ours_that_are_put_on_inside_are_not_concerned(scene):
    with nethook.suspended(scene.model):
        inner = Attachment(Owner("nethook.inner"))
        inner.forward(scene.model, Note(inner.owner, "N", scene.order))
        assert scene.called() == "xyzN"
    assert scene.called() == "xAyBzN"
    inner.remove()
    assert scene.called() == "xAyBz"


def test_options_come_back():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    kwargs, always, before = Spy(hooks.owner), Spy(hooks.owner), Spy(hooks.owner)
    hooks.forward(model, kwargs, with_kwargs=True)
    hooks.forward(model, always, always_call=True)
    hooks.forward_pre(model, before)
    model.register_forward_hook(lambda *_: None, with_kwargs=True)
    flags = model._forward_hooks_with_kwargs.copy()
    with nethook.suspended(model):
        assert list(model._forward_hooks_with_kwargs) == list(flags)[1:]
        assert model._forward_hooks_always_called == {}
        assert model._forward_pre_hooks_with_kwargs == {}
    assert dict(model._forward_hooks_with_kwargs) == dict(flags)
    model(input=torch.ones(1, 4))
    with pytest.raises(RuntimeError, match="shapes"):
        model(torch.ones(1, 3))
    assert [len(given) for given in kwargs.seen] == [4]
    assert [given[-1] is None for given in always.seen] == [False, True]
    assert [len(given) for given in before.seen] == [3, 3]


def test_hooks_of_parameters():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    gradient, sums, order = Spy(hooks.owner), Spy(hooks.owner), []
    weight = model[0].weight
    weight.register_hook(lambda _: order.append("theirs"))
    hooks.tensor(weight, gradient)
    hooks.accumulated(weight, sums)
    with nethook.suspended(model):
        model(torch.ones(1, 4)).sum().backward()
        assert gradient.seen == sums.seen == []
        assert order == ["theirs"]
    model(torch.ones(1, 4)).sum().backward()
    assert len(gradient.seen) == len(sums.seen) == 1
    assert order == ["theirs"] * 2


def test_routed_taps():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    elsewhere = nn.Identity()
    with hooks:
        routers = RouterPair(hooks)
        here, there, before = Spy(), Spy(), Spy()
        routers.forward_pre(model[1], before)
        for module in reversed(model):
            routers.forward(module, here)
        routers.forward(elsewhere, there)
        audit = nethook.audit(model)
        with nethook.suspended(model):
            model(torch.ones(1, 4))
            elsewhere(1)
            assert here.seen == before.seen == []
            assert len(there.seen) == 1
            assert len(nethook.audit(model)) == 0
        assert nethook.audit(model) == audit
        model(torch.ones(1, 4))
        assert (len(here.seen), len(before.seen)) == (3, 1)


def test_routed_taps_of_a_scope_that_is_left_inside_do_not_come_back():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    routers = RouterPair(hooks)
    spy = Spy()
    routers.forward(model, spy)
    router = routers._after
    with nethook.suspended(model):
        hooks.remove()
    assert router.taps() == []


def test_a_trace_does_not_see_what_runs_inside():
    model, x = net(), torch.ones(1, 4)
    everything = {"inputs": True, "grads": True, "input_grads": True, "param_grads": True}
    with nethook.trace(model, **everything) as tape:
        model(x).sum().backward()
        with nethook.suspended(model):
            model(x * 2).sum().backward()
        model(x * 3).sum().backward()
    assert tape.forwards == 2
    assert [call.input[0, 0].item() for call in tape["0"].calls] == [1.0, 3.0]
    assert len(tape.params["0.weight"].grads) == 2
    assert all_hooks(model) == {}


def test_hooks_on_wrappers_are_taken_off_too():
    model = nn.DataParallel(net())
    hooks = Attachment(Owner("nethook.test"))
    hooks.forward(model, Spy(hooks.owner))
    with nethook.suspended(model):
        assert len(nethook.audit(model)) == 0
    assert len(nethook.audit(model)) == 1


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_a_model_can_be_scripted_inside():
    model = net()
    with nethook.trace(model):
        with nethook.suspended(model):
            scripted = torch.jit.script(model)
        assert len(nethook.audit(model).ours) > 0
    assert torch.equal(scripted(torch.ones(1, 4)), model(torch.ones(1, 4)))
