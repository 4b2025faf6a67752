"""Copies of samples in a batch, and targets that lie as they do or otherwise."""

from __future__ import annotations

import pytest
import torch

from nethook.examining.probes.copies_of_samples import laid_otherwise

SAMPLES, COPIES, PLACES = 32, 4, 5
X = torch.randn(SAMPLES, 20, generator=torch.Generator().manual_seed(0))


def draws(seed: int = 1) -> torch.Tensor:
    """Of each sample some answers, mostly the same ones: (sample, copy, place)."""
    generator = torch.Generator().manual_seed(seed)
    answer = torch.randint(8, (SAMPLES, 1, PLACES), generator=generator)
    other = torch.randint(8, (SAMPLES, COPIES, PLACES), generator=generator)
    kept = torch.rand(SAMPLES, COPIES, PLACES, generator=generator) < 0.7
    return torch.where(kept, answer.expand_as(other), other)


RUNS = draws().reshape(-1, PLACES)
TILES = draws().transpose(0, 1).reshape(-1, PLACES)
TILED, RUN = X.repeat(COPIES, 1), X.repeat_interleave(COPIES, 0)


@pytest.mark.parametrize(
    ("inputs", "targets", "laid"), [(TILED, RUNS, "tiles"), (RUN, TILES, "runs")]
)
def test_inputs_and_targets_that_lie_otherwise(
    inputs: torch.Tensor, targets: torch.Tensor, laid: str
) -> None:
    for target in (targets, targets.flatten()):
        told = laid_otherwise([inputs], target)
        assert told is not None
        assert (told["laid"], told["copies"]) == (laid, COPIES)
        assert told["own"] < told["chance"] + 0.1 < told["other"]


NOISE = torch.randint(8, RUNS.shape, generator=torch.Generator().manual_seed(3))
TASK = torch.arange(COPIES).repeat_interleave(SAMPLES)
HEALTHY = {
    "both in tiles": ([TILED], TILES),
    "both in runs": ([RUN], RUNS),
    "nothing to learn": ([TILED], NOISE),
    # A task per tile: what is asked of a sample differs, and targets are alike within a task.
    "a task per tile": ([TILED, TASK[:, None]], TASK[:, None].expand(-1, PLACES)),
    "sorted by class, no copies": ([torch.randn(128, 20)], torch.arange(128) // 16),
    "one input for all": ([torch.ones(128, 20)], torch.arange(128) // 16),
    "two views, with the number of the other": ([X.repeat(2, 1)], torch.arange(64).roll(32)),
    "numbers": ([TILED], RUNS.float()),
    "an input without samples": ([TILED, torch.randn(3)], RUNS),
    "pairs": ([X[:3].repeat(2, 1)], torch.tensor([0, 0, 1, 1, 2, 2])),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_left_alone(name: str) -> None:
    assert laid_otherwise(*HEALTHY[name]) is None
