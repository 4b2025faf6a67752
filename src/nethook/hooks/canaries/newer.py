"""A torch that nethook was not tested with: a warning, once, and only where something is lost."""

from __future__ import annotations

import warnings

import torch

from nethook.hooks.canaries.report import failing
from nethook.torch_versions import NEWEST, release, window


class UntestedTorchWarning(UserWarning):
    """This torch is newer than nethook, and lacks names that nethook uses."""


def warn_if_changed() -> None:
    """Warns once in a process, if this torch is newer than those tested and a canary fails."""
    if _asked or release(torch.__version__) <= NEWEST:
        return
    _asked.append(True)
    lost = sorted({name.lost for name in failing(quick=True)})
    if lost:
        warnings.warn(
            f"nethook was tested with torch {window()}, and torch {torch.__version__} has changed "
            f"what it relies on: {'; '.join(lost)}. `python -m nethook --version` "
            "names what is missing; a newer nethook may know this torch.",
            UntestedTorchWarning,
            stacklevel=3,
        )


_asked: list[bool] = []  # not empty once it was asked: the answer is the same for the process
