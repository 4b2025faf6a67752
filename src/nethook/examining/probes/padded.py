"""Sequences of tokens that were made equally long: which positions are padding.

A token counts as padding where it fills the end (or the beginning) of rows of different lengths and
stands nowhere else.
"""

from __future__ import annotations

from typing import Final

import torch

FEWEST_ROWS: Final = 8
FEWEST_STEPS: Final = 4
SHARE: Final = 0.1
"""Of all positions that must be padding, for it to matter."""


def padding_of(tokens: torch.Tensor) -> torch.Tensor | None:
    """(samples, steps) of whole numbers -> which of them are padding; None where none are."""
    if tokens.dim() != 2 or len(tokens) < FEWEST_ROWS or tokens.size(1) < FEWEST_STEPS:
        return None
    for turned in (False, True):
        rows = tokens.flip(1) if turned else tokens
        pads = _at_ends(rows)
        if pads is not None:
            return pads.flip(1) if turned else pads
    return None


def _at_ends(rows: torch.Tensor) -> torch.Tensor | None:
    value = rows[:, -1].mode().values
    same = rows == value
    pads = same.long().flip(1).cummin(1).values.flip(1).bool()
    lengths = pads.sum(1)
    # Elsewhere it stands for itself, and rows that all end in the same way were not filled up.
    if bool((same & ~pads).any()) or len(lengths.unique()) < 3:
        return None
    if float(pads.float().mean()) < SHARE or bool((lengths == rows.size(1)).any()):
        return None
    return pads
