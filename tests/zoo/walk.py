"""Walks over nested values, written without regard to how nethook does it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

__all__ = ["paired", "tensors_in"]


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


def paired(value: Any, other: Any) -> Iterator[tuple[Tensor, Any]]:
    """Every tensor in a container, with what stands in its place in a container like it.

    Opened are the containers that nethook promises to open, and no other objects.
    """
    if isinstance(value, Tensor):
        yield value, other
    elif isinstance(value, list | tuple):
        for one, two in zip(value, other, strict=True):
            if one is not value:  # a list may hold itself
                yield from paired(one, two)
    elif isinstance(value, Mapping):
        for key in value:
            yield from paired(value[key], other[key])
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from paired(getattr(value, field.name), getattr(other, field.name))
