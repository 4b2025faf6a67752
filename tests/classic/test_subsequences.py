"""subsequence: ends inside and outside, dotted names, copies or the very layers."""

from collections import OrderedDict

import pytest
import torch
from torch import nn

import nethook
from nethook import hierarchical_subsequence, subsequence


@pytest.fixture
def model():
    torch.manual_seed(0)
    inner = nn.Sequential(OrderedDict(x=nn.Linear(3, 3), y=nn.ReLU(), z=nn.Linear(3, 3)))
    return nn.Sequential(
        OrderedDict(a=nn.Linear(3, 3), b=inner, c=nn.Sequential(nn.Tanh()), d=nn.Linear(3, 3))
    )


def leaves(part):
    return [name for name, module in part.named_modules() if not list(module.children()) and name]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({}, ["a", "b.x", "b.y", "b.z", "c.0", "d"]),
        ({"first_layer": "c"}, ["c.0", "d"]),
        ({"last_layer": "b"}, ["a", "b.x", "b.y", "b.z"]),
        ({"after_layer": "b"}, ["c.0", "d"]),
        ({"upto_layer": "b"}, ["a"]),
        ({"single_layer": "b.y"}, ["b.y"]),
        ({"single_layer": "c"}, ["c.0"]),
        ({"first_layer": "b.y"}, ["b.y", "b.z", "c.0", "d"]),
        ({"after_layer": "b.y"}, ["b.z", "c.0", "d"]),
        ({"last_layer": "b.y"}, ["a", "b.x", "b.y"]),
        ({"upto_layer": "b.y"}, ["a", "b.x"]),
        ({"upto_layer": "b.x"}, ["a"]),
        ({"after_layer": "b.z"}, ["c.0", "d"]),
        ({"first_layer": "b.y", "last_layer": "b.y"}, ["b.y"]),
        ({"after_layer": "b.x", "upto_layer": "d"}, ["b.y", "b.z", "c.0"]),
        ({"after_layer": "a", "upto_layer": "b"}, []),
    ],
)
def test_which_layers_are_in(model, ends, expected):
    part = subsequence(model, **ends)
    assert isinstance(part, nn.Sequential)
    assert leaves(part) == expected


@pytest.mark.parametrize("name", ["a", "b", "b.x", "b.y", "b.z", "c", "c.0", "d"])
def test_two_parts_make_the_whole(model, name):
    x = torch.randn(2, 3)
    early, late = subsequence(model, last_layer=name), subsequence(model, after_layer=name)
    assert torch.equal(late(early(x)), model(x))
    early, late = subsequence(model, upto_layer=name), subsequence(model, first_layer=name)
    assert torch.equal(late(early(x)), model(x))


def test_layers_are_copies_unless_weights_are_shared(model):
    assert subsequence(model, last_layer="a").a is not model.a
    assert subsequence(model, last_layer="a", share_weights=True).a is model.a
    assert subsequence(model, share_weights=True) is model


def test_tied_layers_stay_tied_in_a_copy():
    layer = nn.Linear(2, 2)
    part = subsequence(nn.Sequential(layer, nn.ReLU(), layer, nn.ReLU()), upto_layer="3")
    assert part[0] is part[2]
    assert part[0] is not layer


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_is_kept(model, training):
    part = subsequence(model.train(training), first_layer="b.y", last_layer="c")
    assert part.training is part.b.training is training


def test_hooks_do_not_come_along(model):
    with nethook.Trace(model, "a") as ret:
        subsequence(model, last_layer="a")(torch.ones(1, 3))
        assert ret.called == 0


def test_errors(model):
    with pytest.raises(ValueError, match=r"^Layer b\.w not found$"):
        subsequence(model, first_layer="b.w")
    with pytest.raises(ValueError, match=r"^Layer e not found$"):
        subsequence(model, upto_layer="e")
    with pytest.raises(ValueError, match=r"^Layer a comes before c$"):
        subsequence(model, first_layer="c", last_layer="a")
    with pytest.raises(AssertionError, match=r"^a not Sequential$"):
        subsequence(model, first_layer="a.weight")
    with pytest.raises(AssertionError, match=r"^arg not Sequential$"):
        subsequence(nn.Linear(2, 2), first_layer="a")
    with pytest.raises(AssertionError, match="single_layer"):
        subsequence(model, single_layer="a", last_layer="b")
    with pytest.raises(AssertionError, match="not both"):
        subsequence(model, first_layer="a", after_layer="b")


ORDER = ["a", "b", "b.x", "b.y", "b.z", "c", "c.0", "d"]
RUNS = ["a", "b.x", "b.y", "b.z", "c.0", "d"]


def in_part(name, leaf):
    return leaf == name or leaf.startswith(f"{name}.")


@pytest.mark.parametrize("end_kind", ["last_layer", "upto_layer"])
@pytest.mark.parametrize("start_kind", ["first_layer", "after_layer"])
@pytest.mark.parametrize("end", ORDER)
@pytest.mark.parametrize("start", ORDER)
def test_every_pair_of_ends_gives_what_lies_between_or_an_error(
    model, start, end, start_kind, end_kind
):
    """Once a part that ended before it started was an empty Sequential or an error, by luck."""
    of_start = [i for i, leaf in enumerate(RUNS) if in_part(start, leaf)]
    of_end = [i for i, leaf in enumerate(RUNS) if in_part(end, leaf)]
    begin = of_start[0] if start_kind == "first_layer" else of_start[-1] + 1
    stop = of_end[-1] + 1 if end_kind == "last_layer" else of_end[0]
    ends = {start_kind: start, end_kind: end}
    overlap = set(of_start) & set(of_end)
    if overlap:  # the same layer, or one inside the other; `c` and `c.0` are one leaf
        wrong = (start_kind == "after_layer" and len(start) <= len(end)) or (
            end_kind == "upto_layer" and len(end) < len(start)
        )
    else:
        wrong = of_end[0] < of_start[0]
    if wrong:
        with pytest.raises(ValueError, match=rf"^Layer {end} (comes before|does not come after)"):
            subsequence(model, **ends)
    else:
        assert leaves(subsequence(model, **ends)) == RUNS[begin:stop]


def test_split_names(model):
    part = hierarchical_subsequence(model, ["b", "y"], None, None, ["d"], share_weights=True)
    assert leaves(part) == ["b.y", "b.z", "c.0"]
    assert part.b.y is model.b.y
    empty = hierarchical_subsequence(model.b, None, None, None, ["b", "x"], depth=1)
    assert empty is None
