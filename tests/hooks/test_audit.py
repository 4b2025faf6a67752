"""Every hook on a model is listed: where it is, of what kind, and whose."""

import copy
import functools
from contextlib import ExitStack
from dataclasses import FrozenInstanceError

import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

import nethook
from nethook.hooks.attachment import Attachment
from nethook.hooks.audit import Audit, HookInfo
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.unhookable import RouterPair
from nethook.hooks.wrapped import WrappedFunction
from tests.hooks.common import Spy, net

HERE = __name__


def foreign(*_):
    """A hook of somebody else's."""


def lines(model: nn.Module) -> list[tuple[str, str, str, bool]]:
    return [(info.address, info.kind, info.owner, info.ours) for info in nethook.audit(model)]


# Each kind of hook that torch has: how it is put on a layer, and where and how it is listed.
LOCAL = {
    "forward_pre": nn.Module.register_forward_pre_hook,
    "forward": nn.Module.register_forward_hook,
    "backward_pre": nn.Module.register_full_backward_pre_hook,
    "backward": nn.Module.register_full_backward_hook,
    "state_dict_pre": nn.Module.register_state_dict_pre_hook,
    "state_dict": nn.Module.register_state_dict_post_hook,
    "load_state_dict_pre": nn.Module.register_load_state_dict_pre_hook,
    "load_state_dict_post": nn.Module.register_load_state_dict_post_hook,
}
GLOBAL = {
    "global_forward_pre": module_hooks.register_module_forward_pre_hook,
    "global_forward": module_hooks.register_module_forward_hook,
    "global_backward_pre": module_hooks.register_module_full_backward_pre_hook,
    "global_backward": module_hooks.register_module_full_backward_hook,
    "global_buffer_registration": module_hooks.register_module_buffer_registration_hook,
    "global_module_registration": module_hooks.register_module_module_registration_hook,
    "global_parameter_registration": module_hooks.register_module_parameter_registration_hook,
}


@pytest.mark.parametrize("kind", LOCAL)
def test_a_hook_on_a_module(kind):
    model = net()
    handle = LOCAL[kind](model[2], foreign)
    assert lines(model) == [("2", kind, f"{HERE}.foreign", False)]
    handle.remove()
    assert lines(model) == []


def test_a_backward_hook_of_the_old_kind():
    model = net()
    model[0].register_backward_hook(foreign)
    assert lines(model) == [("0", "backward", f"{HERE}.foreign", False)]


@pytest.mark.parametrize("kind", GLOBAL)
def test_a_hook_on_all_modules(kind):
    model = net()
    handle = GLOBAL[kind](foreign)
    try:
        found = lines(model)
    finally:
        handle.remove()
    assert found == [("*", kind, f"{HERE}.foreign", False)]
    assert lines(model) == []


def test_hooks_on_parameters_and_buffers():
    model = net()
    model[0].weight.register_hook(foreign)
    model[0].bias.register_post_accumulate_grad_hook(foreign)
    model[1].register_buffer("scale", torch.ones(1, requires_grad=True))
    model[1].scale.register_hook(foreign)
    assert lines(model) == [
        ("0.weight", "gradient", f"{HERE}.foreign", False),
        ("0.bias", "accumulated_gradient", f"{HERE}.foreign", False),
        ("1.scale", "gradient", f"{HERE}.foreign", False),
    ]


def test_a_forward_that_was_replaced():
    model = net()
    model[1].forward = foreign
    assert lines(model) == [("1", "forward_replaced", f"{HERE}.foreign", False)]
    del model[1].forward
    assert lines(model) == []


def test_ours_of_every_kind():
    model = net()
    owner = Owner("nethook.watch")
    backward = torch.autograd.backward
    with Attachment(owner) as hooks:
        hooks.forward_pre(model, Spy(owner))
        hooks.forward(model[0], Spy(owner), always_call=True)
        hooks.tensor(model[0].weight, Spy(owner))
        hooks.accumulated(model[0].weight, Spy(owner))
        routers = RouterPair(hooks)
        routers.forward_pre(model[1], Spy(owner))
        routers.forward(model[2], Spy(owner))
        routers.forward(nn.Identity(), Spy(owner))  # of another model: not listed
        hooks.add(WrappedFunction("torch.autograd", "backward", Spy(owner)))
        assert lines(model) == [
            ("", "forward_pre", "nethook.watch", True),
            ("0", "forward", "nethook.watch", True),
            ("0.weight", "gradient", "nethook.watch", True),
            ("0.weight", "accumulated_gradient", "nethook.watch", True),
            ("1", "global_forward_pre", "nethook.watch", True),
            ("2", "global_forward", "nethook.watch", True),
            ("torch.autograd.backward", "function", "nethook.watch", True),
        ]
    assert lines(model) == []
    assert torch.autograd.backward is backward


def test_routed_taps_beside_a_global_hook_of_somebody():
    model = net()
    with ExitStack() as stack:
        stack.callback(module_hooks.register_module_forward_hook(foreign).remove)
        hooks = stack.enter_context(Attachment(Owner("nethook.test")))
        other = net()  # alive, or its tap would not be listed for that reason alone
        spy = Spy(hooks.owner)
        routers = RouterPair(hooks)
        routers.forward(other[0], Spy(hooks.owner))
        routers.forward(model[0], spy)
        assert lines(model) == [
            ("*", "global_forward", f"{HERE}.foreign", False),
            ("0", "global_forward", "nethook.test", True),
        ]
        assert nethook.audit(model)[1].hook is spy


