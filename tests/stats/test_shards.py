"""Which part of a tensor a rank holds; tests/modes has real ranks, here are meshes of any shape."""

from __future__ import annotations

import pytest
import torch
from torch.distributed.tensor import Partial, Replicate, Shard

from nethook.stats import shards
from nethook.stats.rows import Rows


class Mesh:
    """A mesh of ranks, as far as it is asked."""

    def __init__(self, shape, place) -> None:
        self._shape = shape
        self._place = place

    def size(self, dim: int) -> int:
        return self._shape[dim]

    def get_coordinate(self):
        return self._place


class Spread:
    """A tensor that is spread over ranks, as far as it is asked."""

    def __init__(self, local, placements, shape, place) -> None:
        self._local_tensor = local
        self.placements = placements
        self.device_mesh = Mesh(shape, place)


@pytest.fixture(autouse=True)
def spread(monkeypatch) -> None:
    monkeypatch.setattr(shards, "shared_type", lambda: Spread)


@pytest.mark.parametrize(
    ("placements", "shape", "place", "expected"),
    [
        ([Shard(0)], (4,), [2], (2, 4)),
        ([Replicate()], (4,), [2], (0, 1)),
        ([Replicate(), Shard(0)], (2, 4), [1, 3], (3, 4)),  # HSDP: replicas of shards
        ([Shard(0), Shard(1)], (2, 3), [1, 2], (5, 6)),  # FSDP2 with tensor parallel
        ([Shard(0), Replicate()], (2, 3), [1, 2], (1, 2)),
        ([Shard(0)], (4,), None, (0, 4)),  # a rank outside of the mesh
    ],
)
def test_ranks_with_the_same_part_have_the_same_number(placements, shape, place, expected) -> None:
    tensor = Spread(torch.ones(2), placements, shape, place)
    assert shards.part_of(tensor) == expected
    assert shards.is_shared(tensor)
    assert shards.placements_of(tensor) == [str(each) for each in placements]


def test_the_part_that_lies_here_is_read_and_sums_are_not() -> None:
    local = torch.ones(2)
    assert torch.equal(shards.local_part(Spread(local, [Shard(0)], (2,), [0])), local)
    assert shards.local_part(Spread(local, [Partial()], (2,), [0])) is None
    plain = torch.ones(3)
    assert shards.local_part(plain) is plain
    assert shards.part_of(plain) == shards.WHOLE
    assert shards.placements_of(plain) == []


def test_a_slot_measures_the_part_and_counts_what_it_cannot_know() -> None:
    slot = Rows(1).slot(0)
    slot._fold_otherwise(Spread(torch.ones(2), [Shard(0)], (2,), [0]), 1.0)
    slot._fold_otherwise(Spread(torch.ones(2), [Partial()], (2,), [0]), 1.0)
    assert dict(slot.skipped) == {"partial": 1}
    assert slot.rows.matrix[0, 0] == 1
