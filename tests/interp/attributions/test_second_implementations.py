"""Numbers that other libraries gave, each in an environment of its own: data/ has their script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from nethook import interp
from tests.interp.attributions.data.second_implementations import BIN, network, rows

DATA = Path(__file__).parent / "data"


def read(name: str):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def test_deep_explainer_of_shap():
    theirs = torch.tensor(read("shap")["deep"], dtype=torch.float64)
    found = interp.op_lift(network(), rows(4, 0.0), target=0, baseline=rows(1, 2.0))
    assert torch.allclose(found.values, theirs, atol=1e-6)
    assert float(found.delta.abs().max()) < 1e-12


def test_exact_shapley_values_of_shap():
    theirs = torch.tensor(read("shap")["exact"], dtype=torch.float64)
    found = interp.shapley(network(), rows(4, 0.0), target=0, baseline=rows(1, 2.0))
    assert "6 parts, exact" in found.notes
    assert torch.allclose(found.values, theirs, atol=1e-9)


@pytest.mark.parametrize("method", ["integrated_gradients", "op_lift", "occlusion"])
def test_a_pitch_comes_from_the_periodic_part(method):
    """torchcrepe's network hears the tone, which is as loud as the noise before it."""
    found = read("torchcrepe")
    assert found["top_bin"] == found["bin"] == BIN
    one = found[method]
    assert one["tone"] > 5 * abs(one["noise"])
    if one["delta"] is not None:  # then the parts are those of the whole
        assert abs(one["delta"]) <= 0.05
        assert one["tone"] + one["noise"] == pytest.approx(one["change"], abs=0.06)
        assert one["tone"] > 0.95 * one["change"]
