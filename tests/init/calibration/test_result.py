"""What `calibrate_` did, as data."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from nethook.init.calibration.result import Calibrated, Calibration


def row(name: str, factor: float = 1.0, before: float = 2.0) -> Calibrated:
    return Calibrated(name, f"{name}/linear#0", before, 1.0, 1.0, factor)


def result(*rows: Calibrated, forwards: int = 1) -> Calibration:
    return Calibration("Net", 1.0, rows, (("emb", "an embedding"),), (("tied", 2),), forwards)


def test_the_largest_change() -> None:
    assert result(row("a", 1.1), row("b", 0.7)).largest_change == pytest.approx(0.3)
    assert result().largest_change == 0.0
    assert len(result(row("a"))) == len(list(result(row("a")))) == 1


def test_a_second_forward_keeps_the_scales_from_before_the_first() -> None:
    first = result(row("a", before=5.0), forwards=1)
    second = result(row("a", before=1.2), row("b", before=3.0)).after(first)
    assert [each.before for each in second] == [5.0, 3.0]
    assert second.forwards == 2


def test_weights_that_a_norm_cancels_are_left() -> None:
    plan = {"a": SimpleNamespace(not_calibrated="no effect: bn cancels its scale")}
    found = result(row("a"), row("b")).without(plan)
    assert [each.parameter for each in found] == ["b"]
    assert found.left == (("emb", "an embedding"), ("a", "no effect: bn cancels its scale"))


def test_tables_and_plain_data() -> None:
    found = result(row("a", 0.5))
    text = repr(found)
    assert text.startswith("1 weight of Net calibrated in 1 forward")
    assert "an embedding" in text
    assert "in 2 places: the first decided" in text
    assert found._repr_html_().count("<table>") == 3
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["left"] == {"emb": "an embedding"}
    assert data["shared"] == {"tied": 2}
    assert data["rows"][0]["factor"] == 0.5
