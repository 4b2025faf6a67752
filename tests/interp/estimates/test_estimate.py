"""What verifying says."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from scipy import stats
from torch import nn

from nethook.errors import OptionError
from nethook.interp.estimates.attribute import attribute
from nethook.interp.estimates.estimate import Estimate, share_above, spearman


@pytest.fixture(scope="module")
def found() -> Estimate:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    base, source = torch.randn(2, 6, 4)
    return attribute(model, base, source, at="0", over="units", metric=lambda out: out[:, 0])


def test_ranks_agree_as_scipy_says() -> None:
    random = torch.Generator().manual_seed(0)
    one = torch.randint(5, (30,), generator=random).double()  # with ties
    two = one + torch.randn(30, generator=random)
    expected = stats.spearmanr(one.numpy(), two.numpy()).statistic
    assert spearman(one, two) == pytest.approx(expected)
    assert math.isnan(spearman(one[:2], two[:2]))


def test_the_bound_is_that_of_n_draws_without_a_larger_one() -> None:
    assert share_above(0) == 1.0
    assert (1 - share_above(20)) ** 20 == pytest.approx(0.05)


def test_largest_first_then_a_sample_without_repetition(found: Estimate) -> None:
    checked = found.verify(top=3, sample=2)
    sizes = found.mean.abs().flatten()
    assert checked.top == 3
    assert [int(cell) for cell in checked.cells[:3]] == sizes.argsort(descending=True)[:3].tolist()
    assert len(set(checked.cells)) == 5
    assert checked.missed == float(checked.exact[3:].abs().max())
    assert checked.share == share_above(2)
    everything = found.verify(top=3, sample=100)
    assert len(everything.cells) == 8
    assert everything.share == 0.0
    assert found.verify(top=3, sample=2).cells == checked.cells  # the same draw
    assert math.isnan(found.verify(top=2, sample=0).missed)


def test_it_prints_and_draws(found: Estimate) -> None:
    checked = found.verify(top=3, sample=2)
    text = repr(checked)
    assert text.startswith("rank agreement ")
    assert "of the other cells are larger (95 % confidence)" in text
    assert text.count("sample") == 3
    assert len(checked.figure().data) == 3
    assert repr(found).startswith("estimated effect of take(source)")


def test_a_file_has_the_numbers_and_no_model(found: Estimate, tmp_path: Path) -> None:
    found.save(tmp_path / "e.json")
    again = Estimate.load(tmp_path / "e.json")
    assert torch.equal(again.values, found.values)
    assert again.estimated
    with pytest.raises(OptionError, match="loaded from a file has no model to run"):
        again.verify()


def test_numbers_are_checked(found: Estimate) -> None:
    with pytest.raises(OptionError, match="`top` must be a number of cells"):
        found.verify(top=-1)
    with pytest.raises(OptionError, match="`sample` must be a number of cells"):
        found.verify(sample=1.5)  # type: ignore[arg-type]
