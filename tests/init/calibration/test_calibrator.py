"""Calibration: one forward, every scale as asked, and nothing else changed."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

import nethook
from nethook.addresses.inputs import as_inputs
from nethook.errors import InitError, OptionError
from nethook.init import apply_, calibrate_, plan, verify
from nethook.init.calibration.from_shapes import learn_structure, structure_of
from nethook.init.dataflow.recorder import record
from tests.init.networks import Reader, ResNet, gpt2, llama, mlp, rms, transformer, vit

TOKENS = torch.randint(1, 20, (4, 12))
IMAGES = torch.randn(4, 3, 8, 8)
SEQUENCES = torch.randn(4, 6, 32)


def start(model, x):
    found = plan(model, x)
    apply_(model, found, 0)
    return found


def forwards(model):
    """How often a model is called."""
    calls = []
    handle = model.register_forward_hook(lambda *_: calls.append(1))
    return calls, handle


@pytest.mark.parametrize("planned", [True, False])
def test_one_forward_and_every_layer_at_one(planned):
    torch.manual_seed(0)
    model, x = mlp(12, nn.SiLU), torch.randn(128, 64)
    found = start(model, x) if planned else None
    calls, handle = forwards(model)
    result = calibrate_(model, x, plan=found)
    handle.remove()
    assert len(calls) == result.forwards == 1
    for row in verify(model, x):
        assert row.forward == pytest.approx(1.0, abs=1e-5)
    assert len(result) == 12
    assert all(row.after == pytest.approx(1.0, abs=1e-5) for row in result)


MODELS = {
    "mlp": (lambda: mlp(8, nn.GELU), torch.randn(32, 64)),
    "resnet": (lambda: ResNet(3, norm=False), IMAGES),
    "batchnorm": (lambda: ResNet(3, norm=True), IMAGES),
    "transformer": (transformer, SEQUENCES),
    "lstm": (Reader, TOKENS),
    "gpt2": (gpt2, TOKENS),
    "llama": (llama, TOKENS),
    "vit": (vit, IMAGES),
}


@pytest.mark.parametrize(("make", "x"), MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("planned", [True, False])
def test_one_forward_and_a_second_run_changes_nothing(make, x, planned):
    torch.manual_seed(0)
    model = make()  # in training mode, with its dropout
    found = start(model, x) if planned else None
    calls, handle = forwards(model)
    first = calibrate_(model, x, plan=found)
    assert len(calls) == first.forwards == 1
    handle.remove()
    assert all(row.after == pytest.approx(row.target, rel=1e-5) for row in first)
    before = [each.detach().clone() for each in model.parameters()]
    torch.manual_seed(99)  # dropout must not depend on it
    second = calibrate_(model, x, plan=found)
    assert second.largest_change <= 1e-6
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.allclose(new, old, rtol=1e-6, atol=0)


@pytest.mark.parametrize(("make", "x"), MODELS.values(), ids=MODELS)
def test_the_structure_is_learnt_without_data(make, x):
    torch.manual_seed(0)
    model, given = make(), as_inputs(x)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    learnt, wanted = learn_structure(model, given), structure_of(model, record(model, given))
    for ours, theirs in zip(learnt.plan.rows, wanted.plan.rows, strict=True):
        for name in ("parameter", "role", "residual", "cancelled_by", "value_block"):
            assert getattr(ours, name) == getattr(theirs, name)
        assert bool(ours.not_calibrated) == bool(theirs.not_calibrated)
    assert learnt.streams == wanted.streams
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_branch_is_measured_against_its_own_stream():
    """GPT-2's embeddings are small and are not calibrated: its branches are as small."""
    torch.manual_seed(0)
    model = gpt2()
    result = calibrate_(model, TOKENS)
    with nethook.trace(model, "**.drop") as tape:
        model(TOKENS)
    stream = rms(tape[next(iter(tape))].output)
    ends = [row for row in result if row.parameter.endswith("mlp.c_proj.weight")]
    sums = 2 * len(ends)
    for row in ends:
        assert row.target == pytest.approx(stream / math.sqrt(sums), rel=0.1)  # its dropout is on


