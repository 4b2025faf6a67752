"""`features`: against models cut by hand; modes, forms of `at`, pooling, errors."""

from __future__ import annotations

import gc
import re
import weakref
from collections import OrderedDict

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NoSuchSiteError, NotRunError, OptionError, PatternError, ReadError
from nethook.extracting.features import home, moved


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.drop = nn.Dropout(0.5)
        self.pool = nn.AdaptiveAvgPool2d(2)
        self.fc = nn.Linear(16, 5)
        self.unused = nn.Linear(1, 1)
        self.reached = 0

    def forward(self, x, scale=1.0):
        x = self.drop(self.relu(self.norm(self.conv(x))))
        x = self.fc(self.relu(self.pool(x).flatten(1) * scale))
        self.reached += 1
        return x


@pytest.fixture
def net():
    torch.manual_seed(0)
    return Net()


@pytest.fixture
def x():
    return torch.randn(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def test_equals_a_model_cut_by_hand(net, x):
    found = nethook.features(net, x, at="pool")
    net.eval()
    with torch.no_grad():
        cut = net.pool(net.drop(net.relu(net.norm(net.conv(x)))))
    assert torch.equal(found, cut)


def test_several_sites_are_a_dict_in_the_order_asked(net, x):
    found = nethook.features(net, x, at=["fc", "conv"])
    net.eval()
    with torch.no_grad():
        assert list(found) == ["fc", "conv"]
        assert torch.equal(found["fc"], net(x))
        assert torch.equal(found["conv"], net.conv(x))


def test_the_form_follows_from_what_was_typed_not_from_the_model(net, x):
    assert isinstance(nethook.features(net, x, at="conv"), torch.Tensor)
    assert isinstance(nethook.features(net, x, at=net.conv), torch.Tensor)
    assert isinstance(nethook.features(net, x, at=""), torch.Tensor)
    for at in (["conv"], "con*", nn.Conv2d, re.compile("conv"), lambda name, _: name == "conv"):
        assert list(nethook.features(net, x, at=at)) == ["conv"]
    assert list(nethook.features(net, x, at=["fc", "*o*l"])) == ["fc", "pool"]
    sequence = nn.Sequential(nn.Linear(2, 2))  # a module that is iterable is one module
    assert isinstance(nethook.features(sequence, torch.ones(1, 2), at=sequence), torch.Tensor)


def test_it_stops_early_and_leaves_nothing(net, x):
    nethook.features(net, x, at="norm")
    assert net.reached == 0
    nethook.features(net, x, at="fc")
    assert net.reached == 0  # after the layer, before the line behind it
    assert not nethook.audit(net)


def test_what_the_stopped_forward_held_is_free_at_once(net, x):
    """Nothing waits for the garbage collector: batch after batch, that would pile up."""
    held = []
    net.norm.register_forward_hook(lambda _, __, output: held.append(weakref.ref(output)))
    gc.disable()
    try:
        nethook.features(net, x, at="pool")
        assert len(held) == 1
        assert held[0]() is None
    finally:
        gc.enable()


def test_each_module_has_the_mode_it_had(net, x):
    net.train()
    net.norm.eval()
    before = net.norm.running_mean.clone()
    modes = [module.training for module in net.modules()]
    nethook.features(net, x, at="fc")
    assert [module.training for module in net.modules()] == modes
    net.norm.train()
    nethook.features(net, x, at="fc")
    assert torch.equal(net.norm.running_mean, before)
    with pytest.raises(RuntimeError):
        nethook.features(net, torch.ones(1, 7, 8, 8), at="fc")
    assert net.norm.training


def test_train_and_eval_of_the_users_are_not_called(x):
    class Loud(Net):
        def train(self, mode=True):
            raise AssertionError("called")

    model = Loud()
    assert nethook.features(model, x, at="fc").shape == (6, 5)
    assert model.training


def test_no_gradient_and_yet_a_head_can_be_trained(net, x):
    found = nethook.features(net, x.requires_grad_(), at="pool").flatten(1)
    assert not found.requires_grad
    assert not found.is_inference()
    nn.Linear(16, 2)(found).sum().backward()
    assert x.grad is None
    assert torch.is_grad_enabled()


def test_inputs_in_every_form(net, x):
    net.eval()
    with torch.no_grad():
        twice = net(x, scale=2.0)
    for inputs in ((x, 2.0), {"x": x, "scale": 2.0}, nethook.inputs(x, scale=2.0)):
        assert torch.equal(nethook.features(net, inputs, at="fc"), twice)


def test_device_and_dtype(net, x):
    found = nethook.features(net, x, at="fc", dtype=torch.float16, device="cpu")
    assert found.dtype is torch.float16
    found = nethook.features(net, x, at="fc", device="meta")
    assert found.device.type == "meta"
    with pytest.raises(OptionError, match="floating-point"):
        nethook.features(net, x, at="fc", dtype=torch.int8)


def test_a_model_on_meta(x):
    with torch.device("meta"):
        model = Net()
    found = nethook.features(model, x.to("meta"), at="pool")
    assert found.shape == (6, 4, 2, 2)
    assert found.device.type == "meta"


def test_which_call_of_a_site(net, x):
    first = nethook.features(net, x, at="relu")
    assert first.shape == (6, 4, 6, 6)
    assert torch.equal(nethook.features(net, x, at="relu", call=-2), first)
    assert nethook.features(net, x, at="relu", call=1).shape == (6, 16)
    assert nethook.features(net, x, at="relu", call=-1).shape == (6, 16)
    with pytest.raises(ReadError, match=r"call 2 of 'relu' was asked for.* 2 times"):
        nethook.features(net, x, at="relu", call=2)
    with pytest.raises(OptionError, match="number of a call"):
        nethook.features(net, x, at="relu", call="last")


def test_parts_of_an_output():
    torch.manual_seed(0)
    model = nn.Sequential(OrderedDict(lstm=nn.LSTM(3, 4, batch_first=True)))
    x = torch.randn(2, 5, 3)
    found = nethook.features(model, x, at={"lstm": "[1][0]"})
    with torch.no_grad():
        assert torch.equal(found["lstm"], model.lstm(x)[1][0])
    # A part that nobody asked for need not be poolable.
    pooled = nethook.features(model, x, at={"lstm": "[0]"}, pool="last")["lstm"]
    with torch.no_grad():
        assert torch.equal(pooled, model.lstm(x)[0][:, -1])
    with pytest.raises(ReadError) as caught:
        nethook.features(model, x, at="lstm")
    assert str(caught.value) == (
        "the output of 'lstm' holds 3 tensors, at [0], [1][0], [1][1]. Name one: "
        "at={'lstm': '[0]'}."
    )
    with pytest.raises(ReadError, match="holds 3 tensors"):
        nethook.features(model, x, at="lstm", pool=lambda _: 1 / 0)
    with pytest.raises(NoSuchSiteError):
        nethook.features(model, x, at={"lstm": "[5]"})
    with pytest.raises(ReadError, match=r"the part \[1\] of the output of 'lstm' is a tuple"):
        nethook.features(model, x, at={"lstm": "[1]"})
    for at in ({"l*": "[0]"}, {}):
        with pytest.raises(
            PatternError,
            match=r"`at` must map names to paths .* got ('l.' as a name|an empty mapping)",
        ):
            nethook.features(model, x, at=at)


def test_an_output_with_one_tensor_is_that_tensor():
    class Boxed(nn.Module):
        def forward(self, x):
            return {"hidden": x * 2, "loss": None}

    class Empty(nn.Module):
        def forward(self, x):
            return None

    model = nn.Sequential(OrderedDict(box=Boxed()))
    assert torch.equal(nethook.features(model, torch.ones(2, 3), at="box"), torch.full((2, 3), 2.0))
    assert nethook.features(model, torch.ones(2, 3, 4), at="box", pool="max").shape == (2, 4)
    with pytest.raises(ReadError, match="holds no tensor: it is a NoneType"):
        nethook.features(Empty(), torch.ones(1), at="")


def test_what_cannot_be_had_is_said(net, x):
    with pytest.raises(NoSuchSiteError, match="Closest: 'conv'"):
        nethook.features(net, x, at="convv")
    with pytest.raises(NoSuchSiteError, match="empty"):
        nethook.features(net, x, at=[])
    with pytest.raises(NotRunError, match="'unused' has not been called"):
        nethook.features(net, x, at="unused")
    with pytest.raises(NotRunError, match="'unused'"):
        nethook.features(net, x, at="{fc,unused}")


def test_a_transformer_against_its_own_hidden_states():
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        vocab_size=30, max_position_embeddings=16,
    )  # fmt: skip
    model = BertModel(config)
    tokens = {
        "input_ids": torch.randint(30, (3, 7)),
        "attention_mask": (torch.arange(7) < torch.tensor([[7], [4], [2]])).long(),
    }
    found = nethook.features(model, tokens, at="encoder.layer.*")
    averaged = nethook.features(model, tokens, at=["encoder.layer.2"], pool="mean")
    model.eval()
    with torch.no_grad():
        states = model(**tokens, output_hidden_states=True).hidden_states
    assert list(found) == [f"encoder.layer.{i}" for i in range(3)]
    for mine, theirs in zip(found.values(), states[1:], strict=True):
        assert torch.equal(mine, theirs)
    weights = tokens["attention_mask"].unsqueeze(-1).float()
    by_hand = (states[-1] * weights).sum(1) / weights.sum(1)  # as sentence encoders pool
    torch.testing.assert_close(averaged["encoder.layer.2"], by_hand)


