"""The rule `replica-divergence`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import ranks


def test_ranks_that_differ_to_the_end() -> None:
    (finding,) = ranks([1.0, 2.0, 3.0], [1.0, 2.5, 3.5]).found("replica-divergence")
    assert finding.message == "the 2 ranks hold different weights since step 1."
    assert finding.evidence["steps at which ranks differ"].value == 2


def test_one_step_says_nothing() -> None:
    assert not ranks([1.0, 2.0, 3.0], [1.0, 2.0, 3.5]).found("replica-divergence")


def test_ranks_that_agree_again() -> None:
    made = ranks([1.0, 2.0, 3.0, 4.0], [1.0, 2.5, 3.5, 4.0])
    assert not made.found("replica-divergence")


def test_a_file_that_is_missing() -> None:
    made = ranks([1.0, 2.0, 3.0]).rank(1, [1.0, 2.5, 3.5], state="missing")
    assert not made.found("replica-divergence")
