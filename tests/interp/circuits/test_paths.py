"""Path patching: exact numbers of the compiled network, and relations that hold on every model."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.circuits.paths import paths
from nethook.interp.circuits.stream import find_stream
from tests.interp import compiled_networks, families

BASE = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 1]])
SOURCE = torch.tensor([[0, 7, 2, 3, 4, 5, 6, 1]])


def logit(out: torch.Tensor) -> torch.Tensor:
    return out[:, -1, 2]


def test_the_previous_token_head_acts_through_the_keys_alone() -> None:
    model = compiled_networks.induction()
    sender = ("blocks.0.attention", 0)
    found = paths(model, BASE, SOURCE, sender, metric=logit)
    assert found.sites == ("blocks.1.attention", "unembed")
    assert float(found.effect[0]) == pytest.approx(-0.87496, abs=2e-5)
    assert float(found.effect[1]) == 0.0
    parts = [f"blocks.1.attention.{part}" for part in "qkv"]
    through = paths(model, BASE, SOURCE, sender, metric=logit, receivers=parts)
    assert through.effect.flatten().tolist()[::2] == [0.0, 0.0]
    assert float(through.effect[1]) == float(found.effect[0])


@pytest.mark.parametrize("head", [1, 2])
def test_every_other_edge_is_exactly_zero(head: int) -> None:
    model = compiled_networks.induction()
    found = paths(model, BASE, SOURCE, ("blocks.0.attention", head), metric=logit)
    assert (found.effect == 0).all()


class Part(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.fc(x)
        return out


class LinearBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Part(), Part()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.first(x)
        return x + self.second(x)


def test_on_a_linear_model_the_edges_of_a_sender_add_up_to_its_whole_effect() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(LinearBlock(), LinearBlock()), nn.Linear(4, 1)).double()
    base, source = torch.randn(2, 3, 5, 4, dtype=torch.float64)

    def metric(out: torch.Tensor) -> torch.Tensor:
        return out.sum((1, 2))

    found = paths(model, base, source, "0.0.first", metric=metric)
    assert found.sites == ("0.0.second", "0.1.first", "0.1.second", "1")
    with nethook.trace(model, "0.0.first") as tape:
        model(source)
    patch = nethook.edits.patch(tape["0.0.first"].output)
    with nethook.edit(model, outputs={"0.0.first": patch}):
        patched = metric(model(base))
    effect = (patched - metric(model(base))).detach()
    torch.testing.assert_close(found.effect.sum((0, 1)), effect, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["gpt2", "llama", "neox", "falcon", "vit", "t5"])
def test_relations_that_hold_on_every_model(name: str) -> None:
    model, inputs = families.built(name)
    key = "decoder_input_ids" if name == "t5" else next(iter(inputs))
    other = {**inputs, key: inputs[key].flip(0)}

    def metric(out: object) -> torch.Tensor:
        logits = out.logits  # type: ignore[attr-defined]
        return logits[:, -1, 3] if logits.ndim == 3 else logits[:, 0]

    same = paths(model, inputs, inputs, "embedding", metric=metric)
    assert (same.effect == 0).all()
    found = paths(model, inputs, other, "embedding", metric=metric)
    assert (found.effect != 0).any()
    last = found.sites[-1]
    # What the last part wrote is read by the readout alone: patching it is patching the edge.
    write = find_stream(model, inputs).writes[-1]
    edge = paths(model, inputs, other, write, metric=metric)
    assert edge.sites == (last,)
    with torch.no_grad():
        with nethook.trace(model, write) as tape:
            model(**other)
        with nethook.edit(model, outputs={write: nethook.edits.patch(tape[write].output)}):
            exact = metric(model(**inputs))
    torch.testing.assert_close(edge.values[0, 0], exact, rtol=1e-4, atol=1e-6)
    assert not nethook.audit(model)


def test_heads_of_a_write_add_up_before_a_linear_reader() -> None:
    model = compiled_networks.induction()
    receivers = ["blocks.1.attention.k"]
    whole = paths(model, BASE, SOURCE, "blocks.0.attention", metric=logit, receivers=receivers)
    one = paths(model, BASE, SOURCE, ("blocks.0.attention", 0), metric=logit, receivers=receivers)
    torch.testing.assert_close(whole.effect, one.effect)  # heads 1 and 2 write what is not read


def test_errors_say_what_to_type() -> None:
    model = compiled_networks.induction()
    with pytest.raises(NoSuchSiteError, match="'unembed' writes nothing to the residual stream"):
        paths(model, BASE, SOURCE, "unembed", metric=logit)
    with pytest.raises(OptionError, match="`head` must be a number from 0 to 2"):
        paths(model, BASE, SOURCE, ("blocks.0.attention", 3), metric=logit)
    with pytest.raises(OptionError, match="`source` must have the shapes of `base`"):
        paths(model, BASE, SOURCE[:, :6], "blocks.0", metric=logit)
    bert, inputs = families.built("bert")
    why = "the layout of these blocks is post-norm: a norm rescales what was written before"
    with pytest.raises(OptionError, match=why):
        paths(bert, inputs, inputs, "embedding", metric=logit)


class Encoder(nn.Module):
    """Torch's own layers, the norm before each part; the mean over tokens is read."""

    def __init__(self, *, batch_first: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(20, 8)
        layer = nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.1, batch_first=batch_first, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        for number, part in enumerate(self.layers.parameters()):
            nn.init.normal_(part, 0.5 * (number % 2), 0.4)  # layers that are not alike
        self.norm, self.out = nn.LayerNorm(8), nn.Linear(8, 3)
        self.batch_first = batch_first

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        x = self.layers(x) if self.batch_first else self.layers(x.transpose(0, 1)).transpose(0, 1)
        out: torch.Tensor = self.out(self.norm(x.mean(1)))
        return out


class Apart(nn.Module):
    """The same layers by hand, with attention whose heads, q, k and v can be taken hold of."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def attend(
        self, layer: nn.TransformerEncoderLayer, x: torch.Tensor, q: torch.Tensor | None = None,
        k: torch.Tensor | None = None, v: torch.Tensor | None = None, head: int | None = None,
    ) -> torch.Tensor:  # fmt: skip
        """What the attention writes, where `q`, `k`, `v` are streams in the place of x."""
        attention, found = layer.self_attn, []
        weights, biases = attention.in_proj_weight.split(8), attention.in_proj_bias.split(8)
        for other, weight, bias in zip((q, k, v), weights, biases, strict=True):
            mine, theirs = (
                nn.functional.linear(layer.norm1(s), weight, bias)
                .unflatten(-1, (2, 4))
                .transpose(1, 2)
                for s in (x, x if other is None else other)
            )
            if head is not None:
                theirs = torch.stack([(theirs if h == head else mine)[:, h] for h in range(2)], 1)
            found.append(theirs)
        query, key, value = found
        heads = (query @ key.transpose(-1, -2) / 2).softmax(-1) @ value
        wrote: torch.Tensor = attention.out_proj(heads.transpose(1, 2).flatten(-2))
        return wrote

    def rest(self, layer: nn.TransformerEncoderLayer, x: torch.Tensor) -> torch.Tensor:
        wrote: torch.Tensor = layer.linear2(layer.linear1(layer.norm2(x)).relu())
        return x + wrote

    def heads_of_first(self, tokens: torch.Tensor) -> torch.Tensor:
        """What each head of the first layer writes: (heads, rows, tokens, width)."""
        layer = self.encoder.layers.layers[0]
        x = self.encoder.embed(tokens)
        whole = self.attend(layer, x)
        with torch.no_grad():
            kept = layer.self_attn.out_proj.weight.clone()
            layer.self_attn.out_proj.weight[:, :4] = 0  # without head 0
            second = self.attend(layer, x)
            layer.self_attn.out_proj.weight.copy_(kept)
        bias = layer.self_attn.out_proj.bias
        return torch.stack([whole - second, second - bias])


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("head", [None, 0])
def test_parts_of_torchs_attention_equal_the_layers_written_out(
    batch_first: bool, head: int | None
) -> None:
    encoder = Encoder(batch_first=batch_first).double().eval()
    apart, (base, source) = Apart(encoder), torch.randint(0, 20, (2, 3, 5))
    one, two = encoder.layers.layers

    def metric(out: torch.Tensor) -> torch.Tensor:
        return out[:, 1]

    receivers: list[Any] = [("layers.layers.1.self_attn", part) for part in "qkv"]
    receivers += [("layers.layers.1.self_attn", part, 1) for part in "qkv"]
    sender = "layers.layers.0.self_attn" if head is None else ("layers.layers.0.self_attn", head)
    found = paths(encoder, base, source, sender, metric=metric, receivers=[*receivers, "norm"])
    assert found.sites[0] == "layers.layers.1.self_attn (q)"
    assert found.sites[3] == "layers.layers.1.self_attn (q, head 1)"

    with torch.no_grad():
        wrote, other = apart.heads_of_first(base), apart.heads_of_first(source)
        delta = (other - wrote).sum(0) if head is None else (other - wrote)[head]
        x = apart.rest(one, encoder.embed(base) + apart.attend(one, encoder.embed(base)))
        expected = []
        for receiver in receivers:
            changed: dict[str, Any] = {receiver[1]: x + delta}
            number = receiver[2] if len(receiver) == 3 else None
            y = apart.rest(two, x + apart.attend(two, x, **changed, head=number))
            expected.append(metric(encoder.out(encoder.norm(y.mean(1)))))
        y = apart.rest(two, x + apart.attend(two, x)) + delta
        expected.append(metric(encoder.out(encoder.norm(y.mean(1)))))
        whole = metric(encoder(base))
    torch.testing.assert_close(found.base, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(found.values[:, 0], torch.stack(expected), rtol=0, atol=1e-12)
    assert (found.effect.abs() > 1e-6).all()
    assert not nethook.audit(encoder)


@pytest.mark.parametrize("name", ["gpt2", "llama", "bloom"])
def test_parts_of_every_attention(name: str) -> None:
    model, inputs = families.built(name)
    other = {**inputs, "input_ids": inputs["input_ids"].flip(0)}

    def metric(out: Any) -> torch.Tensor:
        logits: torch.Tensor = out.logits
        return logits[:, -1, 3]

    attention = find_stream(model, inputs).writes[2]
    receivers: list[Any] = [(attention, part) for part in "qkv"]
    same = paths(model, inputs, inputs, "embedding", metric=metric, receivers=receivers)
    assert (same.effect == 0).all()
    found = paths(model, inputs, other, "embedding", metric=metric, receivers=receivers)
    assert (found.effect != 0).any(-1).all()
    heads = range(find_stream(model, inputs).attention_of(attention).kv_heads)
    alone = [(attention, "v", head) for head in heads]
    each = paths(model, inputs, other, "embedding", metric=metric, receivers=alone)
    assert (each.effect != 0).any(-1).all()
    # What a head does alone is not what all do, unless there is but one.
    assert len(heads) == 1 or not torch.equal(each.values[0], found.values[2])


def test_a_module_behind_a_norm_is_not_taken_for_a_reader() -> None:
    model, inputs = families.built("llama")
    attention = find_stream(model, inputs).writes[2]

    def metric(out: Any) -> torch.Tensor:
        logits: torch.Tensor = out.logits
        return logits[:, -1, 3]

    with pytest.raises(OptionError, match=r"q_proj' is not given the residual stream"):
        paths(model, inputs, inputs, "embedding", metric=metric, receivers=[f"{attention}.q_proj"])
    for receiver in (
        find_stream(model, inputs).readers[0],
        (find_stream(model, inputs).writes[0], "q"),
    ):
        with pytest.raises(OptionError, match=r"a path must lead forward"):
            paths(model, inputs, inputs, attention, metric=metric, receivers=[receiver])
    for wrong in ((attention, "z"), (attention,)):
        with pytest.raises(OptionError, match=r"parts of attentions as \(module, \"q\"\)"):
            paths(model, inputs, inputs, "embedding", metric=metric, receivers=[wrong])
    with pytest.raises(OptionError, match="`head` must be a number from 0 to"):
        paths(model, inputs, inputs, "embedding", metric=metric, receivers=[(attention, "k", 99)])