def test_where_a_model_is_at_home():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2, device="meta"))
    assert home(model[0]) == torch.device("cpu")
    assert home(model) is None  # in two places: inputs are left where they are
    assert home(nn.Identity()) is None
    x = torch.ones(1, device="meta")
    assert moved((x, "a"), torch.device("cpu")) == (x, "a")  # it has nothing that could be moved
    there = moved({"x": torch.ones(1)}, torch.device("meta", 0))
    assert there["x"].device.type == "cpu"


# -- pooling --------------------------------------------------------------------------------------


class Give(nn.Module):
    """Gives its first argument; takes a mask, as an encoder does."""

    def forward(self, x, attention_mask=None):
        return x


TOKENS = torch.arange(24.0).reshape(2, 4, 3)
MASK = torch.tensor([[1, 1, 0, 0], [0, 1, 1, 0]])  # padded behind, and on both sides


def test_pooling_over_tokens_with_a_mask_leaves_out_padding():
    inputs = {"x": TOKENS, "attention_mask": MASK}
    found = {p: nethook.features(Give(), inputs, at="", pool=p) for p in ("mean", "max", "last")}
    rows = [TOKENS[0, :2], TOKENS[1, 1:3]]
    assert torch.equal(found["mean"], torch.stack([row.mean(0) for row in rows]))
    assert torch.equal(found["max"], torch.stack([row.amax(0) for row in rows]))
    assert torch.equal(found["last"], torch.stack([row[-1] for row in rows]))
    spoilt = TOKENS.clone()
    spoilt[MASK == 0] = float("nan")
    again = nethook.features(Give(), {"x": spoilt, "attention_mask": MASK}, at="", pool="mean")
    assert torch.equal(again, found["mean"])
    # The mask may be given, or left out.
    assert torch.equal(
        nethook.features(Give(), TOKENS, at="", pool="mean", mask=MASK.bool()), found["mean"]
    )
    plain = nethook.features(Give(), inputs, at="", pool="mean", mask=None)
    assert torch.equal(plain, TOKENS.mean(1))
    assert torch.equal(nethook.features(Give(), inputs, at="", pool="cls"), TOKENS[:, 0])
    none = {"x": TOKENS, "attention_mask": torch.zeros(2, 4)}
    assert not nethook.features(Give(), none, at="", pool="mean").any()
    assert not nethook.features(Give(), none, at="", pool="max").any()


