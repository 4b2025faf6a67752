"""Samples are independent."""

from __future__ import annotations

import torch

from nethook.examining.experiments.network.samples_independent import SamplesIndependent, mixing
from nethook.examining.probes.rows import sample_axes
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


def test_a_softmax_over_the_batch_is_named() -> None:
    result = SamplesIndependent().run(ILL["softmax_over_the_batch"][1]().rehearsal())
    assert result.outcome == "found"
    assert result.facts["operation"] == "a softmax over dimension 0"
    assert result.facts["samples"] == 16
    assert "data loader" in result.facts["shown"]


def test_batch_norm_of_its_own_batch_is_left_alone() -> None:
    experiment = SamplesIndependent()
    rehearsal = HEALTHY["batch_norm_without_statistics"]().rehearsal()
    assert "statistics of the batch" in (experiment.applies(rehearsal) or "")
    result = experiment.run(HEALTHY["batch_norm_of_one_task_at_a_time"]().rehearsal())
    assert result.outcome == "not applicable"
    assert "statistics of the batch" in result.reason


def test_experts_choose_and_do_not_mix() -> None:
    outcomes = set()
    for seed in range(6):
        torch.manual_seed(seed)
        for name in ("experts_with_limited_room", "experts_for_tokens_with_limited_room"):
            outcomes.add(SamplesIndependent().run(HEALTHY[name]().rehearsal()).outcome)
    assert outcomes == {"fine", "question"}


def test_the_rows_that_move_with_a_sample_are_its_own() -> None:
    rehearsal = HEALTHY["classifier"]().rehearsal()
    (axis,) = sample_axes(rehearsal)
    told = mixing(rehearsal, axis)
    assert told is not None
    assert told.others == 0
    for sample, rows in told.rows.items():
        assert rows.nonzero().reshape(-1).tolist() == [sample]


def test_time_first_is_recognised_without_a_loader() -> None:
    result = SamplesIndependent().run(HEALTHY["rollouts_time_first"]().rehearsal())
    assert result.outcome == "fine"
    assert result.facts["samples"] == 8
