"""`answers=`: calls of modules and operations that something else takes the place of."""

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import nethook
from nethook import edits
from nethook.errors import EditError, RecipeError, UnfiredError


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return torch.softmax(q @ k.mT, -1) @ v


class InPlace(nn.Module):
    def forward(self, x):
        y = x + 1
        y += 2
        y[0] = 0
        return F.relu(y, inplace=True)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), Attention(), nn.Linear(4, 2))


@pytest.fixture
def x():
    return torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(1))


def test_a_tensor_is_the_answer_and_the_module_does_not_run(model, x):
    value = torch.randn(3, 5, 4)
    with nethook.edit(model, answers={"0": value}) as scope:
        out = model(x)
    assert torch.equal(out, model[1:](value))
    assert scope.firings == {"answers['0']": 1}


def test_the_answer_may_be_written_to(model):
    value = torch.ones(1, 4)
    with nethook.edit(model, answers={"0": edits.answer(value)}):
        model[0](torch.ones(1, 4)).zero_()
    assert value.all()


def test_several_tensors_are_a_tuple():
    lstm, x = nn.LSTM(2, 2), torch.ones(3, 1, 2)
    with nethook.edit(lstm, answers={"": edits.answer([x, x])}):
        assert isinstance(lstm(x), tuple)


def test_a_function_answers_with_the_arguments(model, x):
    with nethook.edit(model, answers={"2": lambda args, kwargs: args[0]}):  # the layer is skipped
        out = model(x)
    assert torch.equal(out, model[3](model[1](model[0](x))))


def test_a_function_computes_otherwise(model, x):
    def halved(args, kwargs, compute, site):
        assert site == "2"
        return compute(args[0] / 2, **kwargs)

    with nethook.edit(model, answers={"2": halved}):
        out = model(x)
    assert torch.equal(out, model[3](model[2](model[:2](x) / 2)))


def test_an_operation_computed_otherwise_knocks_out_pairs(model, x):
    def without_the_first_key(args, kwargs, compute):
        scores = args[0].index_fill(-1, torch.tensor([0]), -torch.inf)
        return compute(scores, *args[1:], **kwargs)

    with (
        nethook.edit(model, answers={"2/softmax": without_the_first_key}),
        nethook.trace(model, "2/softmax") as tape,
    ):
        out = model(x)
    assert not tape["2/softmax#0"].output[..., 0].any()
    q, k, v = model[2].qkv(model[:2](x)).chunk(3, -1)
    mixed = torch.softmax((q @ k.mT)[..., 1:], -1) @ v[..., 1:, :]
    torch.testing.assert_close(out, model[3](mixed))


def test_what_runs_inside_compute_has_its_addresses(model, x):
    with (
        nethook.edit(model, answers={"2": lambda args, kwargs, compute: compute(args[0]) + 1}),
        nethook.trace(model, "2/softmax", "2/add") as tape,
    ):
        model(x)
    assert list(tape) == ["2/softmax#0"]  # the function's own sum is no operation of the model


def test_operations_in_place_are_answered_in_place():
    model, x = InPlace(), torch.zeros(2, 2)
    with nethook.edit(model, answers={"/add#1": lambda args, kwargs: args[0] + 10}):
        assert model(x).tolist() == [[0, 0], [11, 11]]
    with nethook.edit(model, answers={"/relu": lambda args, kwargs: torch.full((2, 2), 7.0)}):
        assert model(x).tolist() == [[7, 7], [7, 7]]
    with nethook.edit(model, answers={"/setitem": lambda args, kwargs: args[0] * 2}):
        assert model(x).tolist() == [[6, 6], [6, 6]]
    with nethook.edit(model, answers={"/add#1": lambda a, k, compute: compute(*a, **k)}):
        assert torch.equal(model(x), InPlace()(x))


def test_gradients_flow_through_answers(model, x):
    with nethook.edit(model, answers={"1": lambda args, kwargs, compute: 2 * compute(*args)}):
        model(x).sum().backward()
    got = model[0].weight.grad.clone()
    model.zero_grad()
    model[2:](2 * model[1](model[0](x))).sum().backward()
    torch.testing.assert_close(got, model[0].weight.grad)


