"""The rule `weight-decay-too-strong`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.doctor.ill import decay


@pytest.mark.parametrize(("end", "reports"), [(0.49, True), (0.51, False)])
def test_weights_that_shrink_to_half(end: float, reports: bool) -> None:
    made = decay(50.0).series("fc.weight", "params", rms=np.geomspace(1.0, end, 200))
    found = made.found("weight-decay-too-strong")
    assert bool(found) is reports
    if reports:
        assert found[0].sites == ("fc.weight",)
        assert "weight decay 50 at a rate of 0.01 takes 50.00%" in found[0].message


def test_an_optimizer_with_a_decay_that_outweighs_all_else() -> None:
    made = decay(10.0).rate(*[0.003] * 200).loop("update_ratio", 0.031)
    made.series("fc.weight", "params", rms=np.geomspace(1.0, 0.7, 200))
    (finding,) = made.found("weight-decay-too-strong")
    assert finding.evidence["decay by the whole update"].value > 0.9
    assert (
        not decay(10.0)
        .rate(*[0.003] * 200)
        .loop("update_ratio", 0.3)
        .series("fc.weight", "params", rms=np.geomspace(1.0, 0.7, 200))
        .found("weight-decay-too-strong")
    )
