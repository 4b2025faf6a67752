"""What `verify` found: verdicts, thresholds, tables."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from nethook.errors import NoSuchSiteError, OptionError
from nethook.init.proof.report import LayerScale, Report


def layer(forward: float, backward: float = 1.0, cosine: float = 0.1, **more: Any) -> LayerScale:
    return LayerScale("fc/linear#0", "fc.weight", forward, backward, 1.0, cosine, **more)


def report(*rows: LayerScale) -> Report:
    return Report("Net", rows, 0.2, ("careful",))


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (layer(1.0), "ok"),
        (layer(0.49), "small"),
        (layer(2.01), "large"),
        (layer(0.033), "vanishing"),
        (layer(30.1), "exploding"),
        (layer(0.3, expected=0.4), "ok"),
        (layer(math.nan), "not finite"),
        (layer(math.inf), "not finite"),
        (layer(100.0, cancelled_by="bn"), "cancelled"),
        (layer(0.0, ends_branch=True), "zero"),
        (layer(0.0), "vanishing"),
        (layer(1.0, cosine=0.995), "alike"),
        (layer(0.1, cosine=0.995), "alike"),
        (layer(7.0, expected=math.nan), "ok"),  # nothing is expected there
    ],
)
def test_verdicts(row: LayerScale, verdict: str) -> None:
    assert row.verdict() == verdict


def test_ok_with_other_bounds() -> None:
    assert report(layer(0.5), layer(2.0)).ok()
    assert not report(layer(0.5), layer(2.1)).ok()
    assert report(layer(0.2), layer(5.0)).ok(0.1, 10.0)
    assert report(layer(1.0, cosine=0.999)).ok()  # alike is not a matter of scale
    assert not report(layer(0.1, cosine=0.999)).ok()
    assert report(layer(40.0)).ok(0.0, 50.0)
    assert layer(40.0).verdict(0.0, 50.0) == "ok"
    with pytest.raises(OptionError, match="`low` must be at least 0 and at most `high`; got 2"):
        report().ok(2.0, 1.0)


def test_gradients_by_the_last_that_there_is() -> None:
    rows = [layer(1.0, 8.0), layer(1.0, 4.0), layer(1.0, 2.0), layer(1.0, math.nan)]
    found = report(*rows)
    assert found.relative_gradients()[:3] == [4.0, 2.0, 1.0]
    assert found.gradient_ratio == 4.0
    assert report(*rows[:3]).ok(backward=(1.0, 4.0))
    assert not report(*rows[:3]).ok(backward=(1.0, 3.9))
    assert math.isnan(report().gradient_ratio)


def test_a_layer_by_its_names() -> None:
    found = report(layer(1.0))
    assert found["fc/linear#0"] is found["fc.weight"] is found["fc"]
    with pytest.raises(NoSuchSiteError, match="the report has no layer 'fd'"):
        found["fd"]
    assert len(found) == len(list(found)) == 1


def test_tables_and_plain_data() -> None:
    found = report(layer(1.0), layer(90.0, math.nan))
    text = repr(found)
    assert text.startswith("scales of Net: 2 layers, 1 exploding")
    assert "exploding" in text
    assert "–" in text  # no gradient
    assert "1 WARNING" in text
    assert found._repr_html_().count("<table>") == 2
    data = found.to_dict()
    assert [row["verdict"] for row in data["rows"]] == ["ok", "exploding"]
    assert json.loads(json.dumps(report(layer(1.0)).to_dict()))["warnings"] == ["careful"]
