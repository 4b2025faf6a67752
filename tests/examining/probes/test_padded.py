"""Which positions of tokens are padding."""

from __future__ import annotations

import torch

from nethook.examining.probes.padded import padding_of


def tokens(*, left: bool = False, value: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    words = torch.randint(5, 30, (16, 12))
    pads = torch.arange(12) >= torch.randint(3, 12, (16, 1))
    if left:
        pads = pads.flip(1)
    return words.masked_fill(pads, value), pads


def test_padding_at_either_end() -> None:
    for left in (False, True):
        given, pads = tokens(left=left)
        found = padding_of(given)
        assert found is not None
        assert torch.equal(found, pads)


def test_what_is_no_padding() -> None:
    given, _ = tokens()
    assert padding_of(given[:4]) is None  # too few to tell
    assert padding_of(given[:, :3]) is None
    assert padding_of(given[..., None]) is None
    torch.manual_seed(0)
    assert padding_of(torch.randint(5, 30, (16, 12))) is None
    ends = torch.randint(5, 30, (16, 12))
    ends[:, -1] = 1  # each ends in a full stop
    assert padding_of(ends) is None
    counts = (torch.rand(16, 12) < 0.3).long()  # zeros that are values
    assert padding_of(counts) is None
    empty = given.clone()
    empty[3] = 0
    assert padding_of(empty) is None
