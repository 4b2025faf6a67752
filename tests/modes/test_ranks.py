"""What is to be said of several ranks besides the matrix."""

from __future__ import annotations

import nethook
from tests.modes.two_ranks import outcome, run_path


def test_ranks_that_were_not_wrapped_are_found() -> None:
    outcome("no_ddp")
    codes = [finding.code for finding in nethook.diagnose(run_path("no_ddp"))]
    assert "replica-divergence" in codes
    with nethook.open_run(run_path("no_ddp")) as run:
        # Of a parameter that is said to be the same everywhere, one rank's is shown.
        assert (run.series("0.weight", "params")["count"] == 160).all()


def test_a_loss_is_the_mean_over_ranks() -> None:
    outcome("ddp_watch")
    with nethook.open_run(run_path("ddp_watch")) as run:
        name = next(each for each in run.scalars if each.startswith("loss:"))
        own = [run.rank(rank).scalars[name].value for rank in (0, 1)]
        assert (abs((own[0] + own[1]) / 2 - run.scalars[name].value) < 1e-12).all()
        assert run.series("@loop", "forwards").counted == 2
