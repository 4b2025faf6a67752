"""Which sites are meant, and which modules have to be watched for them."""

import copy

import pytest
import torch
from torch import nn

import nethook
from nethook import edits, interp
from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.errors import OptionError, SweepError
from nethook.interp.sweeping.recording import record
from nethook.interp.sweeping.sites import Wanted, found_sites, label
from tests.interp import families


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
        run = record(tree, lambda: net(x), wanted.ops, modules=wanted.recorded(tree))
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
    """Attention that has rows and heads in one dimension, also in its softmax."""

    def forward(self, x):
        parts = x.reshape(x.shape[0], x.shape[1], 2, -1).transpose(1, 2).flatten(0, 1)
        weights = torch.bmm(parts, parts.transpose(1, 2)).softmax(-1)
        mixed = torch.bmm(weights, parts)
        return mixed.unflatten(0, (-1, 2)).transpose(1, 2).flatten(2)


def test_attention_without_heads_that_can_be_changed_is_refused():
    options = {"over": "heads", "change": edits.zero(), "metric": lambda out: out[:, 0, 0]}
    with pytest.raises(SweepError, match=r"'0/bmm#1' has rows and heads in one dimension\. Sweep"):
        interp.sweep(nn.Sequential(Merged()), torch.randn(2, 3, 4), at="0", **options)


def test_heads_of_bloom_share_a_dimension_with_rows():
    model, inputs = families.built("bloom")
    found = interp.heads(model, inputs)
    metric = lambda out: out.logits[:, -1, 3]  # noqa: E731
    swept = interp.sweep(
        model, {**inputs, "use_cache": False}, at="transformer.h.*", over="heads",
        change=edits.zero(), metric=metric,
    )  # fmt: skip
    assert swept.sites == tuple(row.address for row in found)
    for number, row in enumerate(found):
        for head in range(row.heads):
            units = range(head * row.value_size, (head + 1) * row.value_size)
            silent = {row.output: {"[0]": edits.zero_units(units, dim=-1)}}
            with torch.no_grad(), nethook.edit(model, inputs=silent):
                expected = metric(model(**inputs))
            torch.testing.assert_close(swept.values[number, head], expected)


def encoder():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval().double()


@pytest.mark.parametrize("rows", [1, None])
def test_heads_of_torchs_own_attention(rows):
    """Zeroing a head is zeroing its columns of `out_proj`; taking one is `with_heads`."""
    model, (x, source) = encoder(), torch.randn(2, 3, 5, 8, dtype=torch.double)
    metric = lambda out: out[:, 0].sum(-1) + out[:, -1, 2]  # noqa: E731
    options = {"at": "layers.*", "over": "heads", "metric": metric, "rows": rows}
    swept = interp.sweep(model, x, change=edits.zero(), **options)
    assert swept.sites == tuple(
        f"layers.{n}.self_attn/multi_head_attention_forward#0" for n in range(2)
    )
    assert swept.whole == ""
    for layer in range(2):
        for head in range(2):
            pruned = copy.deepcopy(model)
            with torch.no_grad():
                weight = pruned.layers[layer].self_attn.out_proj.weight
                weight[:, head * 4 : (head + 1) * 4] = 0
                expected = metric(pruned(x))
            torch.testing.assert_close(swept.values[layer, head], expected, rtol=0, atol=1e-10)
    same = interp.sweep(model, x, change=interp.take(x), **options).effect
    assert not same.any() if rows == 1 else float(same.abs().max()) < 1e-10
    taken = interp.sweep(model, x, change=interp.take(source), **options)

    def taking(layer, head):
        heads = {}

        def keep(z):
            heads["z"] = z.clone()

        def put(z):
            return z.index_copy(1, torch.tensor([head]), heads["z"][:, [head]])

        where = f"layers.{layer}.self_attn/multi_head_attention_forward#0"
        # With gradients: without them torch runs each layer as one kernel.
        with nethook.edit(model, answers={where: interp.with_heads(keep)}):
            model(source)
        with nethook.edit(model, answers={where: interp.with_heads(put)}):
            return metric(model(x)).detach()

    for layer, head in [(0, 0), (1, 1)]:
        torch.testing.assert_close(
            taken.values[layer, head], taking(layer, head), rtol=0, atol=1e-10
        )


def test_dropout_inside_torchs_attention_is_said():
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    options = {"over": "heads", "change": edits.zero(), "metric": lambda out: out[:, 0, 0]}
    with pytest.raises(OptionError, match=r"Call model\.eval\(\) first"):
        interp.sweep(model, torch.randn(2, 3, 8), at="self_attn", **options)