def test_shared_modules_and_wrappers():
    shared = nn.ReLU()
    shared.register_forward_hook(foreign)
    model = nn.DataParallel(nn.ModuleDict({"a": shared, "b": shared}))
    model.register_forward_pre_hook(foreign)
    assert lines(model) == [
        ("a", "forward", f"{HERE}.foreign", False),
        ("", "forward_pre", f"{HERE}.foreign", False),
    ]


class Recorder:
    """Has a hook as a method, is a hook as an object."""

    def method(self, *_):
        """A hook."""

    def __call__(self, *_):
        """A hook."""


def test_whose_a_hook_is():
    model = net()

    def local(*_):
        """A hook."""

    for hook in (
        Recorder().method,
        Recorder(),
        functools.partial(foreign, 1),
        local,
        print,
        nn.ReLU(),
    ):
        model.register_forward_hook(hook)
    assert [info.owner for info in nethook.audit(model)] == [
        f"{HERE}.Recorder.method",
        f"{HERE}.Recorder",
        f"{HERE}.foreign",
        f"{HERE}.test_whose_a_hook_is.<locals>.local",
        "builtins.print",
        "torch.nn.modules.activation.ReLU",
    ]


def test_whose_a_hook_is_that_torch_has_wrapped():
    model = net()
    model.register_load_state_dict_pre_hook(Recorder())
    assert lines(model) == [("", "load_state_dict_pre", f"{HERE}.Recorder", False)]


def test_a_hook_whose_module_is_not_known():
    def nowhere(*_):
        """A hook."""

    nowhere.__module__ = None
    nowhere.__qualname__ = "nowhere"
    model = net()
    model.register_forward_hook(nowhere)
    assert nethook.audit(model)[0].owner == "?.nowhere"


def test_a_copy_of_a_hooked_model_has_no_hooks():
    model = net()
    with nethook.trace(model, "0"):
        theirs = copy.deepcopy(model)
    assert lines(theirs) == []


def test_a_sequence_that_tells_ours_from_others():
    model = net()
    model[0].register_forward_hook(foreign)
    with Attachment(Owner("nethook.test")) as hooks:
        hooks.forward(model[0], Spy(hooks.owner))
        found = nethook.audit(model)
    assert len(found) == 2
    assert [info.ours for info in found] == [False, True]
    assert found.ours == (found[1],)
    assert found.others == (found[0],)
    assert found[-1] is found.hooks[1]
    assert found[:1] == (found.hooks[0],)
    assert found[0].hook is foreign
    assert found[0] in found
    assert isinstance(found[0], HookInfo)


def test_equal_when_nothing_changed():
    model = net()
    model[0].register_forward_hook(foreign)
    before = nethook.audit(model)
    assert nethook.audit(model) == before
    with nethook.trace(model):
        assert nethook.audit(model) != before
    assert nethook.audit(model) == before
    model[0]._forward_hooks.clear()
    model[0].register_forward_hook(lambda *_: None)  # as many, of the same kind, but another
    assert nethook.audit(model) != before


def test_it_prints_as_a_table():
    model = net()
    assert repr(nethook.audit(model)) == "no hooks"
    model.register_forward_hook(foreign)
    with Attachment(Owner("nethook.test")) as hooks:
        hooks.forward(model[0], Spy(hooks.owner))
        text, html = repr(nethook.audit(model)), nethook.audit(model)._repr_html_()
    assert text.splitlines() == [
        "2 hooks, 1 of nethook",
        f"address  kind     owner{' ' * (len(HERE) + 3)}  nethook's".rstrip(),
        f"───────  ───────  {'─' * (len(HERE) + 8)}  ─────────",
        f'""       forward  {HERE}.foreign',
        f"0        forward  {'nethook.test'.ljust(len(HERE) + 8)}  yes",
    ]
    assert html.startswith("<div><b>2 hooks, 1 of nethook</b></div><table>")
    assert html.count("<tr>") == 3
    assert f"{HERE}.foreign" in html


def test_html_is_escaped():
    def hook(*_):
        """A hook."""

    hook.__qualname__ = "<script>"
    model = net()
    model.register_forward_hook(hook)
    assert "<script>" not in nethook.audit(model)._repr_html_()


def test_only_models_can_be_audited():
    with pytest.raises(TypeError, match=r"nn\.Module"):
        nethook.audit("model")


def test_what_was_found_cannot_be_changed():
    model = net()
    model.register_forward_hook(foreign)
    found = nethook.audit(model)
    with pytest.raises(FrozenInstanceError):
        found.hooks = ()
    with pytest.raises(FrozenInstanceError):
        found[0].ours = True
    assert hash(found) == hash(nethook.audit(model))


def test_an_empty_audit():
    assert Audit(()) == nethook.audit(net())
    assert list(Audit(())) == []


def test_hooks_on_the_steps_of_all_optimizers_are_listed():
    def before(*_):
        """Nothing."""

    def after(*_):
        """Nothing."""

    model = nn.Linear(2, 2)
    assert len(nethook.audit(model)) == 0
    handles = [
        register_optimizer_step_pre_hook(before),
        register_optimizer_step_post_hook(after),
    ]
    found = nethook.audit(model)
    for handle in handles:
        handle.remove()
    assert [(each.address, each.kind, each.ours, each.hook) for each in found] == [
        ("*", "global_optimizer_step_pre", False, before),
        ("*", "global_optimizer_step", False, after),
    ]
    assert len(nethook.audit(model)) == 0
