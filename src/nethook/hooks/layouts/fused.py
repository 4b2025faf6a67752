"""Running layer by layer what torch would run as one fused kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def layer_by_layer() -> Iterator[None]:
    """A block in which `nn.TransformerEncoder` and similar modules call their parts in evaluation.

    The switch is torch's own and holds for the whole process: blocks of several threads must not
    overlap. The last bits of results differ from those of the fused kernel, so this is for runs
    whose results nobody uses.
    """
    was = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(was)
