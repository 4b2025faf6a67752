"""Rows folded by modules: nothing is lost, and a group shows its extremes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.drawing.data import Grid
from nethook.drawing.quantities import QUANTITIES
from nethook.page.folding import READABLE, first_folds, fold_grid, groups_of, visible

ROWS = [f"blocks.{block}.{name}" for block in range(30) for name in ("a", "b.c", "b.d")] + ["head"]
names = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(".".join), unique=True, max_size=60
)


def test_a_deep_model_is_folded_until_it_can_be_read() -> None:
    groups = groups_of(ROWS)
    folds = first_folds(ROWS, groups)
    shown = visible(ROWS, groups, folds)
    assert len(shown) == 31 <= READABLE
    assert [row.label for row in shown][:2] == ["▸ blocks.0 (3)", "▸ blocks.1 (3)"]
    assert shown[-1].label == "head"
    assert first_folds(ROWS[:9], groups_of(ROWS[:9])) == set()


def test_modules_with_the_same_rows_are_one_group() -> None:
    assert list(groups_of(["net.body.a", "net.body.b", "net.body.c"])) == ["net.body"]
    assert groups_of(["fc.weight", "fc.bias"], {"fc"}) == {}


@settings(max_examples=40, deadline=None)
@given(names, st.data())
def test_every_row_is_shown_once_however_it_is_folded(rows, data) -> None:
    groups = groups_of(rows)
    folds = data.draw(st.sets(st.sampled_from(sorted(groups)))) if groups else set()
    for chosen in (folds, first_folds(rows, groups)):
        shown = visible(rows, groups, chosen)
        assert sorted(place for row in shown for place in row.places) == list(range(len(rows)))


def grid_of(name: str, values: np.ndarray) -> Grid:
    steps = np.arange(values.shape[1])
    return Grid(QUANTITIES[name], ["m.a", "m.b", "x"], steps, steps, values - 1, values, values)


def test_a_group_keeps_least_and_greatest() -> None:
    values = np.array([[1.0, 5.0, np.nan], [3.0, 2.0, np.nan], [9.0, 9.0, 9.0]])
    groups = groups_of(["m.a", "m.b", "x"])
    folded = fold_grid(grid_of("spread", values), visible(["m.a", "m.b", "x"], groups, {"m"}))
    assert list(folded.rows) == ["▸ m (2)", "x"]
    np.testing.assert_array_equal(folded.greatest[0], [3, 5, np.nan])
    np.testing.assert_array_equal(folded.least[0], [0, 1, np.nan])
    signed = np.array([[-4.0, 1.0, 0.0], [3.0, -1.5, 0.0], [0.0, 0.0, 0.0]])
    folded = fold_grid(grid_of("mean", signed), visible(["m.a", "m.b", "x"], groups, {"m"}))
    np.testing.assert_array_equal(folded.last[0], [-4, -1.5, 0])


def test_what_is_not_folded_is_the_same_grid() -> None:
    grid = grid_of("spread", np.ones((3, 2)))
    rows = ["m.a", "m.b", "x"]
    assert fold_grid(grid, visible(rows, groups_of(rows), set())) is grid
