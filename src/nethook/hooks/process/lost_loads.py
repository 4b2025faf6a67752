"""Weights that were loaded, and written over before they were used.

Of every weight that `load_state_dict` fills, a few elements and the number of writes so far are
remembered. Before the first step of a training they are compared with what is there: weights that
were drawn anew since have nothing to do with those that were loaded.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import torch
from torch import nn

from nethook.torch_private import version_of

MOST: Final = 4096
"""Weights that are remembered."""
_ELEMENTS: Final = 64
_WRITES: Final = 3
"""Writes that drawing a weight anew may take; a training makes many."""
_ALIKE: Final = 0.5
"""Correlation from which on a weight was changed, and not replaced."""


class _Load(NamedTuple):
    weight: weakref.ref[torch.Tensor]
    writes: int
    elements: torch.Tensor
    line: str


_loads: Final[dict[int, _Load]] = {}


def forget_loads() -> None:
    """Another session begins."""
    _loads.clear()


def note_load(parameters: Iterable[nn.Parameter], line: Callable[[], str]) -> None:
    """Weights were loaded, at a line of the script."""
    matrices = [weight for weight in parameters if weight.dim() > 1 and _is_known(weight)]
    if not matrices or len(_loads) >= MOST:
        return
    said = line()
    for weight in matrices:
        _loads[id(weight)] = _Load(weakref.ref(weight), version_of(weight), _some(weight), said)


def loads_lost(models: Iterable[nn.Module]) -> list[dict[str, Any]]:
    """Loads of which every weight was replaced: `{"line": …, "weights": …, "names": […]}`."""
    lost: dict[str, list[str]] = {}
    kept: set[str] = set()
    for model in models:
        for name, weight in model.named_parameters():
            load = _loads.get(id(weight))
            if load is None or load.weight() is not weight or not _is_known(weight):
                continue
            if _is_replaced(weight, load):
                lost.setdefault(load.line, []).append(name)
            else:
                kept.add(load.line)
    return [
        {"line": line, "weights": len(names), "names": names[:20]}
        for line, names in lost.items()
        if line not in kept
    ]


def _is_known(weight: torch.Tensor) -> bool:
    plain = type(weight) in (torch.Tensor, nn.Parameter) and weight.layout is torch.strided
    return (
        plain
        and weight.is_cpu
        and not weight.is_inference()
        and weight.is_floating_point()
        and weight.numel() >= _ELEMENTS // 2
    )


def _some(weight: torch.Tensor) -> torch.Tensor:
    rows = weight.detach()[: max(1, _ELEMENTS * len(weight) // weight.numel() + 1)]
    return rows.flatten()[:_ELEMENTS].double().clone()


def _is_replaced(weight: torch.Tensor, load: _Load) -> bool:
    if not 0 < version_of(weight) - load.writes <= _WRITES:
        return False
    now, before = _some(weight), load.elements
    if now.shape != before.shape or torch.equal(now, before):
        return False
    now, before = now - now.mean(), before - before.mean()
    size = (now.square().sum() * before.square().sum()).sqrt()
    return bool(size > 0) and abs(float((now * before).sum() / size)) < _ALIKE
