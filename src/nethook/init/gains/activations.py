"""Which function is meant by a name, a module or a callable; and whether it acts by element.

A gain is a property of a function of one number. What mixes elements (softmax), changes the shape
(GLU) or draws random numbers (dropout) has none, and is refused with the reason.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.suggest import close_names
from nethook.errors import ActivationError
from nethook.restoring.randomness import random_states_unchanged
from nethook.torch_private import Dropouts

Function = Callable[[torch.Tensor], torch.Tensor]
Activation = str | nn.Module | Callable[..., Any]

# By the name of the function in torch; a class is called with the numbers in `leaky_relu(0.2)`.
_CLASSES: dict[str, type[nn.Module]] = {
    "celu": nn.CELU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "hardshrink": nn.Hardshrink,
    "hardsigmoid": nn.Hardsigmoid,
    "hardswish": nn.Hardswish,
    "hardtanh": nn.Hardtanh,
    "identity": nn.Identity,
    "leaky_relu": nn.LeakyReLU,
    "logsigmoid": nn.LogSigmoid,
    "mish": nn.Mish,
    "prelu": nn.PReLU,
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "rrelu": nn.RReLU,
    "selu": nn.SELU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "softshrink": nn.Softshrink,
    "softsign": nn.Softsign,
    "tanh": nn.Tanh,
    "tanhshrink": nn.Tanhshrink,
    "threshold": nn.Threshold,
}
_FUNCTIONS: dict[str, Function] = {
    "abs": torch.abs,
    "cos": torch.cos,
    "erf": torch.erf,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu_squared": lambda x: torch.relu(x).square(),
    "sin": torch.sin,
    "square": torch.square,
}
_ALIASES = {
    "linear": "identity",
    "none": "identity",
    "swish": "silu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu2": "relu_squared",
    "log_sigmoid": "logsigmoid",
    "hard_shrink": "hardshrink",
    "hard_sigmoid": "hardsigmoid",
    "hard_swish": "hardswish",
    "hard_tanh": "hardtanh",
    "soft_plus": "softplus",
    "soft_shrink": "softshrink",
    "soft_sign": "softsign",
    "tanh_shrink": "tanhshrink",
    "lrelu": "leaky_relu",
    **{f"conv{t}{d}d": "identity" for t in ("", "_transpose") for d in (1, 2, 3)},
}
_MIXES = "it mixes the elements of its input, so it is not a function of one number"
_HALVES = "it multiplies one half of its input with a function of the other"
_REFUSED = {
    "softmax": _MIXES,
    "log_softmax": _MIXES,
    "logsoftmax": _MIXES,
    "softmin": _MIXES,
    "softmax2d": _MIXES,
    "gumbel_softmax": _MIXES,
    "glu": _HALVES,
    "swiglu": _HALVES,
    "geglu": _HALVES,
    "reglu": _HALVES,
    "multihead_attention": _MIXES,
    "dropout": "it draws random numbers",
}
_CALL = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*")
# Where functions are tried: unevenly spread, over what a normal input reaches, and past zero.
_PROBE = torch.linspace(-4.3, 4.1, 64, dtype=torch.float64)


@dataclass(frozen=True)
class Elementwise:
    """A function of one number, by element; several where it differs from channel to channel."""

    name: str
    functions: tuple[Function, ...]


def names() -> list[str]:
    """The names of activations that are known."""
    return sorted({*_CLASSES, *_FUNCTIONS, *_ALIASES})


def elementwise(activation: Activation) -> Elementwise:
    """The function that is meant, in float64 on the CPU; raises where it is not by element."""
    if isinstance(activation, str):
        return _by_name(activation)
    if isinstance(activation, nn.Module):
        return _by_module(activation)
    given: object = activation
    if isinstance(given, type) or not callable(given):
        what = f"the class {given.__name__}" if isinstance(given, type) else repr(given)
        raise ActivationError(
            "An activation must be a name ('gelu'), a module (nn.LeakyReLU(0.2)) or a function of "
            f"a tensor; got {what}."
        )
    name = getattr(activation, "__name__", None) or type(activation).__name__
    return _tried(name, (activation,))


def _by_name(text: str) -> Elementwise:
    match = _CALL.fullmatch(text)
    if match is None:
        raise ActivationError(
            f"The name of an activation must be like 'gelu' or 'elu(1.5)'; got {text!r}."
        )
    spelling = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", match[1]).lower()
    name = _canonical(spelling, text)
    numbers = [
        _number(argument, text) for argument in (match[2] or "").split(",") if argument.strip()
    ]
    if name in _FUNCTIONS:
        if numbers:
            raise ActivationError(f"{name!r} takes no parameter; got {text!r}. Type {name!r}.")
        return Elementwise(name, (_FUNCTIONS[name],))
    if name == "threshold" and not numbers:
        raise ActivationError(
            f"'threshold' must have two parameters; got {text!r}. Type 'threshold(0.1, 0)'."
        )
    if name == "prelu":  # its one number is the slope, not how many slopes there are
        numbers = numbers or [0.25]
        module: nn.Module = nn.LeakyReLU(numbers[0])
    else:
        try:
            module = _CLASSES[name](*numbers)
        except (TypeError, ValueError, AssertionError) as error:
            raise ActivationError(f"{text!r} cannot be made: {error}") from error
    shown = f"{name}({', '.join(f'{number:g}' for number in numbers)})" if numbers else name
    return Elementwise(shown, (module.eval(),))


def _canonical(written: str, text: str) -> str:
    # `ReLU` and `LogSigmoid` are written in more ways than one.
    for spelling in (written, written.replace("_", "")):
        name = _ALIASES.get(spelling, spelling)
        if name in _CLASSES or name in _FUNCTIONS:
            return name
        if name in _REFUSED:
            raise ActivationError(_refusal(text, _REFUSED[name]))
    joined = {name.replace("_", ""): name for name in (*_CLASSES, *_FUNCTIONS, *_ALIASES)}
    if written.replace("_", "") in joined:
        canonical = joined[written.replace("_", "")]
        return _ALIASES.get(canonical, canonical)
    close = close_names(written, names())
    hint = f" Closest: {', '.join(map(repr, close))}." if close else ""
    raise ActivationError(
        f"The name of an activation must be a known one; got {text!r}.{hint} A module or any "
        "function of a tensor can be given instead of a name."
    )


def _number(argument: str, text: str) -> float:
    try:
        return float(argument.rpartition("=")[2])
    except ValueError:
        raise ActivationError(
            f"The parameters of an activation must be numbers; got {text!r}. Type 'elu(1.5)'."
        ) from None


def _by_module(module: nn.Module) -> Elementwise:
    name = type(module).__name__
    if isinstance(module, nn.Softmax | nn.LogSoftmax | nn.Softmin | nn.Softmax2d):
        raise ActivationError(_refusal(name, _MIXES))
    if isinstance(module, nn.GLU):
        raise ActivationError(_refusal(name, _HALVES))
    if isinstance(module, Dropouts):
        raise ActivationError(_refusal(name, _REFUSED["dropout"]))
    if isinstance(module, nn.PReLU):
        # Each channel has a slope of its own; what the next layer sums over is all of them.
        slopes = module.weight.detach().double().cpu().tolist()
        return Elementwise(module_name(module), tuple(nn.LeakyReLU(slope) for slope in slopes))
    # A copy: parameters become float64, random slopes (RReLU) their mean, and nothing is written.
    return _tried(module_name(module), (copy.deepcopy(module).cpu().double().eval(),))


def module_name(module: nn.Module) -> str:
    """`leaky_relu(0.2)` for `nn.LeakyReLU(0.2)`, which is a name again; else the class's name."""
    if isinstance(module, nn.PReLU):
        if module.weight.numel() == 1 and not module.weight.is_meta:
            return f"prelu({float(module.weight.detach()):g})"
        return f"prelu of {module.weight.numel()} slopes"
    for name, cls in _CLASSES.items():
        if type(module) is cls:
            return name + _parameters(module, cls)
    return type(module).__name__