@pytest.mark.parametrize(
    ("shape", "pool", "by_hand"),
    [
        ((2, 3), "mean", lambda t: t),
        ((2, 3), "max", lambda t: t),
        ((2, 4, 3), "mean", lambda t: t.mean(1)),
        ((2, 4, 3), "max", lambda t: t.amax(1)),
        ((2, 4, 3), "first", lambda t: t[:, 0]),
        ((2, 4, 3), "last", lambda t: t[:, -1]),
        ((2, 4, 3), "flatten", lambda t: t.reshape(2, 12)),
        ((2, 4, 3, 5), "mean", lambda t: t.mean((2, 3))),
        ((2, 4, 3, 5), "max", lambda t: t.amax((2, 3))),
        ((2, 4, 3, 5, 2), "mean", lambda t: t.mean((2, 3, 4))),
        ((2, 4, 3), lambda t: t.std(1), lambda t: t.std(1)),
    ],
)
def test_pooling_by_shape(shape, pool, by_hand):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    assert torch.equal(nethook.features(Give(), x, at="", pool=pool), by_hand(x))


def test_pooling_that_does_not_fit():
    for x, pool in ((TOKENS[0], "cls"), (torch.ones(2, 3, 4, 4), "last")):
        with pytest.raises(OptionError, match="which takes one token of"):
            nethook.features(Give(), x, at="", pool=pool)
    with pytest.raises(OptionError, match=r'`pool` must be "mean", "max", .* got \'avg\''):
        nethook.features(Give(), TOKENS, at="", pool="avg")
    with pytest.raises(OptionError, match=r"`mask` must have the shape \(2, 4\) .* got \(2, 3\)"):
        nethook.features(Give(), TOKENS, at="", pool="mean", mask=MASK[:, :3])
    with pytest.raises(OptionError, match="`mask` must be a tensor"):
        nethook.features(Give(), {"x": TOKENS, "attention_mask": [1]}, at="", pool="mean")
    with pytest.raises(OptionError, match="`pool` must return a tensor; got int"):
        nethook.features(Give(), TOKENS, at="", pool=lambda _: 1)
    with pytest.raises(ZeroDivisionError):
        nethook.features(Give(), TOKENS, at="", pool=lambda _: 1 / 0)


def test_an_output_that_is_one_object_has_no_features():
    class Out:
        def __init__(self, value):
            self.value = value

    class Holds(nn.Module):
        def forward(self, x):
            return Out(x)

    for options in ({}, {"pool": torch.neg}):
        with pytest.raises(ReadError, match=r"no tensor that can be addressed: it is a Out\. Name"):
            nethook.features(Holds(), torch.ones(2), at="", **options)
        with pytest.raises(LookupError, match=r"paths lead into tuples, .* and not into a "):
            nethook.features(Holds(), torch.ones(2), at={"": ".value"}, **options)


def test_features_that_are_asked_for_in_inference_mode_can_train_a_head():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    with torch.inference_mode():
        found = nethook.features(model, torch.randn(2, 4), "1")
    assert not found.is_inference()
    head = nn.Linear(3, 1)
    head(found).sum().backward()
    assert head.weight.grad is not None
