"""Every cell holds, and fails when nethook's guard for it is switched off."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import pytest
import torch

from tests.modes.matrix import FEATURES, Cell, Lacking, Mode, load, of, subjects
from tools.modes_page import PAGE, field, notes, page

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
    if cell.lacking is None or not cell.lacking.on(torch.__version__):
        cell.run()
        return
    with pytest.raises((Exception, pytest.fail.Exception)):
        cell.run()


@each_cell
def test_it_would_fail_without_its_guard(cell: Cell) -> None:
    if cell.lacking is not None and cell.lacking.on(torch.__version__):
        pytest.skip(f"{cell.lacking.where}: {cell.lacking.why}")
    # A guard whose name has changed would raise as well, and show nothing.
    with cell.guard():
        pass
    # An assertion of the check, an error of torch's, or an expected one that did not come.
    with pytest.raises((Exception, pytest.fail.Exception)):
        cell.run(guarded=False)


def test_every_field_of_the_table_is_filled_once() -> None:
    assert [cell for cell, times in Counter(each.id for each in CELLS).items() if times > 1] == []
    for mode in MODES:
        for feature in FEATURES:
            cells = list(of(mode, feature, CELLS))
            assert bool(cells) != (feature in mode.beside), (mode.group, mode.name, feature)
            assert len({(each.refused, each.lacking) for each in cells}) <= 1
            assert len([each for each in SHORT if each in cells]) == len(cells[:1])


def test_every_file_of_cells_declares_some() -> None:
    declaring = {each.check.__module__.rpartition(".")[2] for each in CELLS}
    assert declaring == set(subjects())


@pytest.mark.parametrize(
    ("since", "until", "where", "found"),
    [
        ("", "2.10", "before torch 2.10", ["2.9.1", "2.9.1+cu130"]),
        ("2.10", "", "since torch 2.10", ["2.10.0", "2.15.0.dev20260101", "3.0.0"]),
        ("2.10", "2.15", "from torch 2.10 until 2.15", ["2.10.0"]),
    ],
)
def test_a_cell_says_on_which_torches_it_does_not_hold(
    since: str, until: str, where: str, found: list[str]
) -> None:
    lacking = Lacking("no such thing", since, until)
    torches = ["2.9.1", "2.9.1+cu130", "2.10.0", "2.15.0.dev20260101", "3.0.0"]
    assert [each for each in torches if lacking.on(each)] == found
    mode = Mode("torch.compile", "a mode", "for this test")
    cells = [
        Cell("watch", mode, "mlp", lambda _: None, nullcontext, "nothing", lacking=each)
        for each in (None, lacking)
    ]
    assert field(mode, "watch", cells[:1]) == "✓"
    assert field(mode, "watch", cells[1:]) == f"✓, not {where}"
    assert notes([mode], cells[1:]) == [
        "Does not work:",
        "",
        f"- watch (a mode): {where}: no such thing.",
        "",
        "Without its guard:",
        "",
        "- watch (a mode): nothing.",
    ]


def test_the_page_says_each_sentence_once_with_its_fields() -> None:
    first, second = (Mode("DDP", name, "", {"edit": "as `trace`"}) for name in ("one", "two"))
    given = [("trace", first, "a"), ("watch", first, "a"), ("trace", second, "a")]
    cells = [
        Cell(feature, mode, "mlp", lambda _: None, nullcontext, without)
        for feature, mode, without in [*given, ("watch", second, "b")]
    ]
    assert notes([first, second], cells) == [
        "Not tested by itself (–):",
        "",
        "- edit: as `trace`.",
        "",
        "Without its guard:",
        "",
        "- trace; watch (one): a.",
        "- watch (two): b.",
    ]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.modes_page"
