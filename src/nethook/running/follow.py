"""`nethook.watch` as a session uses it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nethook.running.options import RunOptions
from nethook.running.session import Watcher

if TYPE_CHECKING:
    from torch import nn


def start_watching(options: RunOptions, models: Mapping[str, nn.Module]) -> Watcher:
    """Begins to follow models."""
    raise NotImplementedError
