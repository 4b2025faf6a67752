"""Plain data: the cells of a heatmap, and what their colours are of."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.drawing.data import Cells, Panel, Picture, Quantity


def test_linear_cells_are_their_own_colours():
    planes = np.arange(12.0).reshape(2, 2, 3)
    cells = Cells(planes)
    np.testing.assert_array_equal(cells.colours(), planes[0])
    assert cells.ends() == (0.0, 11.0)  # over all planes


def test_logarithmic_ones_are_decimal_logarithms():
    planes = np.array([[[1.0, 100.0], [0.01, np.nan]]])
    cells = Cells(planes, log=True)
    assert cells.ends() == (-2.0, 2.0)
    np.testing.assert_allclose(cells.colours(), [[0.0, 2.0], [-2.0, np.nan]])


def test_a_zero_has_the_lowest_colour_and_is_no_gap():
    cells = Cells(np.array([[[0.0, 0.1, 10.0, np.inf, -1.0]]]), log=True)
    np.testing.assert_allclose(cells.colours(), [[-1.0, -1.0, 1.0, 1.0, np.nan]])


@pytest.mark.parametrize("log", [False, True])
def test_cells_without_a_number_have_ends_all_the_same(log):
    assert Cells(np.full((1, 2, 2), np.nan), log).ends() == (0.0, 1.0)


def test_ends_leave_infinities_out():
    assert Cells(np.array([[[-np.inf, -3.0, 4.0, np.inf]]])).ends() == (-3.0, 4.0)


def test_what_need_not_be_said():
    assert Quantity("a", "A", "About a.").scale == "linear"
    panel = Panel("A", ())
    assert (panel.threshold, panel.tall, panel.unit) == (None, 1.0, "")
    assert "pixels" not in repr(Picture("a", np.zeros((2, 2))))
