"""What must be the same for an extraction to go on: the model, the sites, the options."""

import re

import pytest
import torch
from torch import nn

from nethook.extracting.fingerprint import describe_at, differences, fingerprint, named, ranks


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.BatchNorm1d(4))


def test_equal_models_have_one_fingerprint_whatever_their_mode():
    assert fingerprint(network()) == fingerprint(network().eval())
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(network()))


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model[0].weight.data.view(-1)[5].add_(1e-6),
        lambda model: model[2].running_mean.add_(1),
        lambda model: model.double(),
        lambda model: model.append(nn.Identity()),
        lambda model: setattr(model[1], "p", 0.25),
        lambda model: model[0].register_buffer("extra", torch.zeros(1)),
    ],
    ids=["weight", "buffer", "dtype", "layer", "option", "new buffer"],
)
def test_any_change_of_a_model_shows(change):
    model = network()
    change(model)
    assert fingerprint(model) != fingerprint(network())


def test_weights_are_read_as_they_show_and_in_pieces():
    wide = nn.Linear(1, 1, bias=False)
    wide.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3).t())  # not contiguous
    same = nn.Linear(1, 1, bias=False)
    same.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3).t().contiguous())
    assert fingerprint(wide) == fingerprint(same)


def test_where_an_object_lies_in_memory_and_what_is_not_there_yet_do_not_count():
    class Shown(nn.Module):
        def extra_repr(self):
            return f"by {object()!r}"

    assert fingerprint(Shown()) == fingerprint(Shown())
    assert fingerprint(nn.LazyLinear(3)) == fingerprint(nn.LazyLinear(3))
    meta = nn.Linear(2, 2, device="meta")
    assert fingerprint(meta) == fingerprint(nn.Linear(2, 2, device="meta"))


def test_differences_are_told_in_words():
    then = {"model": "a", "batch_size": 4, "pool": "mean", "kept": 1}
    now = {"model": "b", "batch_size": 8, "pool": "mean", "kept": 1, "call": 0}
    assert differences(then, now) == [
        "the model: its layers or its weights",
        "the batch size (4 then, 8 now)",
        "call (None then, 0 now)",
    ]
    assert differences(then, dict(then)) == []


def test_sites_are_told_by_texts_that_another_process_gives_as_well():
    model = network()
    assert describe_at({"b": "[0]", "a": ""}, model) == ["a", "b[0]"]
    assert describe_at(["2", model[0], re.compile("f.*")], model) == ["0", "2", "re:f.*"]
    assert describe_at(nn.Linear, model) == ["torch.nn.modules.linear.Linear"]
    assert describe_at(nn.Identity(), model) == ["?"]


def test_functions_are_told_by_name():
    assert (named(None), named("mean")) == (None, "mean")
    assert named(torch.zeros(2, 3)) == "tensor (2, 3)"
    assert named(network) == f"{__name__}.network"
    assert named(nn.ReLU()).endswith("ReLU")


@pytest.mark.parametrize(
    ("rank", "world", "expected"),
    [("1", "3", (1, 3)), ("3", "3", (0, 1)), ("x", "3", (0, 1)), ("", "", (0, 1))],
)
def test_ranks_are_those_of_torchrun_where_they_make_sense(monkeypatch, rank, world, expected):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", world)
    assert ranks() == expected
