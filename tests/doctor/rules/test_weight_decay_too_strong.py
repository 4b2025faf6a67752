"""The rule `weight-decay-too-strong`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill import decay


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