def _parameters(module: nn.Module, cls: type[nn.Module]) -> str:
    if isinstance(module, nn.GELU):
        return "_tanh" if module.approximate == "tanh" else ""
    if isinstance(module, nn.Hardtanh):
        ends = (module.min_val, module.max_val)
        usual = isinstance(module, nn.ReLU6) or ends == (-1, 1)
        return "" if usual else f"({ends[0]:g}, {ends[1]:g})"
    if isinstance(module, nn.Identity):
        return ""
    wanted = inspect.signature(cls).parameters.values()
    given = [
        (getattr(module, parameter.name), parameter.default)
        for parameter in wanted
        if parameter.name != "inplace" and hasattr(module, parameter.name)
    ]
    while given and given[-1][0] == given[-1][1]:
        given.pop()
    return f"({', '.join(f'{value:g}' for value, _ in given)})" if given else ""


def _tried(name: str, functions: tuple[Function, ...]) -> Elementwise:
    for function in functions:
        reason = why_not_elementwise(function)
        if reason is not None:
            raise ActivationError(_refusal(name, reason))
    return Elementwise(name, functions)


def _refusal(name: str, reason: str) -> str:
    return (
        f"{name!r} has no gain: {reason}. A gain belongs to a function that acts on each element "
        "by itself, such as 'gelu' or nn.LeakyReLU(0.2)."
    )


def why_not_elementwise(function: Function) -> str | None:
    """Why a function does not act on each element by itself; None where it does."""
    probe = _PROBE.clone()
    try:
        with torch.no_grad(), random_states_unchanged():
            first: Any = function(probe)
            again = function(_PROBE.clone())
            other = _PROBE.clone()
            other[::2] += 0.37  # what the elements between give must not notice
            changed = function(other)
    except Exception as error:
        return f"it cannot be called with a vector of float64 ({type(error).__name__}: {error})"
    if not isinstance(first, torch.Tensor):
        return f"it gives a {type(first).__name__} and not a tensor"
    if first.shape != _PROBE.shape:
        return f"it turns {tuple(_PROBE.shape)} into {tuple(first.shape)}"
    if first.is_complex() or not first.is_floating_point():
        return f"it gives numbers of type {first.dtype}"
    if not torch.equal(first.nan_to_num(), again.nan_to_num()):
        return "two calls with the same input differ (is it random, or does it keep a state?)"
    if not torch.allclose(first[1::2], changed[1::2], rtol=1e-9, atol=1e-12, equal_nan=True):
        return _MIXES
    if not bool(torch.isfinite(first).all()):
        return "it is not finite for every number between -4 and 4"
    return None