class LooksAtValues(nn.Module):
    """A residual network that no shadow can run."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)) for _ in range(3)
        )

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            if x.abs().sum() > 0:
                x = x + block(x)
        return x


def test_a_forward_that_looks_at_values_is_learnt_from_data():
    torch.manual_seed(0)
    model, x = LooksAtValues(), torch.randn(64, 8)
    assert learn_structure(model, as_inputs(x)) is None
    first = calibrate_(model, x)
    assert first.forwards == 2
    found = {row.parameter: row for row in first}
    assert found["blocks.1.2.weight"].target == pytest.approx(1 / math.sqrt(3), rel=1e-5)
    assert calibrate_(model, x).largest_change <= 1e-6


def test_what_it_leaves_behind():
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5), nn.Conv2d(8, 8, 3)
    )
    model[3].eval()
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    random = torch.get_rng_state()
    result = calibrate_(model, IMAGES)
    assert [module.training for module in model] == [True, True, True, False, True]
    assert all(torch.equal(buffers[name], value) for name, value in model.named_buffers())
    assert torch.equal(torch.get_rng_state(), random)
    assert len(nethook.audit(model)) == 0
    assert all(each.grad is None and each.requires_grad for each in model.parameters())
    assert dict(result.left)["0.weight"] == "no effect: 1/batch_norm#0 cancels its scale"


def test_a_weight_that_a_norm_cancels_keeps_its_value():
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3))
    before = model[0].weight.clone()
    calibrate_(model, IMAGES)
    assert torch.equal(model[0].weight, before)


@pytest.mark.parametrize("target", [0.1, 1.0, 3.0])
def test_other_targets(target):
    model, x = mlp(4, nn.Tanh), torch.randn(64, 64)
    calibrate_(model, x, target)
    for row in verify(model, x):
        assert row.forward == pytest.approx(target, rel=1e-5)


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(8, 5),
        nn.Conv1d(8, 6, 3, groups=2),
        nn.ConvTranspose1d(8, 6, 3, stride=2),
        nn.Linear(8, 5, bias=False),
    ],
    ids=["linear", "conv", "transposed", "no bias"],
)
def test_biases_are_counted_in(layer):
    torch.manual_seed(0)
    if layer.bias is not None:
        nn.init.normal_(layer.bias, 0.2, 0.3)
    bias = None if layer.bias is None else layer.bias.detach().clone()
    x = torch.randn(64, 8) if isinstance(layer, nn.Linear) else torch.randn(16, 8, 20)
    calibrate_(layer, x)
    assert rms(layer(x)) == pytest.approx(1.0, abs=1e-5)
    if bias is not None:
        assert torch.equal(layer.bias, bias)


def test_a_bias_that_is_too_large_is_left_out_and_said():
    layer = nn.Linear(8, 5)
    nn.init.constant_(layer.bias, 7.0)
    x = torch.randn(64, 8)
    (row,) = calibrate_(layer, x)
    assert rms(layer(x) - 7.0) == pytest.approx(1.0, abs=1e-5)
    assert row.note == "its bias alone is larger than the target: left out"


def test_residual_branches_get_their_share():
    torch.manual_seed(0)
    model = ResNet(4, norm=False)
    found = start(model, IMAGES)
    calibrate_(model, IMAGES, plan=found)
    report = verify(model, IMAGES)
    for at in range(4):
        row = found[f"low.{at}.b.weight"]
        assert report[f"low.{at}.b"].forward == pytest.approx(row.target, rel=1e-4)
    assert found["low.0.b.weight"].target == pytest.approx(math.sqrt(0.5 / 4), rel=1e-6)


def test_attention_has_its_values_and_its_output_set():
    torch.manual_seed(0)
    model = nn.MultiheadAttention(32, 4, batch_first=True)
    nn.init.normal_(model.in_proj_weight, 0, 3.0)
    queries = model.in_proj_weight[:64].clone()
    result = calibrate_(model, (SEQUENCES, SEQUENCES, SEQUENCES))
    assert torch.equal(model.in_proj_weight[:64], queries)
    values = nn.functional.linear(SEQUENCES, model.in_proj_weight[64:])
    assert rms(values) == pytest.approx(1.0, abs=1e-5)
    assert rms(model(SEQUENCES, SEQUENCES, SEQUENCES)[0]) == pytest.approx(1.0, abs=1e-5)
    assert [row.note for row in result] == ["the values' rows", ""]


def test_attention_with_projections_of_its_own():
    model = nn.MultiheadAttention(32, 4, kdim=16, vdim=8, batch_first=True)
    q, k, v = SEQUENCES, torch.randn(4, 6, 16), torch.randn(4, 6, 8)
    keys = model.k_proj_weight.clone()
    calibrate_(model, (q, k, v))
    assert rms(nn.functional.linear(v, model.v_proj_weight)) == pytest.approx(1.0, abs=1e-5)
    assert rms(model(q, k, v)[0]) == pytest.approx(1.0, abs=1e-5)
    assert torch.equal(model.k_proj_weight, keys)


def test_a_packed_linear_layer_has_its_values_set_alone():
    model = gpt2()
    found = start(model, TOKENS)
    name = "transformer.h.0.attn.c_attn.weight"
    before = model.get_parameter(name).detach().clone()
    with torch.no_grad():
        model.get_parameter(name)[:, 64:] *= 5
    calibrate_(model, TOKENS, plan=found)
    after = model.get_parameter(name).detach()
    assert torch.equal(after[:, :64], before[:, :64])
    assert rms(after[:, 64:]) == pytest.approx(rms(before[:, 64:]), rel=0.05)


def test_what_is_not_calibrated_is_listed_with_the_reason():
    left = dict(calibrate_(Reader(), TOKENS).left)
    assert "embedding" in left["embedding.weight"]
    assert "recurrent" in left["lstm.weight_hh_l0"]
    model = llama()
    left = dict(calibrate_(model, TOKENS, plan=start(model, TOKENS)).left)
    assert "query or key" in left["model.layers.0.self_attn.q_proj.weight"]
    model = mlp(3, nn.ReLU)
    model[0].weight.requires_grad_(False)
    left = dict(calibrate_(model, torch.randn(4, 64)).left)
    assert left == {"0.weight": "it is frozen (requires_grad=False)"}


def test_shared_modules_are_reported():
    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.idle = nn.Linear(16, 16), nn.Linear(2, 2)

        def forward(self, x):
            for _ in range(3):
                x = torch.tanh(self.layer(x))
            return x

    model, x = Loop(), torch.randn(32, 16)
    result = calibrate_(model, x)
    assert dict(result.shared) == {"layer.weight": 3}
    assert rms(model.layer(x)) == pytest.approx(1.0, abs=1e-5)  # the first call decided
    assert dict(result.left)["idle.weight"] == "no operation used it"
    assert "in 3 places" in repr(result)


def test_a_tied_weight_is_not_scaled_in_its_second_place():
    model = gpt2()
    found = start(model, TOKENS)
    before = model.lm_head.weight.detach().clone()
    left = dict(calibrate_(model, TOKENS, plan=found).left)
    assert torch.equal(model.lm_head.weight, before)
    assert "earlier place" in left["transformer.wte.weight"]


def test_nothing_to_scale():
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    nn.init.zeros_(model[0].weight)
    nn.init.zeros_(model[0].bias)
    notes = [row.note for row in calibrate_(model, torch.randn(8, 4))]
    assert notes[0] == "its output is zero: there is nothing to scale"
    broken = calibrate_(nn.Linear(4, 4, bias=False), torch.full((2, 4), math.inf))
    assert [row.note for row in broken] == ["its output is not finite"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_types(dtype):
    model, x = mlp(5, nn.GELU).to(dtype), torch.randn(64, 64, dtype=dtype)
    calibrate_(model, x)
    for row in verify(model, x):
        assert row.forward == pytest.approx(1.0, abs=1e-5 if dtype == torch.float64 else 1e-2)
    before = [each.detach().clone() for each in model.parameters()]
    assert calibrate_(model, x).largest_change <= 1e-6
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@pytest.mark.parametrize("sizes", [(1, 1), (2, 1, 2), (4, 4, 2)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rounding_does_not_make_a_second_run_change_what_the_first_one_set(dtype, sizes):
    # Few weights: the rounding of one shows in the output, and with a bias by more than its digits.
    for seed in range(30):
        torch.manual_seed(seed)
        layers = [nn.Linear(*each) for each in pairwise(sizes)]
        model, x = nn.Sequential(*layers).to(dtype), torch.randn(4, sizes[0]).to(dtype)
        first = calibrate_(model, x)
        before = [each.detach().clone() for each in model.parameters()]
        second = calibrate_(model, x)
        assert second.largest_change == 0
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        assert [row.before for row in second] == [row.after for row in first]


def test_a_product_that_is_written_into_a_given_tensor():
    class Hand(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.v = (nn.Parameter(torch.randn(2, 2).half()) for _ in range(2))

        @torch.no_grad()
        def forward(self, x):
            given = torch.empty_like(x)
            return torch.mm(torch.mm(x, self.w, out=given), self.v)

    for seed in range(30):
        torch.manual_seed(seed)
        model, x = Hand(), torch.randn(4, 2).half()
        scales = [row.after for row in calibrate_(model, x)]
        assert scales == pytest.approx([rms(x @ model.w), rms(model(x))], rel=1e-9)
        assert scales == pytest.approx([1.0, 1.0], abs=2e-3)
        again = calibrate_(model, x)
        assert again.largest_change == 0
        assert [row.before for row in again] == scales


def test_few_digits_and_a_gradient_inside_the_forward():
    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 1)

        def forward(self, x):
            x = x.detach().requires_grad_()
            with torch.enable_grad():
                out = self.second(torch.tanh(self.first(x)))
                return torch.autograd.grad(out.sum(), x)[0]

    for seed in range(30):
        torch.manual_seed(seed)
        model, x = Slope().half(), torch.randn(4, 2).half()
        first = calibrate_(model, x)
        assert len(first) == 2
        assert calibrate_(model, x).largest_change == 0


def test_functional_weights():
    class Hand(nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.v = nn.Parameter(torch.randn(8, 6)), nn.Parameter(torch.randn(6, 4))

        def forward(self, x):
            return torch.relu(x @ self.w) @ self.v

    model, x = Hand(), torch.randn(32, 8)
    calibrate_(model, x)
    assert rms(x @ model.w) == pytest.approx(1.0, abs=1e-5)
    assert rms(model(x)) == pytest.approx(1.0, abs=1e-5)


def test_refusals():
    with pytest.raises(InitError, match="to_empty"):
        calibrate_(nn.Linear(3, 3, device="meta"), torch.randn(2, 3, device="meta"))
    for target in (0, -1, math.nan, math.inf):
        with pytest.raises(OptionError, match="`target` must be a number above 0, a root"):
            calibrate_(nn.Linear(3, 3), torch.randn(2, 3), target)


def test_a_forward_that_fails_leaves_no_hook():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            self.layer(x)
            raise RuntimeError("no")

    model = Broken()
    with pytest.raises(RuntimeError, match="no"):
        calibrate_(model, torch.randn(2, 3))
    assert len(nethook.audit(model)) == 0


def test_looks():
    result = calibrate_(mlp(3, nn.ReLU), torch.randn(8, 64))
    assert repr(result).startswith("3 weights of Sequential calibrated in 1 forward")
    assert "<table>" in result._repr_html_()
    data = result.to_dict()
    assert data["rows"][0]["parameter"] == "0.weight"
    assert data["forwards"] == 1
