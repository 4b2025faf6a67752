"""Modules that cannot carry a hook of their own are watched through a global one."""

import gc
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.nn.modules import module as module_hooks

import nethook
from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.unhookable import Router, RouterPair, routed_modules, why_not_called
from tests.hooks.common import Spy, all_hooks, net

GLOBALS = [name for name, value in vars(module_hooks).items() if name.startswith("_global_")]


def state_of_torch() -> dict[str, object]:
    """What torch knows about hooks on all modules."""
    values = {name: getattr(module_hooks, name) for name in GLOBALS}
    return {name: dict(value) for name, value in values.items() if isinstance(value, dict)}


@pytest.fixture(autouse=True)
def _nothing_stays():
    before = state_of_torch()
    yield
    assert state_of_torch() == before
    assert not module_hooks._has_any_global_hook()


def encoder(layers: int = 1) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.Sequential(nn.Linear(8, 8), nn.TransformerEncoder(layer, layers)).eval()


def scripted() -> nn.Module:
    class Double(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return self.fc(x) * 2

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "`torch.jit")  # deprecated, from 2.10 on
        made = torch.jit.trace(Double(), torch.ones(1, 4))
    return nn.Sequential(nn.Linear(4, 4), made)


# -- facts -----------------------------------------------------------------------------------------


def test_fact_a_local_hook_turns_the_fused_kernel_off_and_a_global_one_does_not():
    model, x, called = encoder(), torch.ones(1, 3, 8), []
    attention = model[1].layers[0].self_attn

    def run() -> int:
        called.clear()
        with torch.no_grad():
            model(x)
        return len(called)

    every = module_hooks.register_module_forward_hook(
        lambda module, *_: called.append(1) if module is attention else None
    )
    assert run() == 0  # the attention is part of the fused kernel
    local = model[1].layers[0].linear1.register_forward_hook(lambda *_: None)
    assert run() == 1
    local.remove()
    every.remove()


def test_fact_torch_forgets_that_a_global_hook_with_keywords_was_removed():
    handle = module_hooks.register_module_forward_hook(lambda *_: None, with_kwargs=True)
    handle.remove()
    forgotten = module_hooks._global_forward_hooks_with_kwargs
    assert handle.id in forgotten
    assert module_hooks._has_any_global_hook()
    del forgotten[handle.id]


# -- which modules ---------------------------------------------------------------------------------


def test_layers_with_a_fused_kernel_and_all_inside_them_are_routed():
    model = encoder(2)
    routed = routed_modules(Tree(model))
    expected = {id(m) for layer in model[1].layers for m in layer.modules()}
    assert routed == expected
    assert id(model) not in routed
    assert id(model[1]) not in routed
    assert id(model[0]) not in routed


def test_scripts_are_routed():
    model = scripted()
    assert routed_modules(Tree(model)) == {id(m) for m in model[1].modules()}
    assert len(routed_modules(Tree(model))) == 2


def test_nothing_else_is_routed():
    assert routed_modules(Tree(net())) == set()
    assert why_not_called(Tree(net()), "0") is None


def test_the_reason_why_a_module_was_not_called():
    tree = Tree(encoder())
    assert why_not_called(tree, "0") is None
    assert why_not_called(tree, "1") is None
    assert why_not_called(tree, "1.layers.0") is None
    why = why_not_called(tree, "1.layers.0.linear1")
    assert why == (
        "it lies inside the nn.TransformerEncoderLayer '1.layers.0', which runs as one fused "
        "kernel in evaluation without gradient. To see inside, call "
        "torch.backends.mha.set_fastpath_enabled(False) before the forward."
    )
    assert why_not_called(Tree(scripted()), "1.fc") == (
        "it lies inside the ScriptModule '1', whose parts are not called as modules. Trace the "
        "model that was scripted."
    )
    assert why_not_called(Tree(scripted()), "0") is None
    assert why_not_called(Tree(scripted()), "1") is None


def test_the_reason_where_the_model_itself_is_such_a_layer():
    tree = Tree(nn.TransformerEncoderLayer(8, 2, 16))
    assert why_not_called(tree, "") is None
    assert "'', which runs" in why_not_called(tree, "linear1")


def test_the_reason_for_a_layer_with_two_names():
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    tree = Tree(nn.ModuleDict({"a": layer, "b": layer}))
    assert "'a'" in why_not_called(tree, "a.linear1")
    assert "'a'" in why_not_called(tree, "b.linear1")
    assert why_not_called(tree, "b") is None


# -- routers ---------------------------------------------------------------------------------------


def test_each_tap_is_told_the_calls_of_its_module_only():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    with hooks:
        routers = RouterPair(hooks)
        before, after, second = Spy(), Spy(), Spy()
        routers.forward_pre(model[0], before)
        routers.forward(model[2], after)
        routers.forward(model[2], second)
        # One global hook before, one after, however many taps; and torch does not warn of them.
        assert len(hooks) == 3
        x = torch.ones(1, 4)
        y = model(x)
        [(module, args)] = before.seen
        assert module is model[0]
        assert args[0] is x
        [(module, args, kwargs, output)] = after.seen
        assert module is model[2]
        assert kwargs == {}
        assert output is y
        assert len(second.seen) == 1
        assert all_hooks(model) == {}
    model(x)
    assert len(after.seen) == 1


