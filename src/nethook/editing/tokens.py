"""Which token stands in which place: absolute positions, under padding and key/value caches.

A decode step of `generate` hands the model one token, whose place in the text is not its place in
the tensor; in a padded batch the first column need not be the first token. Both are known where a
model is called with token ids or embeddings, from the arguments beside them: a 2-D
`attention_mask`, a cache, `cache_position`, `position_ids`. So hooks on the modules around an
edited site note the innermost such call that is under way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from threading import get_ident
from typing import Any

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.editing.generations import Generations
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.layouts.unhookable import routed_modules
from nethook.hooks.ops.mode import unseen
from nethook.hooks.threads import elsewhere

_TOKENS = ("input_ids", "inputs_embeds")
_CACHES = ("past_key_values", "past_key_value", "past", "cache", "layer_past")
PADDING = -1
"""In the place of a position: a column that the mask does not count."""


class Tokens:
    """The tokens of one call of a model: the position of each, (rows, length); -1 is padding."""

    __slots__ = ("counts", "length", "positions", "prompt", "start")

    def __init__(self, positions: torch.Tensor, counts: torch.Tensor, start: int = 0) -> None:
        self.positions = positions
        self.counts = counts  # (rows, 1): how many tokens each row has had with this call
        self.length = positions.shape[1]
        self.start = start  # the column that the first one has among all of the generation
        self.prompt: torch.Tensor | None = None  # (1, length): which were not generated, if known


class CallsUnderWay:
    """The calls with tokens that are under way, the innermost last, by thread."""

    def __init__(self) -> None:
        self._stacks: dict[int, list[tuple[int, Tokens]]] = {}
        self._generations = Generations()

    def begin(self, module: nn.Module, tokens: Tokens, given: torch.Tensor) -> None:
        """A module was called with tokens, which are ids or embeddings."""
        self.end(module)  # one that an interrupt has ended is still there
        tokens.prompt = self._generations.is_prompt(module, given, tokens.start)
        self._stacks.setdefault(get_ident(), []).append((id(module), tokens))

    def end(self, module: nn.Module) -> None:
        """A module has returned; those inside it have as well."""
        stack = self._stacks.get(get_ident(), [])
        for depth, (number, _) in enumerate(stack):
            if number == id(module):
                del stack[depth:]
                return

    def innermost(self) -> Tokens | None:
        """The tokens of the innermost call that has any."""
        stack = self._stacks.get(get_ident())
        return stack[-1][1] if stack else None


def follow_tokens(tree: Tree, addresses: list[str], hooks: Attachment) -> CallsUnderWay:
    """Notes the tokens of calls around these modules, until `hooks` are removed.

    To be called after the hooks of the edits are on: what notes the end of a call comes last.
    """
    under_way = CallsUnderWay()
    around = {"", *addresses}
    for address in addresses:
        parts = address.split(".")
        around |= {".".join(parts[:count]) for count in range(1, len(parts))}
    fused = routed_modules(tree)  # they are never called with tokens, and must have no hooks
    for address, module in zip(tree.addresses, tree.modules, strict=True):
        if address not in around or id(module) in fused:
            continue
        hooks.forward_pre(module, _Begins(hooks.owner, address, under_way))
        hooks.forward(module, _Ends(hooks.owner, address, under_way), always_call=True)
    return under_way


@lru_cache(maxsize=256)  # by class: reading a signature takes longer than a small layer
def _names(forward: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the arguments that a forward takes by position, without the module."""
    parameters = list(inspect.signature(forward).parameters.values())
    return tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)[1:]


class _Begins(Hook):
    """Before the forward of a module that may be given tokens."""

    __slots__ = ("_under_way",)

    def __init__(self, owner: Owner, address: str, under_way: CallsUnderWay) -> None:
        super().__init__(owner, address)
        self._under_way = under_way

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        """Notes the tokens that it is given, if any."""
        if not self.owner.alive or kwargs is None or elsewhere(self.owner, module):
            return
        named = by_name(module, args, kwargs)
        if not any(name in named for name in _TOKENS):
            return
        with unseen(), torch.no_grad():
            tokens = tokens_of(named)
            if tokens is not None:
                given = given_tokens(named)
                assert given is not None
                self._under_way.begin(module, tokens, given)


class _Ends(Hook):
    """After the forward of such a module, also where it raised."""

    __slots__ = ("_under_way",)

    def __init__(self, owner: Owner, address: str, under_way: CallsUnderWay) -> None:
        super().__init__(owner, address)
        self._under_way = under_way

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """The call is no longer under way."""
        self._under_way.end(module)


def by_name(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, by the names that the module's forward gives them."""
    return dict(zip(_names(type(module).forward), args, strict=False)) | dict(kwargs)


def given_tokens(given: Mapping[str, Any]) -> torch.Tensor | None:
    """Ids or embeddings, (rows, length, …), among arguments by name."""
    tokens = next((v for n in _TOKENS if isinstance(v := given.get(n), torch.Tensor)), None)
    return None if tokens is None or tokens.ndim < 2 else tokens


def tokens_of(given: Mapping[str, Any]) -> Tokens | None:
    """The tokens of a call with these arguments by name; None where it has no tokens."""
    tokens = given_tokens(given)
    if tokens is None:
        return None
    rows, length = tokens.shape[:2]
    past = _past_length(given)
    mask = given.get("attention_mask")
    if isinstance(mask, torch.Tensor) and mask.ndim == 2 and mask.shape[1] >= length:
        real = mask != 0
        counted = real.long().cumsum(1)
        # A cache says where the new columns begin; without one, they are the last.
        fits = past is not None and mask.shape[1] >= past + length
        start = past if past is not None and fits else mask.shape[1] - length
        columns = slice(start, start + length)
        positions = torch.where(real, counted - 1, PADDING)[:, columns]
        return Tokens(positions, counted[:, columns][:, -1:], start)
    known = given.get("position_ids")
    if past is None and isinstance(known, torch.Tensor) and known.shape[-1] == length:
        positions = known.reshape(-1, length)[-rows:]
        return Tokens(positions, positions.amax(1, keepdim=True) + 1)
    return plain_tokens(length, tokens.device, past or 0)


def plain_tokens(length: int, device: torch.device, past: int = 0) -> Tokens:
    """Tokens one after the other, the same in every row."""
    positions = torch.arange(past, past + length, device=device)[None]
    return Tokens(positions, torch.full((1, 1), past + length, device=device), past)


def _past_length(given: Mapping[str, Any]) -> int | None:
    """How many tokens came before, by the cache or its position; None where nothing is known."""
    for name in _CACHES:
        cache = given.get(name)
        if cache is None:
            continue
        if hasattr(cache, "get_seq_length"):
            return int(cache.get_seq_length())
        while isinstance(cache, tuple | list) and len(cache):
            cache = cache[0]
        if isinstance(cache, torch.Tensor) and cache.ndim >= 3:
            return int(cache.shape[-2])  # keys: (rows, heads, tokens, head size)
    place = given.get("cache_position")
    return int(place.flatten()[0]) if isinstance(place, torch.Tensor) and place.numel() else None
