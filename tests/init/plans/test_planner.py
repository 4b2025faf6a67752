"""Plans: what feeds and follows each weight, by data flow, and what comes of it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

import nethook
from nethook.errors import OptionError
from nethook.init import apply_, gain, plan
from tests.init.networks import Functional, Reader, ResNet, gpt2, llama, mlp, transformer

IMAGES = torch.randn(4, 3, 8, 8)
TOKENS = torch.randint(1, 20, (4, 12))


def state(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (lambda: mlp(4, nn.GELU), torch.randn(8, 64)),
        (lambda: ResNet(2, norm=True), IMAGES),
        (transformer, torch.randn(2, 5, 32)),
        (Reader, TOKENS),
        (lambda: nn.Sequential(nn.Linear(64, 8), nn.Dropout(0.5)), torch.randn(8, 64)),
    ],
    ids=["mlp", "resnet", "transformer", "lstm", "dropout"],
)
@pytest.mark.parametrize("training", [True, False])
def test_nothing_is_changed(make, inputs, training):
    model = make().train(training)
    before, random = state(model), torch.get_rng_state()
    fast = torch.backends.mha.get_fastpath_enabled()
    plan(model, inputs)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(module.training == training for module in model.modules())
    assert all(each.grad is None for each in model.parameters())
    assert len(nethook.audit(model)) == 0
    assert torch.backends.mha.get_fastpath_enabled() == fast


def test_the_first_layer_keeps_the_scale_of_the_data_and_the_next_that_of_its_activation():
    torch.manual_seed(0)
    x = 5 * torch.randn(256, 64)
    found = plan(mlp(3, nn.GELU), x)
    measured = math.sqrt(float(x.double().square().mean()))
    assert found["0.weight"].std == pytest.approx(1 / (measured * 8), rel=1e-6)
    assert found["0.weight"].fed_by == "input"
    assert found["0.weight"].feeds == "gelu"
    assert found["2.weight"].std == pytest.approx(gain("gelu") / 8, rel=1e-6)
    assert found["4.weight"].feeds == "output"
    assert found["0.bias"].std == 0


@pytest.mark.parametrize("method", ["he", "glorot"])
def test_methods_of_the_literature_are_theirs(method):
    """Of the He family every layer is what torch's function gives, by its standard deviation."""
    model = mlp(3, nn.ReLU)
    found = plan(model, torch.randn(8, 64), method)
    weight = torch.empty(400, 64)
    expected = {
        "he": nn.init.kaiming_normal_(weight, nonlinearity="relu").std(),
        "glorot": torch.tensor(math.sqrt(2) * math.sqrt(2 / 128)),
    }[method]
    assert found["0.weight"].std == pytest.approx(float(expected), rel=0.03)
    assert found["4.weight"].std == pytest.approx(
        {"he": 1 / 8, "glorot": math.sqrt(2 / 74)}[method]
    )
    assert found.method == method
    assert (found["0.weight"].distribution == "normal") == (method == "he")


def test_he_and_auto_agree_on_relu_networks():
    model, x = mlp(4, nn.ReLU), torch.randn(4096, 64)
    he, auto = plan(model, x, "he"), plan(model, x)
    for name in ("2.weight", "4.weight"):
        assert auto[name].std == pytest.approx(he[name].std, rel=1e-9)


def test_delta_orthogonal():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 3))
    found = plan(model, IMAGES, "delta-orthogonal")
    apply_(model, found, 0)
    centre = model[2].weight.detach()[:, :, 1, 1]
    assert torch.allclose(centre @ centre.T, gain("tanh") ** 2 * torch.eye(8), atol=1e-5)
    assert int((model[2].weight != 0).sum()) == 64


def test_functional_activations_and_sums():
    found = plan(Functional(), torch.randn(64, 32))
    assert found["first.weight"].feeds == "leaky_relu(0.2)"
    assert found["second.weight"].fed_by == "leaky_relu(0.2)"
    assert found["second.weight"].residual == (1, 2)
    assert found["third.weight"].fed_by == "residual add 1 of 2"
    # x · sigmoid(x) is SiLU, whatever it is called
    assert found["fourth.weight"].fed_by == "sigmoid mul"
    target = found["fourth.weight"].target
    assert found["fourth.weight"].residual == (2, 2)
    assert found.residual_adds == 2
    # The stream grows by half of its start at each of its two sums.
    start = found["second.weight"].target
    assert target == pytest.approx(start)
    assert found["third.weight"].std == pytest.approx(1 / (math.sqrt(3) * start * math.sqrt(32)))


def test_an_activation_written_out_has_the_gain_of_what_it_is():
    found = plan(gpt2(), TOKENS)
    row = found["transformer.h.0.mlp.c_proj.weight"]
    assert row.fed_by == "NewGELUActivation"
    assert row.target is not None
    assert row.std == pytest.approx(row.target * gain("gelu_tanh") / math.sqrt(128), rel=1e-6)


