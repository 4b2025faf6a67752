"""Predictions line up with targets."""

from __future__ import annotations

from nethook.examining.experiments.targets.rows_meet_targets import RowsMeetTargets
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


def test_a_view_inside_the_model_is_found_by_sample() -> None:
    result = RowsMeetTargets().run(ILL["logits_viewed_in_the_model"][1]().rehearsal())
    assert result.outcome == "found"
    assert result.facts["samples"] == 16
    assert result.facts["samples_beside"] == 4


def test_a_view_after_the_model_is_found_by_position() -> None:
    result = RowsMeetTargets().run(ILL["scores_reshaped_for_the_loss"][1]().rehearsal())
    assert result.outcome == "found"
    # Row 1 of (class, time) laid flat in threes: the numbers 3, 4, 5 of the first class.
    assert (result.facts["position"], result.facts["made_of"]) == (1, [3, 4, 5])
    assert all(line.startswith("ill.py:") for line in result.facts["lines"])


def test_where_it_does_not_apply() -> None:
    experiment = RowsMeetTargets()
    for name, words in (
        ("critic_without_targets", "no target is known"),
        ("speech_with_ctc", "do not go together"),
        ("model_that_returns_its_loss", "layout of the target is not known"),
    ):
        assert words in (experiment.applies(HEALTHY[name]().rehearsal()) or "")


def test_whole_samples_in_another_order_are_left_alone() -> None:
    result = RowsMeetTargets().run(HEALTHY["sorted_by_length_in_the_model"]().rehearsal())
    assert result.outcome == "fine"
