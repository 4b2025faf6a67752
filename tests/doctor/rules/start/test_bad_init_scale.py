"""The rule `bad-init-scale`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.doctor.rules.start import bad_init_scale
from tests.doctor.ill import bad, scales, stuck, well
from tests.doctor.synthetic import Made, falling, flat


def test_a_signal_that_grows() -> None:
    (finding,) = scales(stuck(), 10.0, 31.0, 1.0).found("bad-init-scale")
    assert finding.sites == ("fc1",)
    assert finding.evidence["change of the signal over depth"].value == pytest.approx(31.0)
    assert finding.message.startswith("weights start too large: at step 0 the signal is 31 times")
    assert not scales(stuck(), 10.0, 29.0, 1.0).found("bad-init-scale")


def faded(made: Made, *sizes: float) -> Made:
    """Layers whose signal shrinks, and whose gradient shrinks as much on its way back."""
    scales(made, *sizes)
    for at, size in enumerate(sizes):
        made.series(f"fc{at}", "grads", rms=sizes[-1] / size)
    return made


def test_a_signal_that_is_lost_over_several_layers() -> None:
    (finding,) = faded(stuck(), 0.1, 0.01, 0.001).found("bad-init-scale")
    assert "100 times as small at `fc1`" in finding.message
    assert not faded(well(), 0.1, 0.01, 0.001).found("bad-init-scale")
    # The signal comes back by another way: a residual branch that starts small.
    assert not scales(stuck(), 0.1, 0.01, 0.001).found("bad-init-scale")


def test_one_layer_may_start_small_wherever_it_stands() -> None:
    assert not faded(stuck(), 1.0, 1.0, 1e-4).found("bad-init-scale")
    assert not faded(stuck(), 1.0, 1e-4, 1e-4, 1e-4).found("bad-init-scale")


def test_a_norm_sets_a_scale_and_does_not_inherit_one() -> None:
    made = stuck().series("", "inputs", rms=1.0, info={"dtype": "int64"})
    made.info["ops"] = [{"site": "tokens", "op": "embedding", "from": []}]
    made.module("tokens", "Embedding", parameters=["tokens.weight"]).parameter("tokens.weight")
    made.series("tokens", "outputs", rms=0.02)
    made.module("ln", "LayerNorm", parameters=["ln.weight"]).parameter("ln.weight", shape=[16])
    made.series("ln", "outputs", rms=1.0)
    for at, size in enumerate((1.2, 1.1, 0.9)):
        made.module(f"fc{at}", parameters=[f"fc{at}.weight"]).parameter(f"fc{at}.weight")
        made.series(f"fc{at}", "outputs", rms=size)
    assert not made.found("bad-init-scale")


@pytest.mark.parametrize("loaded", [True, False])
def test_nobody_is_told_to_start_loaded_weights_anew(loaded: bool) -> None:
    made = scales(stuck(), 10.0, 100.0, 1000.0)
    made.info["loaded"] = loaded
    assert bool(made.found("bad-init-scale")) is not loaded


def test_a_run_that_had_learnt_shows_that_its_start_was_good() -> None:
    course = np.r_[falling(120), flat(80, 2.4)]
    assert not scales(bad(course), 10.0, 100.0, 50.0).found("bad-init-scale")


def test_what_the_pre_flight_check_reports() -> None:
    signal = bad_init_scale.signal_before_training("fc1", 45.0)
    assert "too large: the signal at `fc1` is 45 times" in signal.message
    assert signal.evidence["signal by what it should be"].threshold == 30
    loss = bad_init_scale.loss_before_training(23.0, 2.3)
    assert "the first loss is 23, where 2.3 is usual" in loss.message
    assert loss.evidence["first loss by the usual one"].value == pytest.approx(10.0)