def test_residual_branches_are_divided_by_the_number_of_sums_they_meet():
    found = plan(ResNet(5, norm=False), IMAGES)
    assert [found[f"low.{at}.b.weight"].residual for at in range(5)] == [
        (number, 5) for number in range(1, 6)
    ]
    # The projection between the stages sets the scale anew: another stream.
    assert found["high.0.b.weight"].residual == (1, 5)
    assert found["low.0.a.weight"].residual is None
    assert found["low.0.b.weight"].target == pytest.approx(math.sqrt(0.5 / 5), rel=1e-6)
    assert "1/√5" in found["low.0.b.weight"].reason


@pytest.mark.parametrize("norm", [True, False])
def test_branches_may_start_at_zero(norm):
    model = ResNet(2, norm=norm)
    apply_(model, plan(model, IMAGES, zero=True), 0)
    for block in [*model.low, *model.high]:
        last = block.norm_b.weight if norm else block.b.weight
        assert not last.any()
        assert block.a.weight.any()
        x = torch.randn(2, block.a.in_channels, 4, 4).relu()
        assert torch.equal(block(x), x)


def test_a_scale_that_a_norm_cancels_is_marked():
    found = plan(ResNet(2, norm=True), IMAGES)
    assert found["low.0.a.weight"].cancelled_by == "low.0.norm_a/batch_norm#0"
    assert "cancels its scale" in found["low.0.a.weight"].reason
    assert not found["stem.weight"].cancelled_by
    # The last norm of the branch carries the factor instead.
    assert found["low.0.norm_b.weight"].std == pytest.approx(math.sqrt(0.5 / 2), rel=1e-6)
    assert found["low.0.norm_a.weight"].std == 1


def test_a_post_norm_transformer_has_no_stream_to_grow():
    found = plan(transformer(norm_first=False), torch.randn(2, 5, 32))
    assert found["layers.2.linear2.weight"].residual == (1, 1)
    first = plan(transformer(norm_first=True), torch.randn(2, 5, 32))
    assert first["layers.2.linear2.weight"].residual == (6, 6)


def test_attention_inside_torchs_own_function():
    found = plan(transformer(2), torch.randn(2, 5, 32))
    packed = found["layers.0.self_attn.in_proj_weight"]
    assert (packed.role, packed.fan_in, packed.fan_out) == ("query, key, value", 32, 32)
    assert packed.std == pytest.approx(1 / math.sqrt(32))
    out = found["layers.0.self_attn.out_proj.weight"]
    assert out.role == "attention output"
    assert out.residual == (1, 4)


def test_attention_by_data_flow():
    found = plan(llama(), TOKENS)
    roles = {each: found[f"model.layers.0.self_attn.{each}_proj.weight"].role for each in "qkv"}
    assert roles == {"q": "query", "k": "key", "v": "value"}
    assert "query or key" in found["model.layers.0.self_attn.q_proj.weight"].not_calibrated
    # A norm that is written out in four operations, and its scale
    assert found["model.layers.0.input_layernorm.weight"].role == "norm scale"
    assert found["model.layers.0.self_attn.q_proj.weight"].fed_by == "norm"
    assert found["model.layers.1.mlp.down_proj.weight"].residual == (4, 4)


def test_a_packed_projection_of_a_linear_layer_is_three():
    found = plan(gpt2(), TOKENS)
    row = found["transformer.h.0.attn.c_attn.weight"]
    assert (row.role, row.fan_in, row.fan_out) == ("query, key, value", 32, 32)
    assert row.value_block == 2
    assert row.layout is not None
    assert row.layout.in_first  # a weight of (in, out)


def test_tied_weights_are_one_row_and_the_product_decides():
    found = plan(gpt2(), TOKENS)
    row = found["transformer.wte.weight"]
    assert row is found["lm_head.weight"]
    assert row.std == pytest.approx(1 / math.sqrt(32))
    assert "tied to an embedding" in row.reason
    # What is added to it is as large.
    assert found["transformer.wpe.weight"].std == pytest.approx(1 / math.sqrt(32))


