"""The rule `non-finite`: when it reports, and when it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.doctor.ill import well
from tests.doctor.synthetic import Made, falling


def test_what_the_flight_recorder_has_named() -> None:
    made = well().event("non-finite", 57, site="sqrt", reason="overflow.", fix="Use bfloat16.")
    (finding,) = made.found("non-finite")
    assert finding.message == "the first NaN or infinity came at step 57 from `sqrt`: overflow."
    assert finding.fix == "Use bfloat16."
    assert finding.sites == ("sqrt",)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([7], "at step 57 on rank 7 from `sqrt`: overflow."),
        ([9, 3, 9], "at step 57 on 2 ranks, the first of them 3, from `sqrt`: overflow."),
    ],
)
def test_of_many_ranks_those_that_met_it(ranks: list[int], said: str) -> None:
    made = well()
    made.info["world_size"] = 1000
    for rank in ranks:
        made.event("non-finite", 57, site="sqrt", reason="overflow.")
        made.events[-1] = replace(made.events[-1], rank=rank)
    made.event("non-finite", 58, site="sqrt", reason="overflow.")
    (finding,) = made.found("non-finite")
    assert finding.message == f"the first NaN or infinity came {said}"


def losses(*last: float) -> Made:
    return Made().loss(np.r_[falling(200 - len(last)), last])


def test_a_loss_that_is_not_finite_and_stays_so() -> None:
    (finding,) = losses(np.nan, np.inf, np.nan).found("non-finite")
    assert finding.message == "the loss train.py:10 is not finite from step 197 on."
    assert finding.evidence["losses that are not finite"].value == 3


def test_half_of_the_losses_since_then() -> None:
    assert losses(np.nan, 0.1).found("non-finite")
    assert not losses(np.nan, 0.1, 0.1).found("non-finite")
