"""Inputs repeated along the batch."""

from __future__ import annotations

import torch

import nethook
from nethook.interp.rows import repeat_rows


def test_tensors_with_the_batchs_rows_are_repeated() -> None:
    x, shared = torch.arange(6).view(2, 3), torch.ones(1, 3)
    given = nethook.inputs(x, mask=x > 2, bias=shared, scale=torch.tensor(2.0), flag=True)
    new = repeat_rows(given, 3, 2)
    assert torch.equal(new.args[0], torch.cat([x, x, x]))
    assert torch.equal(new.kwargs["mask"], torch.cat([x, x, x]) > 2)
    assert new.kwargs["bias"] is shared
    assert new.kwargs["scale"].ndim == 0
    assert new.kwargs["flag"] is True
    assert repeat_rows(given, 1, 2) is given
