"""A run as rules see it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nethook
from nethook.doctor import history as history_module
from nethook.doctor.history import NOTHING, Curve, History
from tests.doctor.synthetic import LOSS, Made


def curve(*values: float, steps: int = 1) -> Curve:
    count = len(values)
    return Curve(np.arange(count) * steps, np.asarray(values), np.full(count, steps))


def test_parts_of_a_curve() -> None:
    whole = curve(1.0, 2.0, 3.0, 4.0)
    assert whole.since(2).value.tolist() == [3.0, 4.0]
    assert whole.until(1).value.tolist() == [1.0, 2.0]
    assert whole.where(whole.value > 3).step.tolist() == [3]
    assert len(whole) == 4


def test_the_total_counts_every_step_of_a_window() -> None:
    assert curve(1.0, 2.0, steps=5).total == 15.0
    assert NOTHING.total == 0.0
    assert len(NOTHING) == 0


def test_what_is_read_is_noted() -> None:
    made = Made().module("fc", activation="linear").parameter("fc.weight").record(kind="mse")
    history = made.event("groups", groups=[]).rate(0.1).history()
    history.loop("backwards")
    history.modules[0].fact("activation")
    history.parameters[0].fact("shape")
    history.records()[0].fact("kind")
    history.events("groups")
    history.rates()
    history.info("ops")
    assert history.read == {
        "series.@loop.backwards.mean", "module.activation", "parameter.shape", "loss.kind",
        "event.groups", "scalar.lr", "info.ops",
    }  # fmt: skip


def test_a_field_that_is_missing_is_its_default() -> None:
    history = Made().module("fc").history()
    assert history.modules[0].fact("nothing") is None
    assert history.modules[0].fact("nothing", 3) == 3
    assert history.info("nothing", "none") == "none"
    assert history.curve("fc", "outputs") is NOTHING
    assert history.scalar("loss") is NOTHING
    assert history.active_units("fc", 0) is None
    assert history.series_fact("fc", "outputs", "dtype", "?") == "?"


def test_an_earlier_end() -> None:
    made = Made().loss(np.arange(200.0)).record(0, 50).event("groups", 60).rate(*np.ones(200))
    history = made.history(until=49)
    assert history.steps == 50
    assert [record.step for record in history.records()] == [0]
    assert not history.events("groups")
    assert len(history.losses()[0]) == 50
    assert len(history.rates()["0.0"]) == 50


def test_losses_step_by_step_where_they_were_kept() -> None:
    made = Made().loss([5.0, 3.0], at=[9, 19])  # two windows
    made.scalar(f"loss:{LOSS}", [10, 11, 12], [4.0, np.inf, 2.0])
    ((name, joined),) = made.history().named_losses()
    assert name == LOSS
    assert joined.step.tolist() == [9, 10, 11, 12]
    np.testing.assert_array_equal(joined.value, [5.0, 4.0, np.nan, 2.0])


def test_what_is_made_once_notes_its_fields_for_every_rule() -> None:
    history = Made().history()
    calls = []

    def make(run: History) -> int:
        calls.append(run.info("ops"))
        return 7

    assert history.once("seven", make) == 7
    history.read.clear()
    assert history.once("seven", make) == 7
    assert history.read == {"info.ops"}
    assert len(calls) == 1


def test_fingerprints_by_rank() -> None:
    made = Made().rank(0, [1.0, 2.0]).rank(1, [1.0, 3.0]).rank(2, [9.0], state="missing")
    (ranks,) = made.history().fingerprints().values()
    assert {rank: curve.value.tolist() for rank, curve in ranks.items()} == {
        0: [1.0, 2.0],
        1: [1.0, 3.0],
    }


def test_a_real_run(well: Path) -> None:
    with nethook.open_run(well) as run:
        history = History(run)
        assert history.steps == 80
        assert [module.address for module in history.modules][:2] == ["", "0"]
        assert {parameter.address for parameter in history.parameters} == {
            "0.weight", "0.bias", "2.weight", "2.bias",
        }  # fmt: skip
        (loss,) = history.losses()
        assert loss.value[-1] < loss.value[0]
        assert history.loop("optimizer_steps").total == pytest.approx(80)


@pytest.mark.parametrize(("limit", "reads"), [(history_module.AT_ONCE, 2), (0, 3)])
def test_the_sites_of_a_short_run_are_read_at_once(
    well: Path, monkeypatch: pytest.MonkeyPatch, limit: int, reads: int
) -> None:
    monkeypatch.setattr(history_module, "AT_ONCE", limit)
    with nethook.open_run(well) as run:
        asked: list[int] = []
        many = run.many
        monkeypatch.setattr(run, "many", lambda *given: asked.append(1) or many(*given))
        history = History(run)
        history.loop("forwards"), history.loop("backwards")
        site = next(module for module in history.modules if history.has(module.address, "grads"))
        for quantity in ("outputs", "grads"):
            shown = history.curve(site.address, quantity, "std")
            assert np.array_equal(shown.value, run.series(site.address, quantity)["std"])
            asked.pop()
    assert len(asked) == reads


def test_the_largest_rate() -> None:
    made = Made().rate(0.1, 0.3, 0.2).scalar("lr:1.0", [0], [0.05])
    assert made.history().largest_rate() == 0.3
    assert np.isnan(Made().history().largest_rate())
