"""The parts of a value that are changed at once."""

import pytest
import torch
from torch import nn

from nethook.editing.tokens import plain_tokens, tokens_of
from nethook.errors import SweepError
from nethook.interp.sweeping.cells import cells_of, check_over, position_dim, put_all

ANY = plain_tokens(3, torch.device("cpu"))


def changed(cells, value):
    """Which elements each cell changes."""
    found = []
    for cell in cells:
        into = torch.zeros_like(value)
        cell.put(torch.ones_like(value), into)
        found.append(into.bool())
    return found


def test_units_are_those_of_the_module():
    conv, linear = nn.Conv2d(1, 2, 1), nn.Linear(2, 3)
    cells = cells_of("units", torch.zeros(2, 2, 4, 4), 0, "x", conv, ANY)
    assert [
        part[:, n].all().item() for n, part in enumerate(changed(cells, torch.zeros(2, 2, 4, 4)))
    ]
    assert len(cells_of("units", torch.zeros(2, 5, 3), 0, "x", linear, ANY)) == 3
    with pytest.raises(SweepError, match="has no units"):
        cells_of("units", torch.zeros(2), 0, "x", None, ANY)


def test_positions_of_padded_rows():
    ids = torch.zeros(2, 4, dtype=torch.long)
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 0]])
    tokens = tokens_of({"input_ids": ids, "attention_mask": mask})
    cells = cells_of("positions", torch.zeros(2, 4, 3), 0, "x", None, tokens)
    parts = [part.any(-1).nonzero().tolist() for part in changed(cells, torch.zeros(2, 4, 3))]
    assert parts == [[[0, 2], [1, 0]], [[0, 3], [1, 1]], [[1, 2]]]
    assert [None if cell.rows is None else cell.rows.tolist() for cell in cells] == [
        None, None, [False, True]
    ]  # fmt: skip
    behind = cells_of("positions", torch.zeros(4, 2, 3), 1, "x", None, tokens)
    (part, *_) = changed(behind, torch.zeros(4, 2, 3))
    assert part.any(-1).nonzero().tolist() == [[0, 1], [2, 0]]


def test_the_dimension_of_positions():
    assert position_dim(torch.zeros(2, 5, 3), 0, 5, "x") == 1
    assert position_dim(torch.zeros(5, 2, 3), 1, 5, "x") == 0
    assert position_dim(torch.zeros(2, 5, 5, 3), 0, 5, "x") == 2
    with pytest.raises(SweepError, match="has no dimension of 5 tokens"):
        position_dim(torch.zeros(2, 4), 0, 5, "x")


def test_what_over_may_be():
    assert [check_over(each) for each in (None, "heads", [(0,)])] == ["", "heads", "indices"]
    for wrong in ("rows", [], [0], 3):
        with pytest.raises(SweepError, match="`over` must be None"):
            check_over(wrong)
    with pytest.raises(
        SweepError, match=r"the index \(slice\(7, 9, None\),\) means nothing of 'x'"
    ):
        cells_of([(slice(7, 9),)], torch.zeros(2, 3), 0, "x", None, ANY)


@pytest.mark.parametrize(("over", "batch"), [("positions", 0), ("positions", 1), ("pixels", 0)])
def test_cells_are_put_into_copies_at_once_as_one_by_one(over, batch):
    shape = (2, 4, 3, 5) if over == "pixels" else (2, 3, 5) if batch == 0 else (3, 2, 5)
    new, copies = torch.randn(shape), 4
    cells = list(enumerate(cells_of(over, new, batch, "x", None, ANY)[:copies]))
    cells = [(copies - 1 - slot, cell) for slot, cell in cells]
    times = [copies if dim == batch else 1 for dim in range(new.ndim)]
    into, expected = (torch.zeros(shape, dtype=torch.double).repeat(times) for _ in range(2))
    put_all(cells, new, into, batch)
    for slot, cell in cells:
        cell.put(new, expected.narrow(batch, slot * 2, 2))
    assert torch.equal(into, expected)
    assert into.any()


def test_masks_that_look_alike_as_text_have_labels_of_their_own():
    value = torch.zeros(1, 2000)
    masks = [torch.zeros(2000, dtype=torch.bool) for _ in range(2)]
    masks[0][1000], masks[1][1001] = True, True
    assert str(masks[0]) == str(masks[1])
    one, two = cells_of([(mask,) for mask in masks], value, 0, "x", None, ANY)
    assert one.label != two.label
    assert one.label.startswith("2000 mask ")
    first, second = changed([one, two], value)
    assert first.nonzero().tolist() == [[0, 1000]]
    assert second.nonzero().tolist() == [[0, 1001]]
