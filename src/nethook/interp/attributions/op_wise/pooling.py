"""Largest of a window: the Jacobian integrated between two inputs, exactly.

Between two inputs every element of a window moves on a line, and the largest is the upper edge of
these lines. An element's share of the gradient is the part of the way on which it is the largest.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

_Sizes = tuple[int, int]


def pool_gradient(
    given: torch.Tensor, base: torch.Tensor, grad: torch.Tensor, kernel_size: Any,
    stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> torch.Tensor | None:  # fmt: skip
    """What a gradient of max_pool1d or max_pool2d passes back; None: another form of pooling."""
    dims = grad.ndim - 2
    if dims not in (1, 2) or ceil_mode or return_indices:
        return None
    kernel, step, apart = (
        _pair(v, dims, 1) for v in (kernel_size, stride or kernel_size, dilation)
    )
    pad = _pair(padding, dims, 0)
    # Padding never is the largest, as long as it is far below everything.
    low = float(torch.minimum(given.min(), base.min())) - 1.0
    first, last = (_windows(each, kernel, step, pad, apart, low) for each in (base, given))
    share = shares(first, last)  # (N, C, window, places)
    passed = share * grad.flatten(2)[:, :, None]
    height, width = _two(given).shape[2:]
    shape = height + 2 * pad[0], width + 2 * pad[1]
    whole = F.fold(passed.flatten(1, 2), shape, kernel, apart, 0, step)
    inside = whole[:, :, pad[0] : shape[0] - pad[0], pad[1] : shape[1] - pad[1]]
    return inside.reshape(given.shape)


def shares(first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
    """For lines from `first` to `last`, (…, lines, places): the part of the way each is on top."""
    slope = last - first
    count = first.shape[-2]
    parts = []
    for one in range(count):
        begin = torch.zeros_like(first[..., 0, :])
        end = torch.ones_like(begin)
        for other in range(count):
            if other == one:
                continue
            ahead = first[..., one, :] - first[..., other, :]
            faster = slope[..., one, :] - slope[..., other, :]
            meet = -ahead / torch.where(faster == 0, torch.ones_like(faster), faster)
            begin = torch.where(faster > 0, torch.maximum(begin, meet), begin)
            end = torch.where(faster < 0, torch.minimum(end, meet), end)
            # The same line twice: the first of them counts.
            loses = (ahead < 0) | ((ahead == 0) & (other < one))
            end = torch.where((faster == 0) & loses, torch.zeros_like(end), end)
        parts.append((end - begin).clamp(min=0))
    return torch.stack(parts, -2)


def _windows(
    value: torch.Tensor, kernel: _Sizes, step: _Sizes, pad: _Sizes, apart: _Sizes,
    low: float,
) -> torch.Tensor:  # fmt: skip
    two = F.pad(_two(value), (pad[1], pad[1], pad[0], pad[0]), value=low)
    columns: torch.Tensor = F.unfold(two, kernel, apart, 0, step).unflatten(1, (two.shape[1], -1))
    return columns


def _two(value: torch.Tensor) -> torch.Tensor:
    """(N, C, L) as (N, C, 1, L)."""
    return value.unsqueeze(2) if value.ndim == 3 else value


def _pair(value: Any, dims: int, beside: int) -> _Sizes:
    """A size for both dimensions; of a signal, `beside` stands for the first."""
    given = [int(value)] * dims if isinstance(value, int) else [int(size) for size in value]
    given = given * dims if len(given) == 1 else given
    return (given[0], given[1]) if dims == 2 else (beside, given[0])
