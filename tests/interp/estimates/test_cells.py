"""Cells: names, indices and sums."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from nethook.errors import OptionError
from nethook.interp.estimates.cells import Cells, cells_of, read_axes
from nethook.interp.estimates.points import Point

POINT = Point("a")


@pytest.mark.parametrize("over", [None, "positions", "units", ("positions", "units")])
def test_a_sum_over_cells_is_the_sum_over_their_indices(over: Any) -> None:
    value = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    cells = cells_of(read_axes(over), [POINT], {POINT: value})
    summed = cells.summed(POINT, value)
    assert summed.shape == (len(cells.names), 2)
    for cell in range(len(cells.names)):
        index = cells.index(POINT, value, cell)
        assert index is not None
        torch.testing.assert_close(summed[cell], value[index].reshape(2, -1).sum(-1))


def test_points_with_fewer_cells_have_none_there() -> None:
    short, long = torch.ones(2, 3, 4), torch.ones(2, 5, 4)
    other = Point("b")
    cells = cells_of(("positions",), [POINT, other], {POINT: short, other: long})
    assert cells.names == ("0", "1", "2", "3", "4")
    assert cells.summed(POINT, short)[:, 0].isnan().tolist() == [False] * 3 + [True] * 2
    assert cells.index(POINT, short, 4) is None


def test_names_and_what_they_are() -> None:
    both = Cells(("heads", "positions"), (2, 3))
    assert both.names == ("0, 0", "0, 1", "0, 2", "1, 0", "1, 1", "1, 2")
    assert both.over == "indices"
    assert Cells((), ()).names == ("",)
    assert Cells((), ()).over == ""
    assert Cells(("units",), (2,)).over == "units"


def test_channels_are_the_units_of_images() -> None:
    value = torch.ones(2, 3, 4, 4)
    cells = cells_of(("units",), [POINT], {POINT: value})
    assert cells.sizes == (3,)
    assert cells.summed(POINT, value).tolist() == [[16.0, 16.0]] * 3


def test_axes_that_are_not_there_are_refused() -> None:
    with pytest.raises(
        OptionError, match="`over` must be an axis that every value has; got 'positions'"
    ):
        cells_of(("positions",), [POINT], {POINT: torch.ones(2)})
    for wrong in ("rows", ("heads", "heads"), ("heads", "positions", "units")):
        with pytest.raises(OptionError, match="`over` must be None"):
            read_axes(wrong)
