"""Hooks of other people, of every kind torch has. Nobody else may touch, reorder or remove them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.utils.hooks import RemovableHandle

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class Hooked(nn.Module):
    """Three layers and a log that its hooks write to."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.act = nn.Tanh()
        self.last = nn.Linear(4, 2)
        self.log: list[Any] = []

    def note(self, *what: object) -> None:
        self.log.append([t.detach().clone() if isinstance(t, Tensor) else t for t in what])

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.act(input=self.first(x)))


class WithoutKeywords(Hooked):
    """The same, but legacy hooks need positional inputs."""

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.act(self.first(x)))


def hooked(
    name: str,
    mechanism: str,
    install: Callable[[Any], object],
    call: Callable[[nn.Module, Given], object] | None = None,
    model: type[Hooked] = WithoutKeywords,
    **options: Any,
) -> Exhibit:
    def build() -> nn.Module:
        made = model()
        install(made)
        return made

    if call is not None:
        options["call"] = call
    return Exhibit(name, mechanism, build, **options)


def _forward_pre(model: Hooked) -> None:
    model.act.register_forward_pre_hook(lambda m, args: model.note("plain", *args))
    model.act.register_forward_pre_hook(
        lambda m, args, kwargs: model.note("kw", *kwargs), with_kwargs=True
    )
    model.act.register_forward_pre_hook(lambda m, args: model.note("prepended"), prepend=True)


def _forward_pre_replacing(model: Hooked) -> None:
    model.last.register_forward_pre_hook(lambda m, args: args[0] * 2)
    model.act.register_forward_pre_hook(
        lambda m, args, kwargs: (args, {"input": kwargs["input"] + 1}), with_kwargs=True
    )


def _forward(model: Hooked) -> None:
    model.act.register_forward_hook(lambda m, args, out: model.note("plain", out))
    model.act.register_forward_hook(
        lambda m, args, kwargs, out: model.note("kw", *kwargs), with_kwargs=True
    )
    model.act.register_forward_hook(lambda m, args, out: model.note("prepended"), prepend=True)


def _forward_replacing(model: Hooked) -> None:
    model.first.register_forward_hook(lambda m, args, out: out * 2)
    model.last.register_forward_hook(lambda m, args, out: {"wrapped": out})
    model.register_forward_hook(lambda m, args, out: (out, None))


def _forward_inplace(model: Hooked) -> None:
    def double(module: nn.Module, args: Any, out: Tensor) -> None:
        out.mul_(2)

    model.first.register_forward_hook(double)


def _always(model: Hooked) -> None:
    model.act.register_forward_hook(
        lambda m, args, out: model.note("always", out), always_call=True
    )


def _always_on_failure(model: Hooked) -> None:
    _always(model)
    model.act.forward = _fail
    model.fallback = nn.Linear(4, 4)


def _fail(x: Tensor) -> Tensor:
    raise ValueError("on purpose")


def _fails_then_goes_on(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    try:
        return model(x)
    except ValueError:
        return model.get_submodule("fallback")(x)


def _full_backward(model: Hooked) -> None:
    model.act.register_full_backward_hook(lambda m, gi, go: model.note("back", *gi, *go))
    model.last.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))


def _backward_pre(model: Hooked) -> None:
    model.act.register_full_backward_pre_hook(lambda m, go: model.note("pre", *go))
    model.last.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,))


def _legacy_backward(model: Hooked) -> None:
    model.act.register_backward_hook(lambda m, gi, go: model.note("legacy", *go))


def _parameter(model: Hooked) -> None:
    model.first.weight.register_hook(lambda g: model.note("grad", g))
    model.first.weight.register_hook(lambda g: g * 2)
    model.last.bias.register_hook(lambda g: torch.zeros_like(g))


def _post_accumulate(model: Hooked) -> None:
    def step(parameter: Tensor) -> None:
        model.note("accumulated", parameter.grad)
        with torch.no_grad():
            parameter.sub_(parameter.grad, alpha=0.1)
        parameter.grad = None

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)


def _state_dict(model: Hooked) -> None:
    model.register_state_dict_pre_hook(lambda m, prefix, keep: model.note("pre", prefix))
    model.register_state_dict_post_hook(lambda m, sd, prefix, meta: model.note("post", len(sd)))
    model.register_load_state_dict_pre_hook(lambda m, *rest: model.note("load"))
    model.register_load_state_dict_post_hook(lambda m, keys: model.note("loaded", str(keys)))


