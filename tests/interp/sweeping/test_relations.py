"""What must hold on every model, whatever it computes: no truth is needed for it."""

import pytest
import torch
from torch import nn

import nethook
from nethook import edits, interp
from tests.interp import families

BLOCKS = {
    "gpt2": "transformer.h.*", "gpt2_eager": "transformer.h.*", "llama": "model.layers.*",
    "qwen3": "model.layers.*", "gemma2": "model.layers.*", "neox": "gpt_neox.layers.*",
    "falcon": "transformer.h.*", "phi3": "model.layers.*", "opt": "model.decoder.layers.*",
    "olmo2": "model.layers.*", "bloom": "transformer.h.*", "bert": "bert.encoder.layer.*",
    "modernbert": "model.layers.*", "vit": "vit.**.layer*.?", "t5": "decoder.block.*",
    "encoder": "layers.*", "encoder_norm_first": "layers.*", "decoder": "layers.*",
}  # fmt: skip


def metric(out):
    """One of the logits of the last position."""
    logits = getattr(out, "logits", out)
    return logits[:, -1, 3] if logits.ndim == 3 else logits[:, 1]


def other(inputs):
    """Inputs of the same shapes; of an encoder and a decoder, other ones for the decoder alone."""
    if isinstance(inputs, torch.Tensor):
        return inputs.flip(1) * 0.7
    if isinstance(inputs, tuple):
        return (inputs[0].flip(1) * 0.7, *inputs[1:])
    name = "decoder_input_ids" if "decoder_input_ids" in inputs else next(iter(inputs))
    return {**inputs, name: inputs[name].flip(-1)}


def test_every_family_is_here():
    assert set(BLOCKS) == set(families.ALL)


@pytest.mark.parametrize("name", BLOCKS)
def test_on_every_family(name):
    model, inputs = families.built(name)
    source = other(inputs)
    weights = {key: value.clone() for key, value in model.state_dict().items()}
    state = torch.get_rng_state()
    options = {"at": BLOCKS[name], "metric": metric}
    # Nothing is taken from elsewhere: nothing changes, exactly.
    nothing = interp.sweep(
        model, inputs, over="positions", change=interp.take(inputs), rows=1, **options
    )
    assert not nothing.effect.any()
    assert nothing.whole == ""
    assert len(nothing.sites) == 2
    # The whole of a block's output is a cut: the rest is that of the source, bit for bit.
    cut = interp.sweep(model, inputs, change=interp.take(source), rows=1, **options)
    with torch.no_grad():
        given = source if isinstance(source, dict) else nethook.inputs(*_tuple(source)).args
        there = metric(model(**given) if isinstance(given, dict) else model(*given))
    assert torch.equal(cut.values[:, 0], there.expand(2, -1))
    # Several cells in a run give what one in a run does.
    exact = interp.sweep(model, inputs, over="units", change=edits.zero(), rows=1, **options)
    batched = interp.sweep(model, inputs, over="units", change=edits.zero(), rows=16, **options)
    torch.testing.assert_close(batched.values, exact.values, rtol=1e-4, atol=1e-5)
    assert batched.floor < 1e-4
    # And everything is as it was.
    assert not nethook.audit(model)
    assert not model.training
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(weights[key], value) for key, value in model.state_dict().items())


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_changes_nothing(side):
    model, inputs = families.built("llama")
    ids, source = inputs["input_ids"], other(inputs)["input_ids"]
    options = {
        "at": "model.layers.*",
        "over": "positions",
        "metric": lambda o: o.logits[:, :, 3].amax(1),
    }
    short = ids[:1, :4]
    padded = ids.clone()
    mask = torch.ones_like(ids)
    real = slice(3, 7) if side == "left" else slice(0, 4)
    padded[0] = 0
    padded[0, real] = short[0]
    mask[0] = 0
    mask[0, real] = 1
    places = (mask.cumsum(1) - 1).clamp(min=0)
    given = {"input_ids": padded, "attention_mask": mask, "position_ids": places}

    def at_real(out):
        logits = torch.where(mask[..., None].bool(), out.logits[-len(mask) :], -torch.inf)
        return logits[:, :, 3].amax(1)

    alone = interp.sweep(model, {"input_ids": short}, change=edits.zero(), rows=1, **options)
    options["metric"] = at_real
    both = interp.sweep(model, given, change=edits.zero(), rows=1, **options)
    assert both.cells == tuple("0123456")
    torch.testing.assert_close(both.values[:, :4, 0], alone.values[:, :, 0])
    assert both.values[:, 4:, 0].isnan().all()
    assert not both.values[:, :, 1].isnan().any()
    assert source.shape == ids.shape


class Residual(nn.Module):
    """A residual block with batch norm, and one rectifier that is called twice."""

    def __init__(self, channels):
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + x)


def test_on_a_resnet():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)]
    model = nn.Sequential(*layers, Residual(4), Residual(4), *head).eval()
    base, source = torch.randn(2, 2, 3, 5, 5)
    options = {"at": ["2", "3", "*.conv1"], "metric": lambda out: out[:, 0]}
    nothing = interp.sweep(model, base, change=interp.take(base), rows=1, **options)
    assert nothing.sites == ("2.conv1", "2", "3.conv1", "3")
    assert not nothing.effect.any()
    cut = interp.sweep(model, base, change=interp.take(source), rows=1, **options)
    with torch.no_grad():
        assert torch.equal(cut.values[[1, 3], 0], model(source)[:, 0].expand(2, 2))
    exact = interp.sweep(model, base, over="units", change=edits.zero(), rows=1, **options)
    batched = interp.sweep(model, base, over="units", change=edits.zero(), **options)
    torch.testing.assert_close(batched.values, exact.values)
    assert (exact.whole, exact.runs) == ("", 16)
    # A channel without weights is one that is zero.
    pruned = model[3].conv1
    with nethook.preserve(model, "3.conv1"), torch.no_grad():
        pruned.weight[1].zero_()
        pruned.bias[1].zero_()
        assert torch.equal(exact.values[2, 1], model(base)[:, 0])
