"""Seeing values and gradients inside compiled graphs, without a graph break.

A hook on a module that `torch.compile` compiles is traced: its Python runs once, while the graph is
made, and what is left of it are the operations it called. So the hooks of this file call operations
of their own, which run Python whenever the graph runs:

    self.site = numbered(self)                  # in __init__; `self` is told: `ToldValues`
    self.back = numbered(self)
    if torch.compiler.is_compiling():           # in the hook
        return show(self.site, args, output, self.back)
        # calls self.value_in_graph(…), self.grad_in_graph(…) whenever the graph runs

`show` returns what the hook has to return: None, or the output by way of an operation whose
gradient is shown.

- Which hook an operation means is data, a tensor with its number: blocks that share one compiled
  graph differ in that input alone. As a Python number it would be one graph per block.
- The number is declared to be written to, though it never is: an operation that changes nothing and
  returns nothing would be removed from the graph. Backward graphs have a number of their own: one
  that the forward graph has "written" is another tensor to them, which they copy first.
- A gradient is seen by an operation that hands its input on, as a copy that the compiler removes:
  its formula for the gradient shows it. A tensor hook would do as well, but while torch 2.13 traces
  one it forgets attributes of objects that were made in the same graph (the caches of language
  models, for one). It serves where a module returns its own input: a copy of that would not be
  written to when the input is. For a torch that cannot trace one there is an operation that puts
  it on: on what is computed while the backward graph is made, on an input of the graph when it
  runs.
- Whether a graph has these operations at all is decided by `shown.on`, when it is compiled: there
  are two graphs then, one with and one without, and changing between them compiles nothing.

The operations are defined without the conveniences of `torch.library.custom_op`: 2 µs per call
instead of 20. They accept any layout, so that no tensor is copied for them, and are kept out of
CUDA graphs, which would not run their Python again.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Mapping
from typing import Any, Final, Protocol

import torch
from torch import Tensor
from torch.library import Library, fallthrough_kernel

from nethook.torch_private import base_of, in_transform, is_exporting
from nethook.torch_versions import release

# One count for the process: a compiled graph may outlive the scope that it was made in, and its
# number must never come to mean another hook.
_NUMBERS: Final = itertools.count()
# Before 2.13 the compiler refuses gradient hooks on what a graph computes, or warns of itself.
_TRACES_HOOKS: Final = release(torch.__version__) >= (2, 13)
_SEQUENCES: Final = (tuple, list)  # no union: up to 2.9 the compiler cannot trace one


class ToldValues(Protocol):
    """What is told of values when a compiled graph runs."""

    def value_in_graph(self, value: Tensor, training: bool, first: bool) -> None:
        """A tensor that the module returned.

        `training` is whether gradients were on in the user's code: while a compiled graph runs
        they never are. `first` is False for all but the first tensor of a call.
        """

    def grad_in_graph(self, grad: Tensor) -> None:
        """The gradient of one of them."""


class ToldCalls(Protocol):
    """What is told of calls when a compiled graph runs."""

    def call_in_graph(self, values: list[Tensor], training: bool) -> None:
        """A call that begins or ends, with the tensors that went in or came out."""


class Shown:
    """Whether graphs that run with gradients show what is inside; without, they always do."""

    __slots__ = ("_asking", "on")

    def __init__(self) -> None:
        self.on = True
        self._asking: weakref.WeakKeyDictionary[object, bool] = weakref.WeakKeyDictionary()

    def ask(self, who: object, on: bool) -> None:
        """`who` wants to be shown the next calls, or not; one that wants it is enough."""
        if self._asking.get(who) is not on:
            self._asking[who] = on
            self.on = any(self._asking.values())

    def leave(self, who: object) -> None:
        """`who` wants nothing any more."""
        self._asking.pop(who, None)
        self.on = any(self._asking.values()) if self._asking else True


shown: Final = Shown()
"""One for the process, so that a graph checks it once and not for each of its hooks."""

# Whom the number of an operation means. They live as long as their hooks. Global, because all that
# reaches an operation inside a graph are tensors and numbers: no object can be handed to it.
_TOLD: Final[dict[int, weakref.ref[Any]]] = {}
# The same by the `id` of the tensor that has the number, which is mostly what the operation gets:
# to read the number would take longer than all else. And the tensor, for an `id` is used again.
_HELD: Final[dict[int, tuple[weakref.ref[Any], weakref.ref[Tensor]]]] = {}


def numbered(told: ToldValues | ToldCalls) -> Tensor:
    """A number for `told`, as the tensor by which graphs know it."""
    number = next(_NUMBERS)
    with torch.inference_mode(False):
        site = torch.tensor(number, device="cpu")
    _TOLD[number] = ref = weakref.ref(told, lambda _: _TOLD.pop(number, None))
    held = id(site)
    _HELD[held] = ref, weakref.ref(site, lambda gone: _forget(held, gone))
    return site


def _forget(held: int, gone: weakref.ref[Tensor]) -> None:
    entry = _HELD.get(held)
    if entry is not None and entry[1] is gone:
        del _HELD[held]


# -- what is traced -------------------------------------------------------------------------------


def show(site: Tensor, args: tuple[Any, ...], output: Any, back: Tensor | None) -> Any:
    """Traced: shows what a module returned, and its gradients; what to return in its place.

    `site` is the number of whom it is shown to, and `back` that in backward graphs; without it no
    gradients are shown.
    """
    if is_exporting() or in_transform():
        return None
    training = torch.is_grad_enabled()
    if training and not shown.on:
        return None
    if type(output) is Tensor:
        return _show_one(site, args, output, training, True, back)
    if type(output) is tuple:
        new = _show_all(site, args, output, training, back)
        return None if new is None else tuple(new)
    first = True
    for tensor in _tensors_in(output):
        _show_one(site, args, tensor, training, first, None)
        if training and back is not None:
            _ask(back, args, tensor)
        first = False
    return None


def show_call(site: Tensor, values: Any) -> None:
    """Traced: shows that a call begins, or ends, and what with."""
    if is_exporting() or in_transform():
        return
    torch.ops.nethook.show_call(_tensors_in(values), site, torch.is_grad_enabled())


def _show_all(
    site: Tensor,
    args: tuple[Any, ...],
    values: tuple[Any, ...],
    training: bool,
    back: Tensor | None,
) -> list[Any] | None:
    """A tuple, as recurrent layers return it; None where nothing in it is replaced."""
    new: list[Any] = []
    first, replaced = True, False
    for value in values:
        put: Any = None
        if type(value) is Tensor:
            put = _show_one(site, args, value, training, first, back)
            first = False
        elif type(value) is tuple:
            inner = _show_all(site, args, value, training, back)
            put = None if inner is None else tuple(inner)
        replaced = replaced or put is not None
        new.append(value if put is None else put)
    return new if replaced else None


def _show_one(
    site: Tensor,
    args: tuple[Any, ...],
    value: Tensor,
    training: bool,
    first: bool,
    back: Tensor | None,
) -> Tensor | None:
    torch.ops.nethook.show_value(value, site, training, first)
    if back is None or not (training and value.requires_grad):
        return None
    if _is_given(value, args):
        _ask(back, args, value)
        return None
    passed: Tensor = torch.ops.nethook.through(value, back)
    return passed


def _is_given(value: Tensor, args: tuple[Any, ...]) -> bool:
    """Whether a module returns what it was given, or a view of it."""
    if value.is_leaf:
        return True
    base = base_of(value)
    for argument in args:
        if isinstance(argument, Tensor) and (
            argument is value
            or (base is not None and (argument is base or base_of(argument) is base))
            or (base_of(argument) is not None and base_of(argument) is value)
        ):
            return True
    return False


def _ask(back: Tensor, args: tuple[Any, ...], value: Tensor) -> None:
    if value.requires_grad:
        asked = _asked(value, args)
        if not asked.is_leaf:  # a leaf outlives the graph, and hooks on it would pile up
            if _TRACES_HOOKS:
                asked.register_hook(lambda grad: torch.ops.nethook.show_grad(grad, back))
            else:
                torch.ops.nethook.ask(asked, back)


def _asked(value: Tensor, args: tuple[Any, ...]) -> Tensor:
    """The tensor whose gradient is that of `value`, also if `value` is written in place later.

    As `gradients.ask_quickly` does: of a view that only rearranges a tensor which the module has
    made, it is that tensor.
    """
    base = base_of(value)
    if base is None:
        return value
    # First, for nothing can be asked of the base of an input: a graph is made without it.
    for argument in args:
        if isinstance(argument, Tensor) and (argument is base or base_of(argument) is base):
            return value
    return value if base.is_leaf or base.numel() != value.numel() else base


def _tensors_in(value: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists and mappings, as far as these can be traced."""
    if isinstance(value, Tensor):
        return [value] if type(value) is Tensor else []
    inside: list[Tensor] = []
    if isinstance(value, _SEQUENCES):
        for item in value:
            inside += _tensors_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            inside += _tensors_in(item)
    return inside


