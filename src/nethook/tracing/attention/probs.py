"""`attention_probs`: what every attention of a model looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from nethook.addresses.glob import is_literal
from nethook.addresses.inputs import as_inputs
from nethook.addresses.op_addresses import split_patterns
from nethook.addresses.patterns import Pattern, find_modules
from nethook.addresses.tree import Tree
from nethook.errors import NoSuchSiteError, SeveralCallsError
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import run_eagerly_where_compiled
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.hooks.modes import quiet
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.restoring.copies import stand_in
from nethook.restoring.unchanged import unchanged
from nethook.tracing.attention.recompute import MHA, SDPA, probabilities


def attention_probs(
    model: nn.Module, inputs: Any, at: Pattern | None = None, *, copy: bool = False
) -> Any:
    """The attention probabilities of `F.scaled_dot_product_attention` and `nn.MultiheadAttention`.

        nethook.attention_probs(model, tokens)["h.0.attn/scaled_dot_product_attention#0"]
        nethook.attention_probs(model, tokens, at="h.0.attn")     # (batch, heads, queries, keys)

    The model runs once, in evaluation and without gradients; everything is left as it was
    (docs/sites.md says what that means). Probabilities
    are recomputed from what each attention was given: masks, scale, causality, grouped heads, added
    keys and zeros; without dropout. The run itself is not changed. Attention that is written out in
    Python is read with `trace(model, "**/softmax")`.

    Arguments:
        model: any `nn.Module`.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
        at: which modules: their own attentions and those below them; or operations,
            `"h.0.attn/*"`. None means all.
        copy: runs a deep copy instead, for a model that holds objects which a forward changes.

    Returns:
        For one name, the tensor (..., heads, queries, keys). Otherwise a dict from address to
        tensor, in order of execution; of an attention that ran several times, from
        `"address, call 0"` and so on.

    Raises:
        NoSuchSiteError: where there is no such attention.
        SeveralCallsError: where one name has several.

    Memory: the probabilities, queries × keys for every head.
    """
    given = as_inputs(inputs)
    tree = Tree(model)
    with (
        unchanged(model, given, evaluation=True),
        layer_by_layer(),
        torch.no_grad(),
        Attachment(Owner("nethook.attention_probs")) as hooks,
    ):
        stand, own = stand_in(tree.root, given, copied=copy)
        tree = tree if stand is tree.root else Tree(stand)
        recorder = _Recorder(tree, at)
        run_eagerly_where_compiled(tree, hooks)
        watch_ops(tree, hooks, recorder)
        own.call(tree.root)
    attentions = recorder.named()
    if not attentions:
        raise NoSuchSiteError(recorder.nothing())
    if not (isinstance(at, str) and is_literal(at)):
        return attentions
    if len(attentions) > 1:
        names = ", ".join(repr(address) for address in list(attentions)[:4])
        more = " …" if len(attentions) > 4 else ""
        raise SeveralCallsError(
            f"{at!r} has {len(attentions)} attentions ({names}{more}): ask "
            "for one of them by its address, or for all with a list, at=[...]."
        )
    return next(iter(attentions.values()))


class _Recorder(OpConsumer):
    """Recomputes the probabilities of each attention when it has run."""

    def __init__(self, tree: Tree, at: Pattern | None) -> None:
        self._at = at
        self._elsewhere: list[str] = []  # attentions that were not asked for
        self._softmax = False
        self._probs: dict[str, list[torch.Tensor]] = {}
        self._modules: tuple[str, ...] | None = None
        self._patterns: list[tuple[Any, set[str]]] = []
        if at is not None:
            patterns, ops = split_patterns([at])
            sites = find_modules(tree, patterns).values() if patterns else ()
            self._modules = tuple(name for site, _ in sites for name in site.names)
            self._patterns = [
                (pattern, {site.address for site in pattern.sites(tree)}) for pattern in ops
            ]

    def wants(self, op: Op) -> bool:
        """Whether it is an attention that was asked for."""
        if op.name not in (SDPA, MHA):
            self._softmax = self._softmax or op.name == "softmax"
            return False
        if self._modules is None or self._is_below(op) or self._is_meant(op):
            return True
        self._elsewhere.append(op.address)
        return False

    def _is_below(self, op: Op) -> bool:
        assert self._modules is not None
        return any(
            not module or name == module or name.startswith(f"{module}.")
            for module in self._modules
            for name in op.place.names
        )

    def _is_meant(self, op: Op) -> bool:
        return any(
            op.place.address in modules and pattern.matches(op.name, op.k)
            for pattern, modules in self._patterns
        )

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> None:  # fmt: skip
        """An attention has run."""
        with quiet():
            probs = probabilities(op.name, args, kwargs)
        self._probs.setdefault(op.address, []).append(probs)

    def named(self) -> dict[str, torch.Tensor]:
        """All that was found, by address."""
        return {
            address if len(calls) == 1 else f"{address}, call {number}": probs
            for address, calls in self._probs.items()
            for number, probs in enumerate(calls)
        }

    def nothing(self) -> str:
        """Why there is nothing."""
        if self._elsewhere:
            names = ", ".join(repr(address) for address in self._elsewhere[:4])
            return f"no attention ran at {self._at!r}. The model's attentions: {names}."
        written = (
            " Its attention seems to be written out in Python: trace(model, '**/softmax') reads it."
            if self._softmax
            else ""
        )
        return (
            "this forward called neither F.scaled_dot_product_attention nor "
            f"nn.MultiheadAttention.{written}"
        )
