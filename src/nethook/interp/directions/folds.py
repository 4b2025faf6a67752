"""Folds of a cross-validation: no group is in two of them, and classes are spread evenly."""

from __future__ import annotations

from typing import Any

import torch

from nethook.errors import OptionError


def numbered_groups(groups: Any, count: int) -> torch.Tensor | None:
    """The number of each row's group."""
    if groups is None:
        return None
    listed = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(listed) != count:
        raise OptionError(f"`groups` must have one group per row, {count}; got {len(listed)}.")
    numbers: dict[Any, int] = {}
    return torch.tensor([numbers.setdefault(group, len(numbers)) for group in listed])


def make_folds(
    labels: torch.Tensor, groups: torch.Tensor | None, count: int, seed: int
) -> torch.Tensor:
    """The fold of each row. Rows, or groups with most of one class, are dealt out in turn."""
    random = torch.Generator().manual_seed(seed)
    units = torch.arange(len(labels)) if groups is None else groups
    number = int(units.max()) + 1
    if number < count:
        what = "rows" if groups is None else "groups"
        raise OptionError(
            f"`folds` must be at most the number of {what}, {number}; got {count}. Give more "
            f"{what}, or fewer folds."
        )
    sizes = torch.bincount(units, minlength=number)
    order = torch.randperm(number, generator=random)
    if not labels.is_floating_point():
        classes = int(labels.max()) + 1
        table = torch.zeros(number, classes).index_put_(
            (units, labels), torch.ones(len(labels)), accumulate=True
        )
        order = order[table.argmax(1)[order].argsort(stable=True)]
    elif labels.ndim == 1:  # rows of close targets go to different folds
        means = torch.zeros(number, dtype=torch.double).index_add_(0, units, labels) / sizes
        order = means.argsort(stable=True) if groups is None else order
    if groups is not None:  # the largest first, each to the fold with the fewest rows
        order = order[sizes[order].argsort(descending=True, stable=True)]
    fold = torch.zeros(number, dtype=torch.long)
    filled = [0] * count
    for unit in order.tolist():
        least = min(range(count), key=lambda place: filled[place])
        fold[unit] = least
        filled[least] += int(sizes[unit])
    return fold[units]


def control_labels(labels: torch.Tensor, groups: torch.Tensor | None, seed: int) -> torch.Tensor:
    """Labels that say nothing of the features: shuffled, between groups where each has but one."""
    random = torch.Generator().manual_seed(seed + 1)
    if groups is not None:
        number = int(groups.max()) + 1
        first = torch.zeros(number, *labels.shape[1:], dtype=labels.dtype)
        first[groups] = labels
        if torch.equal(first[groups], labels):
            return first[torch.randperm(number, generator=random)][groups]
    return labels[torch.randperm(len(labels), generator=random)]