def _state_dict_between(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    first = model(x)
    model.load_state_dict({name: value * 0.5 for name, value in model.state_dict().items()})
    return first.detach(), model(x)


def _one_shot(model: Hooked) -> None:
    handles: list[RemovableHandle] = []

    def once(module: nn.Module, args: Any, out: Tensor) -> Tensor:
        handles.pop().remove()
        return out + 1

    handles.append(model.first.register_forward_hook(once))


def _adds_hook(model: Hooked) -> None:
    def adder(module: nn.Module, args: Any) -> None:
        model.last.register_forward_hook(lambda m, a, out: out * 2)
        model.act.register_forward_hook(lambda m, a, out: model.note("added", out))

    model.act.register_forward_pre_hook(adder)


def _keeps_output(model: Hooked) -> None:
    def keep(module: nn.Module, args: Any, out: Tensor) -> None:
        module.out = out
        out.retain_grad()
        out.register_hook(lambda g: model.note("tensor", g))

    model.first.register_forward_hook(keep)
    model.act.register_forward_hook(keep)


def _multi_grad(model: Hooked) -> None:
    parameters = list(model.parameters())
    torch.autograd.graph.register_multi_grad_hook(
        parameters, lambda grads: model.note("all", *grads)
    )


def _node(model: Hooked) -> None:
    def hook_node(module: nn.Module, args: Any, out: Tensor) -> None:
        assert out.grad_fn is not None
        out.grad_fn.register_prehook(lambda go: model.note("before", *go))
        out.grad_fn.register_hook(lambda gi, go: model.note("after", *go))

    model.last.register_forward_hook(hook_node)


def _globally(model: nn.Module, given: Given) -> object:
    """Global hooks that are installed and removed around the call, and one that replaces."""
    assert isinstance(model, Hooked)

    def double(module: nn.Module, args: Any, out: Any) -> Any:
        return out * 2 if module is model.act else None

    handles = [
        torch_module.register_module_forward_pre_hook(lambda m, args: model.note("global pre")),
        torch_module.register_module_forward_hook(lambda m, args, out: model.note("global", out)),
        torch_module.register_module_forward_hook(double),
    ]
    try:
        return model(given.floats(3, 4))
    finally:
        for handle in handles:
            handle.remove()


def _globally_backward(model: nn.Module, given: Given) -> object:
    """Global backward hooks, with the backward inside: torch keeps a flag for ever otherwise."""
    assert isinstance(model, Hooked)
    handles = [
        torch_module.register_module_full_backward_pre_hook(lambda m, go: model.note("pre", *go)),
        torch_module.register_module_full_backward_hook(lambda m, gi, go: model.note("g", *go)),
    ]
    try:
        out = model(given.floats(3, 4))
        out.sum().backward()
    finally:
        for handle in handles:
            handle.remove()
    return out.detach()


def _saved_tensors(model: nn.Module, given: Given) -> object:
    """Counts what autograd saves: an observer saves nothing."""
    assert isinstance(model, Hooked)

    def pack(tensor: Tensor) -> Tensor:
        model.note("packed", tuple(tensor.shape))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        return model(given.floats(3, 4))


EXHIBITS = (
    hooked(
        "forward_pre_hooks",
        "Forward pre-hooks, plain, prepended and with keywords.",
        _forward_pre,
        model=Hooked,
    ),
    hooked(
        "forward_pre_hooks_replacing",
        "Forward pre-hooks that replace positional and keyword inputs.",
        _forward_pre_replacing,
        model=Hooked,
    ),
    hooked(
        "forward_hooks",
        "Forward hooks, plain, prepended and with keywords.",
        _forward,
        model=Hooked,
    ),
    hooked(
        "forward_hooks_replacing",
        "Forward hooks that replace outputs, even their type.",
        _forward_replacing,
    ),
    hooked(
        "forward_hooks_inplace", "A forward hook that writes the output in place.", _forward_inplace
    ),
    hooked("always_call", "A forward hook that runs also after an exception.", _always),
    hooked(
        "always_call_on_failure",
        "The same, when the forward does raise.",
        _always_on_failure,
        _fails_then_goes_on,
    ),
    hooked(
        "full_backward_hooks", "Full backward hooks, one replaces the gradient.", _full_backward
    ),
    hooked("backward_pre_hooks", "Backward pre-hooks, one replaces the gradient.", _backward_pre),
    hooked("legacy_backward_hook", "The deprecated backward hook.", _legacy_backward),
    hooked("parameter_hooks", "Tensor hooks on parameters that change gradients.", _parameter),
    hooked(
        "post_accumulate_hooks",
        "An optimizer step inside the backward pass, which also drops the gradients.",
        _post_accumulate,
    ),
    hooked(
        "state_dict_hooks",
        "Hooks on state_dict and load_state_dict.",
        _state_dict,
        _state_dict_between,
    ),
    hooked("one_shot_hook", "A hook that removes itself while it runs.", _one_shot),
    hooked("hook_adds_hooks", "A hook that adds hooks while the model runs.", _adds_hook),
    hooked(
        "retained_gradients",
        "A hook keeps the output on the module and retains its gradient.",
        _keeps_output,
    ),
    hooked(
        "multi_grad_hook", "A hook that waits for the gradients of all parameters.", _multi_grad
    ),
    hooked("node_hooks", "Hooks on nodes of the graph.", _node),
    hooked(
        "global_hooks",
        "Global forward hooks around the call, one replaces an output.",
        lambda m: None,
        _globally,
    ),
    hooked(
        "global_backward_hooks",
        "Global backward hooks around forward and backward.",
        lambda m: None,
        _globally_backward,
        differentiable=False,
    ),
    hooked("saved_tensors_hooks", "Hooks on what autograd saves.", lambda m: None, _saved_tensors),
)
