"""One run of a model, written down: when each module was called, and what it returned."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import map_tensors
from nethook.addresses.op_addresses import OpPattern
from nethook.addresses.tree import Tree
from nethook.editing.tokens import CallsUnderWay, Tokens, follow_tokens
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.layouts.unhookable import RouterPair, routed_modules
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.scope import Scope
from nethook.interp.attention.finding import Finder
from nethook.interp.attention.multihead import parts_of
from nethook.kinds.operations import ATTENTION

_PLAIN = (type(None), bool, int, float, complex, str, bytes, torch.dtype, torch.device, slice)

_KNOWN = (torch.Tensor, *_PLAIN)


@dataclass
class Called:
    """A module or an operation, as it was called in one run."""

    address: str
    module: nn.Module | None  # None: an operation
    began: list[int] = field(default_factory=list)  # on the clock of the run
    ended: list[int] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)
    tokens: list[Tokens | None] = field(default_factory=list)  # of the call around, at each end
    given: str = ""  # the class of an argument that is neither a tensor nor plain data
    returned: str = ""  # and of such a part of what it returned

    @property
    def once(self) -> bool:
        """Whether it was called exactly once."""
        return len(self.began) == 1 == len(self.ended)


@dataclass
class Recording:
    """What was called in one run, by address, and what the model returned."""

    calls: dict[str, Called] = field(default_factory=dict)
    output: Any = None
    clock: int = 0
    under_way: CallsUnderWay | None = None
    attentions: Finder | None = None

    def tick(self) -> int:
        """The next moment."""
        self.clock += 1
        return self.clock

    def ended(self, called: Called, output: Any, moment: int) -> None:
        """A call has returned."""
        called.ended.append(moment)
        called.outputs.append(map_tensors(cheap_copy, output))
        called.tokens.append(None if self.under_way is None else self.under_way.innermost())


def record(
    tree: Tree,
    run: Callable[[], Any],
    ops: Sequence[OpPattern] = (),
    *,
    modules: Container[str],
    tokens_at: Sequence[str] = (),
    heads: bool = False,
) -> Recording:
    """Calls `run`, and writes down the calls of some modules and of some operations of a model.

    Outputs are copies that cost memory once the original is written to. Around the modules
    `tokens_at` it is noted which tokens the model was called with. With `heads`, attention is
    found and written down as well; of `nn.MultiheadAttention`, its heads before they are mixed.
    """
    recording = Recording(attentions=Finder(cut=False) if heads else None)
    routed = routed_modules(tree)  # a hook of their own would change what they compute
    with Scope("nethook.interp", tree) as hooks:
        routers = RouterPair(hooks)
        for address, module in zip(tree.addresses, tree.modules, strict=True):
            if address in modules:
                called = Called(address, module)
                on = routers if id(module) in routed else hooks
                on.forward_pre(module, _Begins(hooks.owner, called, recording))
                on.forward(module, _Ends(hooks.owner, called, recording))
        if ops or heads:
            watch_ops(tree, hooks, _Ops(tree, ops, recording))
        if tokens_at:
            recording.under_way = follow_tokens(tree, list(tokens_at), hooks)
        recording.output = run()
    return recording


class _Begins(Hook):
    __slots__ = ("_called", "_recording")

    def __init__(self, owner: Owner, called: Called, recording: Recording) -> None:
        super().__init__(owner, called.address)
        self._called = called
        self._recording = recording

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        called, recording = self._called, self._recording
        recording.calls.setdefault(called.address, called)
        called.began.append(recording.tick())
        if not called.given:
            called.given = opaque_part((*args, *(kwargs or {}).values()))


class _Ends(Hook):
    __slots__ = ("_called", "_recording")

    def __init__(self, owner: Owner, called: Called, recording: Recording) -> None:
        super().__init__(owner, called.address)
        self._called = called
        self._recording = recording

    def __call__(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        called, output = self._called, rest[-1]
        called.returned = called.returned or opaque_part(output)
        self._recording.ended(called, output, self._recording.tick())


class _Ops(OpConsumer):
    """Keeps what some operations return."""

    def __init__(self, tree: Tree, patterns: Sequence[OpPattern], recording: Recording) -> None:
        self._recording = recording
        self._attentions = recording.attentions
        self._rules: dict[int, list[OpPattern]] = {}
        for pattern in patterns:
            for site in pattern.sites(tree):
                self._rules.setdefault(site.order, []).append(pattern)

    def wants(self, op: Op) -> bool:
        return self._attentions is not None or self._means(op)

    def _means(self, op: Op) -> bool:
        return any(p.matches(op.name, op.k) for p in self._rules.get(op.place.order, ()))

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> None:  # fmt: skip
        recording = self._recording
        if self._attentions is not None:
            self._attentions.after(op, function, args, kwargs, result)
            if op.address not in self._attentions.found and not self._means(op):
                return
            if op.name == ATTENTION:
                result = parts_of(args, kwargs).heads
        called = recording.calls.setdefault(op.address, Called(op.address, None))
        moment = recording.tick()
        called.began.append(moment)
        recording.ended(called, result, moment)


def opaque_part(value: Any) -> str:
    """The class of something in a value that is neither a tensor nor plain data; "" if none is."""
    found: list[str] = []
    if isinstance(value, tuple):  # nearly always one of tensors and plain data: no need to look in
        value = [part for part in value if not isinstance(part, _KNOWN)]
    elif isinstance(value, _KNOWN):
        return ""

    def note(part: Any) -> Any:
        if not isinstance(part, _PLAIN) and not found:
            found.append(type(part).__name__)
        return part

    map_tensors(lambda tensor: tensor, value, note)
    return found[0] if found else ""