def test_later_answers_stand_around_earlier_ones(model, x):
    plus = lambda a, k, compute: compute(*a) + 1  # noqa: E731
    twice = lambda a, k, compute: compute(*a) * 2  # noqa: E731
    expected = (model[0](x) + 1) * 2
    with nethook.edit(model, answers={"0": [plus, twice]}):
        assert torch.equal(model[0](x), expected)
    with nethook.edit(model, answers={"0": plus}), nethook.edit(model, answers={"0": twice}):
        assert torch.equal(model[0](x), expected)
    with nethook.edit(model, answers={"0": plus}, outputs={"0": edits.scale(2)}):
        assert torch.equal(model[0](x), expected)


def test_calls_and_rows_limit_an_answer(model, x):
    value = torch.zeros(3, 5, 4)
    with nethook.edit(model, answers={"0": edits.answer(value, calls=1)}):
        assert model[0](x).any()
        assert not model[0](x).any()
    with nethook.edit(model, answers={"0": edits.answer(value, rows=1)}) as scope:
        out = model[0](x)
    assert scope.firings == {"answers['0']": 1}
    assert not out[1].any()
    assert torch.equal(out[::2], model[0](x)[::2])


def test_a_checkpoint_computes_the_answer_again_and_counts_it_once(model, x):
    x.requires_grad_()
    with nethook.edit(model, answers={"1": lambda a, k, compute: 2 * compute(*a)}) as scope:
        checkpoint(model, x, use_reentrant=False).sum().backward()
    assert scope.firings == {"answers['1']": 1}
    got = x.grad.clone()
    x.grad = None
    model[2:](2 * model[1](model[0](x))).sum().backward()
    torch.testing.assert_close(got, x.grad)


def test_unfired_is_an_error(model, x):
    with (
        pytest.raises(UnfiredError, match=r"answers\['3'\] was never applied: '3' did not run"),
        nethook.edit(model, answers={"3": torch.zeros(1)}),
    ):
        model[0](x)
    with (
        pytest.raises(UnfiredError, match="no such operation has run"),
        nethook.edit(model, answers={"2/gelu": lambda args, kwargs: None}),
    ):
        model(x)


def test_an_edited_model_is_saved_and_copied_as_without(model):
    def saved():
        file = io.BytesIO()
        torch.save(model, file)
        return file.getvalue()

    before = saved()
    with nethook.edit(model, answers={"*": lambda args, kwargs: 0}, strict=False) as scope:
        assert saved() == before
        assert "forward" not in vars(copy.deepcopy(model)[0])
        scope._strict = True
        model(torch.ones(1, 5, 4))
    assert not nethook.audit(model)
    assert saved() == before


def test_recipes_save_answers(tmp_path, model, x):
    value = torch.randn(3, 5, 4)
    edits.save(tmp_path / "r.json", answers={"0": edits.answer(value, rows=[1], positions=2)})
    loaded = edits.load(tmp_path / "r.json")
    assert loaded["answers"]["0"][""][0] == edits.answer(value, rows=[1], positions=2)
    with nethook.edit(model, **loaded):
        assert torch.equal(model[0](x)[1, 2], value[1, 2])
    with nethook.edit(model, answers={"1": value}) as scope:
        scope.save(tmp_path / "s.json")
        model(x)
    with pytest.raises(RecipeError, match="is a function"):
        edits.save(tmp_path / "t.json", answers={"0": lambda args, kwargs: 0})


def test_wrong_answers_say_what_to_write(model):
    with pytest.raises(EditError, match=r"answers= takes edits.answer\(value\) or a function"):
        nethook.edit(model, answers={"0": edits.zero()})
    with pytest.raises(EditError, match=r"fn\(args, kwargs, compute\); got one that requires 1"):
        nethook.edit(model, answers={"0": lambda value: value})
    with pytest.raises(EditError, match="takes the place of a whole call, and has no path"):
        nethook.edit(model, answers={"0": {"[0]": edits.answer(torch.ones(1))}})
    with (
        pytest.raises(EditError, match="takes the place of a call: give it to answers"),
        nethook.edit(model, outputs={"0": edits.answer(torch.ones(1))}),
    ):
        model(torch.ones(1, 5, 4))
