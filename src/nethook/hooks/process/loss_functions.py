"""Seeing the calls of torch's loss functions where there is no autograd graph to read.

`F.cross_entropy`, a copy of it that was imported by name, and `nn.CrossEntropyLoss` all end in
`torch._C._nn.cross_entropy_loss`, which is looked up at every call. That is what is wrapped,
so that all of them are seen, and that functions of `torch.nn.functional` stay what they are for
`torch.compile`, which knows them by identity.

Not seen are the three losses that torch has written in Python alone (`gaussian_nll_loss`,
`multilabel_soft_margin_loss`, `triplet_margin_with_distance_loss`), losses written by hand, and
whatever runs in a compiled graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import torch
from torch.overrides import get_overridable_functions

from nethook.hooks.hook import Hook, Owner
from nethook.hooks.modes import modes_are_active
from nethook.hooks.warnings import warnings_stay_shown
from nethook.hooks.wrapped import WrappedFunction, WrappedFunctions
from nethook.torch_private import NATIVE_LOSSES

LOSSES: Final = {
    (NATIVE_LOSSES, "cross_entropy_loss"): "cross_entropy",
    (NATIVE_LOSSES, "nll_loss_nd"): "nll",
    (NATIVE_LOSSES, "mse_loss"): "mse",
    (NATIVE_LOSSES, "l1_loss"): "l1",
    (NATIVE_LOSSES, "smooth_l1_loss"): "smooth_l1",
    (NATIVE_LOSSES, "huber_loss"): "huber",
    (NATIVE_LOSSES, "binary_cross_entropy"): "bce",
    (NATIVE_LOSSES, "multi_margin_loss"): "multi_margin",
    (NATIVE_LOSSES, "multilabel_margin_loss"): "multilabel_margin",
    (NATIVE_LOSSES, "soft_margin_loss"): "soft_margin",
    ("torch", "binary_cross_entropy_with_logits"): "bce_with_logits",
    ("torch", "kl_div"): "kl_div",
    ("torch", "ctc_loss"): "ctc",
    ("torch", "poisson_nll_loss"): "poisson_nll",
    ("torch", "cosine_embedding_loss"): "cosine_embedding",
    ("torch", "hinge_embedding_loss"): "hinge_embedding",
    ("torch", "margin_ranking_loss"): "margin_ranking",
    ("torch", "triplet_margin_loss"): "triplet_margin",
}
"""Where `torch.nn.functional` finds a loss function -> the kind of loss it is."""

Seen = Callable[[str, tuple[Any, ...], dict[str, Any], Any], object]
"""`seen(kind, args, kwargs, result)`: the arguments are those of the function that was wrapped."""


class LossFunctions(WrappedFunctions):
    """A handle: `seen` is told of calls of torch's loss functions, without gradient or with it.

        calls = LossFunctions(owner, seen)
        calls.put_on()                       # they are on now; it takes about 15 µs
        calls.remove()                       # and off; any number of times

    Calls that a mode of the user's or a compiler sees are passed on and not told.

    Arguments:
        owner: whose hooks these are.
        seen: what is told.
        with_grad: whether of the calls that a graph is built for, or of the others.
    """

    def __init__(self, owner: Owner, seen: Seen, *, with_grad: bool = False) -> None:
        list_functions()
        super().__init__(
            WrappedFunction(
                holder, name, _OnLoss(owner, f"{holder}.{name}", kind, seen, with_grad), on=False
            )
            for (holder, name), kind in LOSSES.items()
        )


@cache
def list_functions() -> None:
    """Has torch list its functions now.

    It does so once in a process, when it first needs the list; a function that was wrapped at that
    moment would be missing from it for ever. It changes the filters of warnings meanwhile.
    """
    with warnings_stay_shown():
        get_overridable_functions()


class _OnLoss(Hook):
    __slots__ = ("kind", "seen", "with_grad")

    def __init__(self, owner: Owner, address: str, kind: str, seen: Seen, with_grad: bool) -> None:
        super().__init__(owner, address)
        self.kind = kind
        self.seen = seen
        self.with_grad = with_grad

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        told = torch.is_grad_enabled() is self.with_grad and self.owner.alive
        if told and not modes_are_active():
            self.seen(self.kind, args, kwargs, result)
        return result
