"""What a probe returns."""

import pytest
import torch

from nethook import interp
from nethook.errors import OptionError, ResultError
from nethook.interp.directions.probe import Probe
from tests.interp.directions.planted import gaussian


def test_files_and_looks(tmp_path):
    x, labels, _ = gaussian(rows=90)
    p = interp.probe(x, labels, kind="ridge", folds=3)
    p.save(tmp_path / "p.json")
    again = Probe.load(tmp_path / "p.json")
    assert torch.equal(again.weights, p.weights)
    assert repr(again) == repr(p)
    assert "site      score  95 % interval" in repr(p)
    assert p._repr_html_().startswith("<div><b>ridge probe of 2 classes")
    assert len(p.figure().data) == 3
    torch.testing.assert_close(p.projections, p.scores_of(x))
    assert torch.equal(p.predict(x), (p.projections[:, 0] > 0).long())


def test_directions_of_classes():
    x, labels, _ = gaussian(rows=90)
    two = interp.probe(x, labels, kind="ridge", folds=3)
    torch.testing.assert_close(two.direction_of("0").vector, -two.direction.vector)
    torch.testing.assert_close(two.direction_of("1").vector, two.direction.vector)
    assert two.direction_of("0").gap > 0
    three = interp.probe(x, torch.arange(90) % 3, kind="ridge", folds=3)
    along = three.direction_of("2")
    torch.testing.assert_close(along.vector, three.weights[2] / three.weights[2].norm())
    torch.testing.assert_close(along.positive, x[torch.arange(90) % 3 == 2] @ along.vector)
    with pytest.raises(ResultError, match=r"Choose one: direction_of\('0'\)"):
        three.direction
    with pytest.raises(OptionError, match="`name` must be one of the classes 0, 1, 2; got '3'"):
        three.direction_of("3")
