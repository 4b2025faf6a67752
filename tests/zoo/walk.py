"""Walks over nested values, written without regard to how nethook does it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["held", "modules_of", "paired", "tensors_in"]


def tensors_in(value: object) -> list[Tensor]:
    """Every tensor in a nested value, in order."""
    found: list[Tensor] = []
    seen: set[int] = set()

    def walk(part: object) -> None:
        if isinstance(part, Tensor):
            found.append(part)
            return
        if part is None or isinstance(part, str | bytes | type) or id(part) in seen:
            return
        seen.add(id(part))
        if isinstance(part, dict):
            for item in part.values():
                walk(item)
        elif isinstance(part, list | tuple):
            for item in part:
                walk(item)
        elif hasattr(part, "__slots__") and not hasattr(part, "__dict__"):
            for name in part.__slots__:
                walk(getattr(part, name, None))
        elif hasattr(part, "__dict__") and not callable(part):
            walk(vars(part))

    walk(value)
    return found


def modules_of(model: nn.Module) -> dict[str, nn.Module]:
    """Every module once, by its first name: by identity, for modules may compare equal."""
    seen: set[int] = set()
    found = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if id(module) not in seen:
            seen.add(id(module))
            found[name] = module
    return found


def parts_of(value: Any) -> list[Any] | None:
    """What lies in a container, in order; None for what nethook does not promise to open."""
    if isinstance(value, torch.Size):  # numbers, and nothing else
        return None
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping):
        return list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return None


def held(value: Any) -> Any:
    """A value as nested lists of the very same tensors: its containers may change afterwards."""
    parts = None if isinstance(value, Tensor) else parts_of(value)
    if parts is None:
        return value
    return [None if part is value else held(part) for part in parts]  # a list may hold itself


def paired(value: Any, other: Any) -> Iterator[tuple[Tensor, Any]]:
    """Every tensor in a container, with what stands in its place in a container like it."""
    if isinstance(value, Tensor):
        yield value, other
        return
    parts = parts_of(value)
    if parts:
        for one, two in zip(parts, parts_of(other) or (), strict=True):
            yield from paired(one, two)