def test_taps_of_one_module_are_called_in_the_order_they_came():
    model, order, hooks = net(), [], Attachment(Owner("nethook.test"))

    class Note(Spy):
        def __call__(self, *_):
            order.append(self.address)

    with hooks:
        routers = RouterPair(hooks)
        for name in "abc":
            routers.forward(model[0], Note(address=name))
        model(torch.ones(1, 4))
    assert order == ["a", "b", "c"]


def test_keyword_arguments_are_told_after_the_forward():
    model, spy, hooks = net(), Spy(), Attachment(Owner("nethook.test"))
    with hooks:
        RouterPair(hooks).forward(model, spy)
        model(input=torch.ones(1, 4))
    [(_, args, kwargs, _)] = spy.seen
    assert args == ()
    assert list(kwargs) == ["input"]


def test_a_tap_cannot_change_the_output():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    x = torch.ones(1, 4)
    expected = model(x)
    with hooks:
        routers = RouterPair(hooks)
        routers.forward(model, Spy(answer="something else"))
        routers.forward_pre(model, Spy(answer="something else"))
        assert torch.equal(model(x), expected)


def test_an_exception_in_the_forward_leaves_nothing():
    model, hooks = net(), Attachment(Owner("nethook.test"))
    with hooks:
        RouterPair(hooks).forward(model, Spy())
        with pytest.raises(RuntimeError, match="shapes"):
            model(torch.ones(1, 3))


def test_global_hooks_of_others_stay_in_place():
    order, model = [], net()
    first = module_hooks.register_module_forward_hook(
        lambda m, a, k, y: order.append("x") if m is model else None, with_kwargs=True
    )

    class Note(Spy):
        def __call__(self, *_):
            order.append("ours")

    hooks = Attachment(Owner("nethook.test"))
    RouterPair(hooks).forward(model, Note())
    second = module_hooks.register_module_forward_hook(
        lambda m, a, k, y: order.append("y") if m is model else None, with_kwargs=True
    )
    model(torch.ones(1, 4))
    assert order == ["x", "ours", "y"]
    hooks.remove()
    hooks.remove()
    order.clear()
    model(torch.ones(1, 4))
    assert order == ["x", "y"]
    options = module_hooks._global_forward_hooks_with_kwargs
    assert list(options) == [first.id, second.id]
    for handle in (first, second):
        handle.remove()
        del options[handle.id]


def test_a_router_holds_no_module_and_knows_a_new_one_of_the_same_number():
    router, spy = Router(Owner("nethook.test")), Spy()
    assert (router.owner.name, router.address) == ("nethook.test", "*")  # all modules
    module = nn.Identity()
    router.add(module, spy)
    router(module, "args")
    assert spy.seen == [(module, "args")]
    spy.seen.clear()
    assert router.taps() == [(module, spy)]
    gone, number = weakref.ref(module), id(module)
    del module
    gc.collect()
    assert gone() is None
    assert router.taps() == []
    other = nn.Identity()
    router._taps[id(other)] = router._taps[number]  # as if it had the number of the one before
    router(other, "args")
    assert spy.seen == []
    router(nn.Identity(), "args")
    assert spy.seen == []


def test_taps_are_taken_off_and_put_back_in_the_same_order():
    router = Router(Owner("nethook.test"))
    modules = [nn.Identity() for _ in range(20)]
    for module in modules:
        router.add(module, Spy())
    before = router.taps()
    put_back = router.take({id(module) for module in modules[3:9]} | {1, 2})
    assert router.taps() == before[:3] + before[9:]
    router(modules[4], "args")
    assert before[4][1].seen == []
    new = nn.Identity()
    spy = Spy()
    router.add(new, spy)
    put_back()
    assert router.taps() == [*before, (new, spy)]
    put_back()
    assert router.taps() == [*before, (new, spy)]


# -- through a trace -------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_the_output_of_a_fused_layer_is_traced_and_is_the_same_to_the_bit():
    model, x = encoder(2), torch.randn(2, 5, 8)
    mask = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    inner = model[1]
    with torch.no_grad():
        expected = inner(x, src_key_padding_mask=mask)
        with nethook.trace(inner, "layers.*", "", inputs=True) as tape:
            y = inner(x, src_key_padding_mask=mask)
    assert torch.equal(y, expected)
    assert tape["layers.1"].calls[0].output is not None
    assert len(tape["layers.0"].calls) == 1


def test_a_script_is_traced():
    model, x = scripted(), torch.ones(1, 4)
    expected = model(x)
    with nethook.trace(model, "1", inputs=True, grads=True) as tape:
        model(x).sum().backward()
    assert torch.equal(tape["1"].output, expected)
    assert torch.equal(tape["1"].input, model[0](x))
    assert torch.equal(tape["1"].grad, torch.ones(1, 4))
