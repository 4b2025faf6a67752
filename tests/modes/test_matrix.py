"""Every cell holds, and fails when nethook's guard for it is switched off."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.modes.matrix import FEATURES, Cell, load, of, subjects
from tools.modes_page import PAGE, README, page, readme

# Torch's own, while it compiles, scripts and exports.
pytestmark = [
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

MODES, CELLS = load()
each_cell = pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
# The short set has one model for every field of the table, and not the twins.
SHORT = [cells[0] for mode in MODES for each in FEATURES if (cells := [*of(mode, each, CELLS)])]
each_cell_and_the_short_ones = pytest.mark.parametrize(
    "cell",
    [
        pytest.param(cell, id=cell.id, marks=[pytest.mark.short] if cell in SHORT else [])
        for cell in CELLS
    ],
)


@each_cell_and_the_short_ones
def test_cell(cell: Cell) -> None:
    cell.run()


@each_cell
def test_it_would_fail_without_its_guard(cell: Cell) -> None:
    # An assertion of the check, an error of torch's, or an expected one that did not come.
    with pytest.raises((Exception, pytest.fail.Exception)):
        cell.run(guarded=False)


def test_every_field_of_the_table_is_filled_once() -> None:
    assert [cell for cell, times in Counter(each.id for each in CELLS).items() if times > 1] == []
    for mode in MODES:
        for feature in FEATURES:
            cells = list(of(mode, feature, CELLS))
            assert bool(cells) != (feature in mode.beside), (mode.group, mode.name, feature)
            assert len({each.refused for each in cells}) <= 1
            assert len([each for each in SHORT if each in cells]) == len(cells[:1])


def test_every_file_of_cells_declares_some() -> None:
    declaring = {each.check.__module__.rpartition(".")[2] for each in CELLS}
    assert declaring == set(subjects())


def test_the_page_and_the_readme_are_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.modes_page"
    assert README.read_text(encoding="utf-8") == readme(), "run python -m tools.modes_page"