# -- what runs whenever a graph runs --------------------------------------------------------------


def _value(value: Tensor, site: Tensor, training: bool, first: bool) -> None:
    told = _told(site)
    if told is not None:
        told.value_in_graph(value, training, first)


class _Through(torch.autograd.Function):
    """Hands a tensor on, and shows its gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, back: Tensor) -> Tensor:
        ctx.save_for_backward(back)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        torch.ops.nethook.show_grad(grad, ctx.saved_tensors[0])
        return grad, None


def _through(value: Tensor, back: Tensor) -> Tensor:
    passed: Tensor = _Through.apply(value, back)  # type: ignore[no-untyped-call]
    return passed


def _ask_where_autograd_is(value: Tensor, back: Tensor) -> None:
    """Where autograd records: of real tensors, and of those with which a graph is made."""
    # What stands for an input while a graph is made is a leaf, or says that it has no history.
    if value.is_leaf or type(value.grad_fn).__name__ == "Error":
        torch.ops.nethook.ask_input(value, back)
    else:
        value.register_hook(lambda grad: torch.ops.nethook.show_grad(grad, back))


def _ask_input(value: Tensor, back: Tensor) -> None:
    if value.requires_grad and not value.is_leaf:
        value.register_hook(lambda grad: torch.ops.nethook.show_grad(grad, back))


def _grad(grad: Tensor, back: Tensor) -> None:
    told = _told(back)
    if told is not None:
        told.grad_in_graph(grad)


def _call(values: list[Tensor], site: Tensor, training: bool) -> None:
    told = _told(site)
    if told is not None:
        told.call_in_graph(values, training)


def _told(site: Tensor) -> Any:
    held = _HELD.get(id(site))
    if held is not None and held[1]() is site:
        return held[0]()
    told = _TOLD.get(int(site.item()))
    return None if told is None else told()


# torch has one table of operations for the process. They are defined when this file is imported and
# never taken out: graphs that were compiled with them may be run at any time.
_LIBRARY: Final = Library("nethook", "DEF")
_TAGS: Final = (torch.Tag.flexible_layout, torch.Tag.cudagraph_unsafe)


# What tracing runs in their place is a kernel for `meta`. `register_fake` would do as well, but it
# asks which module called it: for that Python looks through all that are loaded, 8 ms in each run.


def _define(name: str, arguments: str, run: Any) -> None:
    _LIBRARY.define(f"{name}({arguments}) -> ()", tags=_TAGS)
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    # Nothing to differentiate and no version to count: both would be most of the cost.
    _LIBRARY.impl(name, fallthrough_kernel, "Autograd")
    _LIBRARY.impl(name, fallthrough_kernel, "ADInplaceOrView")
    _LIBRARY.impl(name, lambda *_: None, "Meta")


# Not `value`, `grad` and `call`: of those Inductor may have code on disk, from an earlier nethook,
# that calls functions which no longer exist.
_define("show_value", "Tensor value, Tensor(a!) site, bool training, bool first", _value)
_define("show_grad", "Tensor grad, Tensor(a!) back", _grad)
_LIBRARY.define("through(Tensor value, Tensor back) -> Tensor", tags=_TAGS)
_LIBRARY.impl("through", lambda value, _: value.clone(), "CompositeExplicitAutograd")
_LIBRARY.impl("through", _through, "Autograd")
_LIBRARY.impl("through", lambda value, _: value.clone(), "Meta")
_define("ask_input", "Tensor value, Tensor(a!) back", _ask_input)
_LIBRARY.define("ask(Tensor value, Tensor(a!) back) -> ()", tags=_TAGS)
_LIBRARY.impl("ask", lambda *_: None, "CompositeExplicitAutograd")
_LIBRARY.impl("ask", _ask_where_autograd_is, "Autograd")
_LIBRARY.impl("ask", lambda *_: None, "Meta")
_define("show_call", "Tensor[] values, Tensor(a!) site, bool training", _call)
