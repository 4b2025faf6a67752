"""The rule `weights-not-restored`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import untrained_twin, well


def test_a_network_that_nobody_has_trained() -> None:
    (finding,) = untrained_twin().found("weights-not-restored")
    assert finding.severity == "info"
    assert finding.message.startswith("after 200 steps another Net was evaluated")
    assert "its 4 weights are still those of its constructor" in finding.message
    assert finding.first_step == 199
    assert "load_state_dict" in finding.fix


def test_nothing_was_met_or_too_early() -> None:
    assert not well().found("weights-not-restored")
    assert not untrained_twin(19).found("weights-not-restored")
