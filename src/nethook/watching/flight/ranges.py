"""Looking at a tensor: is it finite, and what range has it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch

from nethook.addresses.nested import tensors
from nethook.addresses.paths import show_path
from nethook.errors import InputsError
from nethook.hooks.modes import quiet
from nethook.stats.shards import local_part
from nethook.stats.summary import summarise


@dataclass(frozen=True, slots=True)
class Range:
    """What a tensor holds: its shape and type, least and greatest finite element, and the rest."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    min: float
    max: float
    zeros: int = 0
    nan: int = 0
    posinf: int = 0
    neginf: int = 0

    @property
    def finite(self) -> bool:
        """Whether every element is finite."""
        return not (self.nan or self.posinf or self.neginf)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self) | {"shape": list(self.shape)}

    def __str__(self) -> str:
        parts = [f"{self.name} {self.dtype}{list(self.shape)}".lstrip()]
        if self.min <= self.max:
            parts.append(f"from {self.min:.4g} to {self.max:.4g}")
        for name in ("zeros", "nan", "posinf", "neginf"):
            count = getattr(self, name)
            if count:
                word = {"zeros": "zero", "nan": "NaN", "posinf": "+Inf", "neginf": "−Inf"}[name]
                parts.append(f"{count:,} {word}")
        return ", ".join(parts)


def range_of(tensor: torch.Tensor, name: str = "") -> Range | None:
    """The range of a tensor; None where it cannot be read (sparse, meta, …) or has no numbers."""
    with quiet():
        try:
            held = local_part(tensor.detach())
            if held is None:
                return None
            summary = summarise(held, histogram=False)
        except InputsError:
            return None
    return Range(
        name,
        tuple(tensor.shape),
        str(tensor.dtype).removeprefix("torch."),
        summary.min,
        summary.max,
        summary.zeros,
        summary.nan,
        summary.posinf,
        summary.neginf,
    )


def ranges_of(value: object, name: str = "") -> list[Range]:
    """The ranges of all tensors in a value that can be read, by name and path."""
    ranges = [
        range_of(tensor, f"{name}{show_path(path)}")
        for path, tensor in tensors(value)
        if tensor.numel()
    ]
    return [one for one in ranges if one is not None]


def is_finite(value: object) -> bool:
    """Whether every floating-point tensor in a value is finite; what cannot be read counts so."""
    with quiet():
        for _, tensor in tensors(value):
            if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.numel():
                continue
            value_range = range_of(tensor)
            if value_range is not None and not value_range.finite:
                return False
    return True
