"""The rule `update-below-precision`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from tests.doctor.ill import narrow, stuck, well


def test_the_share_is_of_elements_with_a_gradient() -> None:
    (finding,) = narrow(stuck(), still=0.92, without=0.2).found("update-below-precision")
    assert finding.severity == "warning"
    assert "the weights are bfloat16, and in a step 90% of the elements" in finding.message
    assert "less than 0.004 of a weight" in finding.message  # half of 2^-7, as torch.finfo has it


@pytest.mark.parametrize(("still", "said"), [(0.74, False), (0.76, True)])
def test_the_limit(still: float, said: bool) -> None:
    made = narrow(stuck(), still=still, without=0.0, dtype="float16")
    assert bool(made.found("update-below-precision")) is said


def test_a_run_that_does_its_job_is_told_of_nearly_all_alone() -> None:
    (finding,) = narrow(well(), still=0.97, without=0.0).found("update-below-precision")
    assert finding.severity == "info"
    assert not narrow(well(), still=0.94, without=0.0).found("update-below-precision")
