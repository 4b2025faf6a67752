"""`rows=` and `positions=`: edits of a part of a value."""

import pytest
import torch
from torch import nn

import nethook
from nethook import edits
from nethook.editing.limits import Limits, token_dim
from nethook.errors import EditError, OptionError, RecipeError, UnfiredError


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh())


def changed(model, edit, x):
    """Which rows and positions an edit of the first layer has changed."""
    before = model[0](x)
    with nethook.edit(model, outputs={"0": edit}):
        after = model[0](x)
    return (after != before).any(-1).tolist()


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (1, [False, True, False]),
        (-1, [False, False, True]),
        ([0, 2], [True, False, True]),
        (slice(1, None), [False, True, True]),
        (slice(None, None, 2), [True, False, True]),
    ],
)
def test_rows(model, rows, expected):
    assert changed(model, edits.zero(rows=rows), torch.ones(3, 4)) == expected


@pytest.mark.parametrize(
    ("positions", "expected"),
    [
        (1, [0, 1, 0, 0, 0]),
        (-2, [0, 0, 0, 1, 0]),
        ([0, 3], [1, 0, 0, 1, 0]),
        (slice(3, None), [0, 0, 0, 1, 1]),
        (slice(-3, -1), [0, 0, 1, 1, 0]),
        (slice(-9, None, 2), [1, 0, 1, 0, 1]),
    ],
)
def test_positions_where_nothing_is_known_of_tokens(model, positions, expected):
    got = changed(model, edits.add(1.0, positions=positions), torch.ones(2, 5, 4))
    assert got == [[bool(one) for one in expected]] * 2


def test_both_and_functions(model):
    edit = edits.only(lambda value: value + 1, rows=1, positions=[0, 2])
    assert changed(model, edit, torch.ones(2, 3, 4)) == [[False] * 3, [True, False, True]]
    assert edits.only(torch.neg)(torch.ones(1)).item() == -1


def test_the_rest_is_the_same_bit_for_bit_and_gradients_flow_through_both(model):
    x = torch.randn(3, 4, requires_grad=True)
    with nethook.edit(model, outputs={"0": edits.scale(3.0, rows=0)}):
        out = model[0](x)
    assert torch.equal(out[1:], model[0](x)[1:])
    out.sum().backward()
    torch.testing.assert_close(x.grad[0], 3 * x.grad[1])


def test_inputs_and_gradients_by_rows(model):
    x = torch.randn(3, 4, requires_grad=True)
    with nethook.edit(
        model,
        inputs={"1": edits.zero(rows=2)},
        grads={"0": edits.zero(rows=1)},
        input_grads={"0": edits.scale(2.0, rows=[0])},
    ):
        out = model(x)
        out.sum().backward()
    assert not out[2].any()
    assert not x.grad[1].any()
    assert not x.grad[2].any()
    own = x.detach()[:1].requires_grad_()
    model(own).sum().backward()
    torch.testing.assert_close(x.grad[0], 2 * own.grad[0])


def test_an_edit_of_rows_that_never_came_is_unfired(model):
    why = r"'0' ran 1 time, and rows=5, positions=\[1\] means none of these calls"
    with (
        pytest.raises(UnfiredError, match=why),
        nethook.edit(model, outputs={"0": edits.zero(rows=5, positions=[1])}),
    ):
        model(torch.ones(2, 3, 4))


def test_recipes_keep_the_limits(tmp_path):
    edit = edits.scale(2.0, rows=[0, 2], positions=slice(1, None))
    edits.save(tmp_path / "r.json", outputs={"0": edit})
    assert edits.load(tmp_path / "r.json")["outputs"]["0"][""][0] == edit
    assert "rows=[0, 2], positions=slice(1, None, None), factor=2.0)" in repr(edit)
    assert "rows" not in repr(edits.zero())
    text = (tmp_path / "r.json").read_text()
    (tmp_path / "r.json").write_text(text.replace("0,", '"a",'))
    with pytest.raises(RecipeError, match="`rows` must be a number, a list of numbers or a slice"):
        edits.load(tmp_path / "r.json")
    with pytest.raises(RecipeError, match="cannot be written as data"):
        edits.save(tmp_path / "t.json", outputs={"0": edits.only(torch.neg)})


@pytest.mark.parametrize("wrong", ["1", [], [0.5], True, slice(None, None, -1)])
def test_wrong_places(wrong):
    with pytest.raises(OptionError, match="`positions` must be a number, a list of numbers or a"):
        edits.zero(positions=wrong)


def test_where_limits_have_no_meaning(model):
    with pytest.raises(EditError, match="a parameter has no rows of a batch"):
        nethook.edit(model, params={"0.weight": edits.zero(rows=0)})
    with pytest.raises(EditError, match="in a backward pass it is not known which tokens"):
        nethook.edit(model, grads={"0": edits.zero(positions=0)})
    with (
        pytest.raises(EditError, match="must return a tensor of its shape"),
        nethook.edit(model, outputs={"0": edits.only(torch.sum, rows=0)}),
    ):
        model(torch.ones(1, 4))


def test_the_dimension_of_tokens():
    assert token_dim(torch.ones(2, 5, 3), 5, "x") == 1
    assert token_dim(torch.ones(2, 3, 5, 7), 5, "x") == 2
    with pytest.raises(EditError, match="needs a value with 5 tokens along a dimension; 'x' has"):
        token_dim(torch.ones(2, 1, 3), 5, "x")
    with pytest.raises(EditError, match="cannot tell which dimension of 'x' has the tokens"):
        token_dim(torch.ones(2, 5, 5, 7), 5, "x")
    with pytest.raises(EditError, match="has a single number"):
        Limits(0, None).part_of(torch.tensor(1.0), "x")
    with pytest.raises(EditError, match="needs a value with tokens along dimension 1"):
        Limits(None, 0).part_of(torch.ones(3), "x")
