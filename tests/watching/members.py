"""What a protocol asks for, and a session to hold it against."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import nn

import nethook


def protocols_of(module: ModuleType) -> list[str]:
    """The names of the protocols that a module defines."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and getattr(value, "_is_protocol", False)
        and value.__module__ == module.__name__
    ]


def members(protocol: type) -> set[str]:
    """What a protocol and its bases list: attributes, properties and methods."""
    names: set[str] = set()
    for base in protocol.__mro__:
        if getattr(base, "_is_protocol", False) and base.__module__.startswith("nethook"):
            names |= set(inspect.get_annotations(base))
            names |= {name for name in vars(base) if not name.startswith(("__", "_abc", "_is_"))}
    return names


@contextmanager
def watched(folder: Any) -> Iterator[Any]:
    """The session of a watch that is on."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=folder / "run.db") as watch:
        watch.be_silent()
        yield watch._session
