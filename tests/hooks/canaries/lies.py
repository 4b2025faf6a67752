"""What a canary must do when torch gives another answer than it did."""

from __future__ import annotations

from types import ModuleType

import pytest

from nethook import torch_private
from nethook.hooks.canaries.registry import CANARIES
from nethook.hooks.canaries.report import works


def check_noticed(
    patch: pytest.MonkeyPatch, file: ModuleType, path: str, attribute: str, lie: object
) -> None:
    """The canary of `path` stands in `file`, works, and fails once `attribute` answers a lie."""
    assert CANARIES[path].__module__ == file.__name__
    assert works(path)
    patch.setattr(torch_private, attribute, lie)
    assert not works(path)
