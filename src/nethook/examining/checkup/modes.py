"""Does the model say the same in evaluation twice, and the same as in training where it should?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.examining.checkup.batch import Batch
from nethook.kinds.modules import DIFFERS_IN_EVALUATION
from nethook.kinds.operations import RANDOM
from nethook.restoring.unchanged import unchanged
from nethook.stats.native import readable
from nethook.stats.repeats import unexpanded
from nethook.torch_private import Dropouts
from nethook.tracing.sites.survey import sites


@dataclass(frozen=True, slots=True)
class Modes:
    """What two passes in evaluation, and one in training, had in common."""

    repeats: bool  # two passes in evaluation give the same
    agrees: bool  # training and evaluation give the same
    modal: tuple[str, ...]  # modules that do something else in evaluation
    dropouts: tuple[str, ...]  # operations that drop in evaluation, as far as can be seen
    chance: tuple[str, ...]  # other operations that draw numbers


def compare(model: nn.Module, batch: Batch) -> Modes:
    """Runs a model three times, with different random numbers. The model is a copy."""
    modal = tuple(n for n, m in model.named_modules() if isinstance(m, DIFFERS_IN_EVALUATION))
    with unchanged(model, evaluation=True), torch.no_grad():
        first, second = _run(model, batch, 1), _run(model, batch, 2)
    model.train()
    with torch.no_grad():
        training = _run(model, batch, 3)
    repeats = _same(first, second, exactly=True)
    dropouts, chance = ((), ()) if repeats else _culprits(model, batch)
    return Modes(repeats, _same(first, training), modal, dropouts, chance)


def _run(model: nn.Module, batch: Batch, seed: int) -> list[_Output]:
    torch.manual_seed(seed)
    output = batch.inputs.call(model)
    kept = [tensor for _, tensor in tensors(output) if readable.is_readable(tensor)]
    # What is expanded is compared as what it was expanded from.
    return [_Output(tensor.shape, unexpanded(tensor.detach()).clone()) for tensor in kept]


class _Output(NamedTuple):
    shape: Sequence[int]
    values: torch.Tensor


def _same(one: list[_Output], two: list[_Output], *, exactly: bool = False) -> bool:
    if len(one) != len(two) or any(a.shape != b.shape for a, b in zip(one, two, strict=True)):
        return False
    # Fused kernels of evaluation may differ from those of training in the last digits.
    tolerance = 0.0 if exactly else 1e-4
    return all(
        _alike(a.values, b.values, tolerance if a.values.is_floating_point() else 0.0)
        for a, b in zip(one, two, strict=True)
    )


def _alike(one: torch.Tensor, two: torch.Tensor, tolerance: float) -> bool:
    wide = torch.complex128 if one.is_complex() else torch.float64
    if not (one.is_floating_point() or one.is_complex()):
        return bool((one == two).all())
    return torch.allclose(one.to(wide), two.to(wide), tolerance, tolerance, equal_nan=True)


def _culprits(model: nn.Module, batch: Batch) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Operations that draw random numbers in evaluation."""
    inside = {n for n, m in model.named_modules() if isinstance(m, Dropouts)}
    with unchanged(model, evaluation=True), torch.no_grad():
        addresses = [str(site.address) for site in sites(model, batch.inputs)]
    operations = [
        (address, *address.rpartition("/")[::2]) for address in addresses if "/" in address
    ]
    named = [(address, site, op.partition("#")[0]) for address, site, op in operations]
    drops = tuple(a for a, site, op in named if "dropout" in op and site not in inside)
    chance = tuple(a for a, _, op in named if op in RANDOM)
    return drops, chance
