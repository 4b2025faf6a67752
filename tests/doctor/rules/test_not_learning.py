"""The rule `not-learning`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.synthetic import Made


def test_a_short_run_that_begins_where_another_ended_is_a_note() -> None:
    def severity(steps: int, **facts: object) -> str:
        losses = 1.1 + np.resize([0.0, 0.2, -0.2, 0.1, -0.1], steps)
        made = Made(steps).loss(losses).record(floored=True, **facts)
        (finding,) = made.found("not-learning")
        return finding.severity

    assert severity(150, kind="unknown") == "info"
    assert severity(800, kind="unknown") == "error"
