"""From the output of a layer to one vector per sample.

Which dimensions are pooled follows from how many there are:

    (samples, features)                  nothing to pool
    (samples, tokens, features)          over the tokens, of which a mask may leave some out
    (samples, channels, height, width)   over all dimensions after the channels; also in 3-D
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch

from nethook.addresses.inputs import Inputs
from nethook.errors import OptionError

Pool: TypeAlias = (
    Literal["mean", "max", "first", "cls", "last", "flatten"]
    | Callable[[torch.Tensor], torch.Tensor]
    | None
)
Mask: TypeAlias = torch.Tensor | str | None


def check_pool(pool: object) -> None:
    """Raises where `pool` is nothing that can pool."""
    if pool is None or callable(pool) or (isinstance(pool, str) and pool in _POOLS):
        return
    names = ", ".join(f'"{name}"' for name in _POOLS)
    raise OptionError(f"`pool` must be {names}, a function of one tensor, or None; got {pool!r}.")


def find_mask(mask: Mask, inputs: Inputs) -> torch.Tensor | None:
    """The mask itself: as it was given, or the input of that name where there is one."""
    tensor: Any = inputs.kwargs.get(mask) if isinstance(mask, str) else mask
    if tensor is None:
        return None
    if not isinstance(tensor, torch.Tensor):
        raise OptionError(
            "`mask` must be a tensor of shape (samples, tokens), the name of such an input, or "
            f"None to count every token; got {type(tensor).__name__}."
        )
    return tensor


def pooled(tensor: torch.Tensor, pool: Pool, mask: torch.Tensor | None) -> torch.Tensor:
    """One tensor, pooled."""
    if pool is None:
        return tensor
    if not isinstance(pool, str):
        result = pool(tensor)
        if not isinstance(result, torch.Tensor):
            raise OptionError(
                f"`pool` must return a tensor; got {type(result).__name__}. "
                "Check what the function returns."
            )
        return result
    fits = None if mask is None or tensor.dim() != 3 else _fitting(mask, tensor)
    return _POOLS[pool](tensor, fits)


def _fitting(mask: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    if mask.shape != tensor.shape[:2]:
        raise OptionError(
            f"`mask` must have the shape {tuple(tensor.shape[:2])} to pool an output of shape "
            f"{tuple(tensor.shape)} over its tokens; got {tuple(mask.shape)}. Pass mask=..., or "
            "mask=None to count every token."
        )
    return mask.to(tensor.device).bool()


def _mean(tensor: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    if mask is not None:
        # Not a product with the mask: what is masked may be NaN.
        total = tensor.masked_fill(~mask.unsqueeze(-1), 0).sum(1)
        return total / mask.sum(1, keepdim=True).clamp(min=1).to(total.dtype)
    over = _over(tensor)
    return tensor.mean(over) if over else tensor


def _max(tensor: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    if mask is not None:
        lowest = -torch.inf if tensor.is_floating_point() else torch.iinfo(tensor.dtype).min
        highest = tensor.masked_fill(~mask.unsqueeze(-1), lowest).amax(1)
        return highest.masked_fill(~mask.any(1, keepdim=True), 0)  # no token at all
    over = _over(tensor)
    return tensor.amax(over) if over else tensor


def _first(tensor: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
    # Without the mask: a class token stands at place 0 whatever is padded.
    return _tokens(tensor, "first")[:, 0]


def _last(tensor: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    tokens = _tokens(tensor, "last")
    if mask is None:
        return tokens[:, -1]
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    last = torch.where(mask, positions, 0).amax(1)  # the last that counts, wherever padding stands
    return tokens[torch.arange(len(tokens), device=tokens.device), last]


def _flatten(tensor: torch.Tensor, _: torch.Tensor | None) -> torch.Tensor:
    return tensor.flatten(1)


def _over(tensor: torch.Tensor) -> list[int]:
    return [1] if tensor.dim() == 3 else list(range(2, tensor.dim()))


def _tokens(tensor: torch.Tensor, pool: str) -> torch.Tensor:
    if tensor.dim() != 3 or tensor.shape[1] == 0:
        raise OptionError(
            '`pool` must be "mean", "max", "flatten" or a function for an output of shape '
            f'{tuple(tensor.shape)}; got "{pool}", which takes one token of (samples, tokens, '
            "features)."
        )
    return tensor


_POOLS: dict[str, Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]] = {
    "mean": _mean,
    "max": _max,
    "first": _first,
    "cls": _first,
    "last": _last,
    "flatten": _flatten,
}
