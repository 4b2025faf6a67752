"""A session to look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

import nethook


@contextmanager
def watched(folder: Any) -> Iterator[Any]:
    """The session of a watch that is on."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=folder / "run.db") as watch:
        watch.be_silent()
        yield watch._session
