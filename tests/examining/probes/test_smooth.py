"""Whether one number of an output follows several samples."""

from __future__ import annotations

import pytest
import torch

from nethook.examining.probes.rows import sample_axes
from nethook.examining.probes.smooth import follows_several, has_samples
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


@pytest.mark.parametrize(
    "name", ["classifier", "experts_with_limited_room", "experts_for_tokens_with_limited_room"]
)
def test_one_sample(name: str) -> None:
    torch.manual_seed(0)
    rehearsal = HEALTHY[name]().rehearsal()
    axis = sample_axes(rehearsal)[0]
    for element in (0, 5, 20):
        assert not follows_several(rehearsal, axis, 0, element)


@pytest.mark.parametrize(
    "name", ["softmax_over_the_batch", "attention_over_the_batch", "state_of_two_directions_viewed"]
)
def test_several_samples(name: str) -> None:
    rehearsal = ILL[name][1]().rehearsal()
    assert follows_several(rehearsal, sample_axes(rehearsal)[0], 0, 5)


def test_outputs_with_a_row_per_sample() -> None:
    assert has_samples(torch.zeros(8, 3), 8)
    assert has_samples(torch.zeros(5, 8), 8)
    assert has_samples(torch.zeros(40, 3), 8)
    assert not has_samples(torch.zeros(8, 8), 8)
    assert not has_samples(torch.zeros(()), 8)
    assert not has_samples(torch.zeros(8, dtype=torch.long), 8)
