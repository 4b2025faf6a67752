"""Which sites are meant, and which modules have to be watched for them."""

import pytest
import torch
from torch import nn

from nethook import edits, interp
from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.errors import SweepError
from nethook.interp.sweeping.recording import record
from nethook.interp.sweeping.sites import Wanted, found_sites, label


def model():
    block = lambda: nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2)})  # noqa: E731

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            self.h = nn.ModuleList([block(), block()])
            self.unused = nn.Linear(2, 2)
            self.lstm = nn.LSTM(2, 2)

        def forward(self, x):
            x = self.embed(x)
            for each in self.h:
                x = each["b"](torch.tanh(each["a"](x)))
            return self.lstm(x)[0]

    torch.manual_seed(0)
    return Model()


def test_only_what_is_around_and_beside_the_sites_is_watched():
    tree = Tree(model())
    beside = {"", "embed", "h", "unused", "lstm"}
    assert Wanted(tree, "embed", "").recorded(tree) == beside
    assert Wanted(tree, "h.1.b", "").recorded(tree) == beside | {"h.0", "h.1", "h.1.a", "h.1.b"}
    assert Wanted(tree, None, "").recorded(tree) == set()
    assert Wanted(tree, "embed/relu", "").recorded(tree) == beside | {"embed.0", "embed.1"}


def test_sites_come_in_order_of_execution():
    net = model()
    tree, x = Tree(net), torch.ones(3, 1, 2)

    def found(at):
        wanted = Wanted(tree, at, "")
        run = record(tree, lambda: net(x), wanted.searched, modules=wanted.recorded(tree))
        return [label(site) for site in found_sites(wanted, run, Inputs((x,)))]

    assert found(["h.*.b", "/tanh", "embed"]) == [
        "embed", "/tanh#0", "h.0.b", "/tanh#1", "h.1.b"
    ]  # fmt: skip
    assert found("lstm") == ["lstm[0]"]
    assert found({"lstm": "[1][0]"}) == ["lstm[1][0]"]
    assert found(nn.Linear) == ["embed.0", "h.0.a", "h.0.b", "h.1.a", "h.1.b"]
    with pytest.raises(
        SweepError, match=r"nothing of 'unused' ran with base. nethook.sites\(model"
    ):
        found("unused")


def test_a_part_of_a_nested_output_is_changed():
    net, x = model(), torch.ones(3, 1, 2)
    one = interp.sweep(
        net, x, at={"lstm": "[1][0]"}, change=edits.zero(), metric=lambda o: o[-1, :, 0]
    )
    assert not one.effect.any()  # the last state is not used
    assert one.whole == ""


class Merged(nn.Module):
    """Attention that has rows and heads in one dimension."""

    def forward(self, x):
        parts = x.reshape(x.shape[0], x.shape[1], 2, -1).transpose(1, 2).flatten(0, 1)
        weights = torch.bmm(parts, parts.transpose(1, 2)).softmax(-1)
        mixed = torch.bmm(weights, parts)
        return mixed.unflatten(0, (-1, 2)).transpose(1, 2).flatten(2)


@pytest.mark.parametrize(
    ("model", "at", "words"),
    [
        (nn.Sequential(Merged()), "0", r"'0/bmm#1' has rows and heads in one dimension\. Sweep"),
        (
            nn.TransformerEncoderLayer(4, 2, 4, batch_first=True).eval(),
            "self_attn",
            r"'self_attn' is an nn\.MultiheadAttention, which mixes heads",
        ),
    ],
)
def test_attention_without_heads_that_can_be_changed_is_refused(model, at, words):
    options = {"over": "heads", "change": edits.zero(), "metric": lambda out: out[:, 0, 0]}
    with pytest.raises(SweepError, match=words):
        interp.sweep(model, torch.randn(2, 3, 4), at=at, **options)
