"""Curves over strengths."""

import pytest
import torch
from torch import nn

import nethook
from nethook import interp
from nethook.errors import OptionError
from nethook.interp.directions.curve import SteeringCurve


def test_a_linear_readout_is_a_line(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)).double().train()
    x = torch.randn(5, 3, dtype=torch.double)
    v = interp.direction(model, x, x + 1, at="0")
    curve = v.effects(model, x, metric=lambda out: out[:, 0], strengths=[2, 0, 1])
    slope = v.std * float(model[1].weight[0].detach() @ v.vector)
    expected = model(x)[:, 0] + curve.strengths[:, None] * slope
    torch.testing.assert_close(curve.values, expected.detach())
    assert model.training
    assert not nethook.audit(model)
    curve.save(tmp_path / "c.json")
    again = SteeringCurve.load(tmp_path / "c.json")
    assert repr(again) == repr(curve)
    assert "steering at 0: 3 strengths, 5 rows" in repr(curve)
    assert curve.figure().data[-1].x.tolist() == [0, 1, 2]
    with pytest.raises(OptionError, match="`strengths` must have at least one number"):
        v.effects(model, x, metric=lambda out: out[:, 0], strengths=[])
    with pytest.raises(OptionError, match="`metric` must give one number per row"):
        v.effects(model, x, metric=lambda out: out.mean())