def test_recurrent_layers_and_embeddings():
    model = Reader()
    found = plan(model, TOKENS)
    assert found["embedding.weight"].std == 1
    assert found["embedding.weight"].zero_row == 0
    assert found["lstm.weight_hh_l0"].std == pytest.approx(1 / math.sqrt(32))
    assert found["lstm.bias_ih_l0"].ones == (32, 64)
    apply_(model, found, 0)
    assert not model.embedding.weight[0].any()
    assert model.lstm.bias_ih_l0.detach().sum() == 32
    gate = model.lstm.weight_hh_l1.detach()[:32]
    assert torch.allclose(gate @ gate.T, torch.eye(32), atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "x", "fans"),
    [
        (nn.Conv2d(8, 8, 3, groups=8), torch.randn(2, 8, 6, 6), (9, 9)),
        (nn.Conv2d(8, 4, 3, stride=2, groups=2), torch.randn(2, 8, 9, 9), (36, 4.5)),
        (nn.ConvTranspose2d(8, 4, 4, stride=2), torch.randn(2, 8, 6, 6), (32, 64)),
        (nn.Conv1d(8, 4, 3, stride=3), torch.randn(2, 8, 9), (24, 4)),
        (nn.Bilinear(4, 5, 6), (torch.randn(3, 4), torch.randn(3, 5)), (20, 30)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_fans_are_read_from_the_operation(layer, x, fans):
    row = plan(layer, x)["weight"]
    assert (row.fan_in, row.fan_out) == fans


class Written(nn.Module):
    """Weights that are used in ways of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.right = nn.Parameter(torch.randn(6, 4))
        self.turned = nn.Parameter(torch.randn(6, 4))
        self.letters = nn.Parameter(torch.randn(4, 2, 3))
        self.bias = nn.Parameter(torch.randn(4))
        self.scale = nn.Parameter(torch.ones(4))
        self.places = nn.Parameter(torch.randn(5, 6))
        self.token = nn.Parameter(torch.randn(1, 1, 6))
        self.odd = nn.Parameter(torch.randn(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (batch, 5, 6)
        x = torch.cat([self.token.expand(len(x), -1, -1), x + self.places], 1)
        x = x + torch.cumsum(self.odd, 0).sin()
        h = torch.relu(x @ self.right + self.bias)  # (batch, 6, 4)
        h = F.linear(h, self.turned) * 1.0  # (batch, 6, 6)
        return torch.einsum("btd,dhk->bthk", (h @ self.right) * self.scale, self.letters)


def test_parameters_used_by_hand():
    found = plan(Written(), torch.randn(3, 5, 6))
    assert (found["right"].fan_in, found["right"].fan_out) == (6, 4)
    assert (found["turned"].fan_in, found["turned"].fan_out) == (4, 6)
    assert (found["letters"].fan_in, found["letters"].fan_out) == (4, 6)
    assert found["bias"].role == "bias"
    left = {row.parameter: row.reason for row in found.untouched}
    assert sorted(left) == ["odd", "places", "scale", "token"]
    assert "added to the signal" in left["places"]
    assert "joined to the signal" in left["token"]
    assert "factor of the signal" in left["scale"]
    assert "computed from it" in left["odd"] or "not understood" in left["odd"]
    assert any("right" in each for each in found.warnings)  # used twice


class Left(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used = nn.Linear(4, 4)
        self.idle = nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.slope = nn.PReLU()
        self.normed = parametrizations.weight_norm(nn.Linear(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.normed(self.slope(self.frozen(self.used(x))))


def test_what_is_left_alone_is_listed_loudly_with_the_reason():
    found = plan(Left(), torch.randn(8, 4))
    reasons = {row.parameter: row.reason for row in found.untouched}
    assert "never called" in reasons["idle.weight"]
    assert "frozen" in reasons["frozen.weight"]
    assert "slope of an activation" in reasons["slope.weight"]
    assert "parametrisation" in reasons["normed.parametrizations.weight.original1"]
    text = repr(found)
    assert "NOT TOUCHED: 7 parameters" in text
    assert all(name in text for name in reasons)
    assert "never called in this forward: 'idle'" in text


def test_every_parameter_has_a_row():
    for model, inputs in [(Left(), torch.randn(8, 4)), (gpt2(), TOKENS), (Reader(), TOKENS)]:
        found = plan(model, inputs)
        assert len(found) == len(list(model.parameters()))
        assert [each.reason for each in found if not each.reason] == []


def test_control_flow_is_followed_as_it_ran():
    class Branching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

        def forward(self, x):
            return self.a(x).relu() if x.sum() > 0 else self.b(x)

    found = plan(Branching(), torch.ones(2, 4))
    assert found["a.weight"].feeds == "relu"
    assert [row.parameter for row in found.untouched] == ["b.weight", "b.bias"]


def test_hidden_functions_are_seen_by_what_goes_in_and_comes_out():
    class Clamp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clamp(min=0)

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Layer(nn.Module):
        def forward(self, x):
            return Clamp.apply(x)

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), Layer(), nn.Linear(64, 3))
    found = plan(model, torch.randn(512, 64))
    # Its function is not known, so its effect on the scale was measured: that of a ReLU.
    assert found["2.weight"].std == pytest.approx(math.sqrt(2) / 8, rel=0.05)


@pytest.mark.parametrize("compiled", [False, True])
def test_wrapped_models(compiled):
    model = mlp(3, nn.ReLU, 8)
    wrapped = torch.compile(model, backend="eager") if compiled else nn.DataParallel(model)
    found = plan(wrapped, torch.randn(4, 8))
    assert found["2.weight"].fed_by == "relu"
    apply_(wrapped, found, 0)
    again = mlp(3, nn.ReLU, 8)
    apply_(again, found, 0)
    assert torch.equal(model[2].weight, again[2].weight)


def test_a_model_without_memory_can_be_planned():
    found = plan(mlp(3, nn.GELU, device_free := 16), torch.randn(4, device_free))
    meta = plan(mlp(3, nn.GELU, 16).to("meta"), torch.randn(4, 16, device="meta"))
    assert meta["2.weight"].std == found["2.weight"].std
    assert meta["0.weight"].std == pytest.approx(1 / 4)  # data of unit scale is assumed


def test_wrong_words():
    with pytest.raises(OptionError, match="`method` must be the name of a method; got 'magic'"):
        plan(mlp(2, nn.ReLU), torch.randn(2, 64), "magic")
