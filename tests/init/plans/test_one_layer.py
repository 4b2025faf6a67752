"""`initialize_layer`: the notes' recipe, with the right fans for every kind of layer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from nethook.errors import ActivationError, InitError, OptionError
from nethook.init import gain, initialize_layer

ROOT_2 = math.sqrt(2)


def std(tensor):
    return float(tensor.detach().std(correction=0))


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid", "linear", "selu"])
def test_the_notes_function_bit_for_bit(activation):
    ours, theirs = nn.Linear(100, 80), nn.Linear(100, 80)
    torch.manual_seed(3)
    assert initialize_layer(ours, activation=activation) is ours
    torch.manual_seed(3)
    nn.init.xavier_uniform_(theirs.weight, gain=nn.init.calculate_gain(activation))
    assert torch.allclose(ours.weight, theirs.weight, rtol=1e-6, atol=0)
    assert not ours.bias.any()


def test_a_plain_convolution_as_torch_does_it():
    ours, theirs = nn.Conv2d(8, 16, 3), nn.Conv2d(8, 16, 3)
    torch.manual_seed(3)
    initialize_layer(ours, "relu", method="kaiming_uniform")
    torch.manual_seed(3)
    nn.init.kaiming_uniform_(theirs.weight, nonlinearity="relu")
    assert torch.allclose(ours.weight, theirs.weight, rtol=1e-6, atol=0)


def test_a_packed_projection_is_three_square_ones():
    layer = initialize_layer(nn.MultiheadAttention(64, 4), "linear")
    expected = math.sqrt(2 / 128)
    assert std(layer.in_proj_weight) == pytest.approx(expected, rel=0.02)
    assert std(layer.out_proj.weight) == pytest.approx(expected, rel=0.03)
    auto = initialize_layer(nn.MultiheadAttention(64, 4), "linear", method="auto")
    for part in auto.in_proj_weight.detach().chunk(3):
        assert torch.allclose(part @ part.T, torch.eye(64), atol=1e-5)


def test_attention_with_other_widths_and_biases_of_keys():
    layer = nn.MultiheadAttention(64, 4, kdim=32, vdim=16, add_bias_kv=True)
    initialize_layer(layer, "linear", method="kaiming_normal")
    assert std(layer.k_proj_weight) == pytest.approx(1 / math.sqrt(32), rel=0.05)
    assert std(layer.v_proj_weight) == pytest.approx(1 / math.sqrt(16), rel=0.08)
    assert not layer.bias_k.any()


@pytest.mark.parametrize("cls", [nn.LSTM, nn.GRU, nn.RNN, nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_recurrent_layers_gate_by_gate(cls):
    layer = initialize_layer(cls(20, 30), "linear", method="auto")
    named = dict(layer.named_parameters())
    (hidden,) = [value for name, value in named.items() if name.startswith("weight_hh")]
    for gate in hidden.detach().split(30):
        assert torch.allclose(gate @ gate.T, torch.eye(30), atol=1e-5)
    biases = [value for name, value in named.items() if name.startswith("bias")]
    # The forget gate of an LSTM starts open: 30 ones, once.
    ones = sum(float(bias.detach().sum()) for bias in biases)
    assert ones == (30 if "LSTM" in cls.__name__ else 0)


def test_recurrent_weights_between_states_take_no_gain():
    plain = initialize_layer(nn.LSTM(40, 40), "relu")
    assert std(plain.weight_ih_l0) == pytest.approx(ROOT_2 * math.sqrt(2 / 80), rel=0.03)
    assert std(plain.weight_hh_l0) == pytest.approx(math.sqrt(2 / 80), rel=0.03)
    assert not plain.bias_ih_l0.any()


def test_embeddings_keep_their_padding():
    layer = initialize_layer(nn.Embedding(500, 16, padding_idx=3), method="auto")
    assert not layer.weight[3].any()
    assert std(layer.weight) == pytest.approx(1.0, rel=0.05)


def test_norms_start_as_nothing():
    layer = nn.LayerNorm(8)
    nn.init.constant_(layer.weight, 3.0)
    nn.init.constant_(layer.bias, 3.0)
    initialize_layer(layer)
    assert torch.equal(layer.weight, torch.ones(8))
    assert not layer.bias.any()


@pytest.mark.parametrize("layer", [nn.Linear(64, 256), nn.Linear(256, 64), nn.Conv2d(16, 8, 3)])
def test_auto_keeps_the_scale_of_what_an_activation_feeds(layer):
    """Exact gain and fan_in: the mean square that went into the GELU comes out of the layer."""
    torch.manual_seed(0)
    initialize_layer(layer, "gelu", method="auto")
    shape = (512, 16, 8, 8) if isinstance(layer, nn.Conv2d) else (4096, layer.in_features)
    with torch.no_grad():
        out = layer(nn.functional.gelu(torch.randn(shape)))
    # Means of GELU meet in one direction, so few directions decide: a wide margin.
    assert float(out.square().mean()) == pytest.approx(1.0, abs=0.35)
    assert std(layer.weight) == pytest.approx(
        gain("gelu") / math.sqrt(layer.weight[0].numel()), rel=0.01
    )


def test_delta_orthogonal_is_one_orthogonal_tap():
    layer = initialize_layer(nn.Conv2d(8, 8, 3), "linear", method="delta-orthogonal")
    weight = layer.weight.detach()
    centre = weight[:, :, 1, 1]
    assert torch.allclose(centre @ centre.T, torch.eye(8), atol=1e-5)
    assert int((weight != 0).sum()) == 64


def test_parametrised_weights_are_written_through_their_inverse():
    layer = parametrizations.weight_norm(nn.Linear(30, 20))
    torch.manual_seed(3)
    initialize_layer(layer, "relu")
    plain = nn.Linear(30, 20)
    torch.manual_seed(3)
    initialize_layer(plain, "relu")
    assert torch.allclose(layer.weight, plain.weight, atol=1e-6)


def test_seeds_types_and_generators():
    def made(dtype, device="cpu"):
        generator = torch.Generator().manual_seed(7)
        layer = nn.Linear(50, 40, dtype=dtype, device=device)
        return initialize_layer(layer, generator=generator).weight.detach()

    before = torch.get_rng_state()
    first = made(torch.float32)
    layer = nn.Linear(2, 2)  # draws from torch's own
    assert torch.equal(made(torch.float32), first)
    assert torch.equal(made(torch.bfloat16), first.bfloat16())
    assert torch.equal(made(torch.float16), first.half())
    assert not torch.equal(before, torch.get_rng_state())
    assert layer.weight.requires_grad


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (nn.ReLU(), "it has no parameters of its own"),
        (nn.TransformerEncoderLayer(8, 2), "nethook.init.plan"),
        (nn.Linear(3, 3, device="meta"), "to_empty"),
        (nn.LazyLinear(3), "run the model once"),
        (nn.Linear(3, 3, dtype=torch.complex64), "of type complex64"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_cannot_be_initialised_is_refused(layer, text):
    with pytest.raises(InitError, match=text):
        initialize_layer(layer)


def test_wrong_words():
    with pytest.raises(OptionError, match=r"Closest: 'xavier_uniform'"):
        initialize_layer(nn.Linear(3, 3), method="xavier_unifrom")
    with pytest.raises(ActivationError, match="Closest: 'gelu'"):
        initialize_layer(nn.Linear(3, 3), "gelo")
