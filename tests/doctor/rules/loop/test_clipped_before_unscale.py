"""The rule `clipped-before-unscale`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_two_clippings_of_scaled_gradients() -> None:
    made = Made().loop("clips", 1).loop("scaled_clips", [0] * 198 + [1, 1])
    (finding,) = made.found("clipped-before-unscale")
    assert finding.message.startswith("2 of 200 clippings")
    assert (finding.first_step, finding.last_step) == (198, 199)


def test_a_single_one() -> None:
    made = Made().loop("clips", 1).loop("scaled_clips", [0] * 199 + [1])
    assert not made.found("clipped-before-unscale")
