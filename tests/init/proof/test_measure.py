"""Verification: scales against plain torch, verdicts, tables, nothing left behind."""

from __future__ import annotations

import json
import math

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InputsError, NoSuchSiteError, OptionError
from nethook.init import apply_, calibrate_, plan, verify
from nethook.init.proof.measure import mean_cosine
from tests.init.networks import Functional, Reader, ResNet, gpt2, mlp, rms, transformer


def by_hand(model, x, loss):
    """Outputs of the linear layers, and their gradients, with tensors that keep them."""
    kept = []
    for layer in model:
        x = layer(x)
        if isinstance(layer, nn.Linear):
            x.retain_grad()
            kept.append(x)
    loss(x).backward()
    return kept


def test_scales_are_those_of_plain_torch():
    torch.manual_seed(0)
    model, x = mlp(5, nn.Tanh), torch.randn(32, 64)

    def loss(out):
        return out.square().mean()

    report = verify(model, x, loss)
    kept = by_hand(model, x, loss)
    assert [row.address for row in report] == [f"{at}/linear#0" for at in (0, 2, 4, 6, 8)]
    for row, value in zip(report, kept, strict=True):
        assert row.forward == pytest.approx(rms(value), rel=1e-6)
        assert row.backward == pytest.approx(rms(value.grad), rel=1e-5)
    ratios = [row.ratio for row in report]
    assert math.isnan(ratios[0])
    assert ratios[1] == pytest.approx(rms(kept[1]) / rms(kept[0]), rel=1e-6)
    assert report.gradient_ratio == pytest.approx(rms(kept[0].grad) / rms(kept[-1].grad), rel=1e-5)


def test_gradients_are_right_where_an_operation_in_place_follows():
    torch.manual_seed(0)
    first, second = nn.Linear(8, 8), nn.Linear(8, 3)
    x = torch.randn(16, 8)
    inplace = verify(nn.Sequential(first, nn.ReLU(inplace=True), second), x)
    plain = verify(nn.Sequential(first, nn.ReLU(), second), x)
    assert [row.backward for row in inplace] == pytest.approx([row.backward for row in plain])
    assert [row.forward for row in inplace] == pytest.approx([row.forward for row in plain])


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (lambda: ResNet(2, norm=True), torch.randn(4, 3, 8, 8)),
        (transformer, torch.randn(4, 5, 32)),
        (Reader, torch.randint(1, 50, (4, 7))),
    ],
    ids=["batchnorm", "transformer", "lstm"],
)
def test_nothing_is_left_behind(make, x):
    model = make()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    report = verify(model, x)
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    assert all(each.grad is None for each in model.parameters())
    assert not x.requires_grad
    assert len(nethook.audit(model)) == 0
    assert all(math.isfinite(row.backward) for row in report)
    assert repr(verify(model, x).to_dict()) == repr(report.to_dict())  # NaN is not itself


def test_cosines_are_means_over_pairs():
    torch.manual_seed(0)
    signal = torch.randn(10, 4, 3) + 0.5
    rows = nn.functional.normalize(signal.flatten(1), dim=1)
    pairs = [float(rows[i] @ rows[j]) for i in range(10) for j in range(i)]
    assert mean_cosine(signal, 10) == pytest.approx(sum(pairs) / len(pairs), rel=1e-5)
    turned = signal.movedim(0, 1)  # sequence first
    assert mean_cosine(turned, 10) == pytest.approx(mean_cosine(signal, 10), rel=1e-5)
    assert mean_cosine(signal.flatten(0, 1), 10) == pytest.approx(mean_cosine(signal, 10))
    assert math.isnan(mean_cosine(signal, 7))
    assert math.isnan(mean_cosine(signal, 1))


def test_inputs_that_become_alike_are_seen():
    torch.manual_seed(0)
    model, x = mlp(30, nn.SiLU), torch.randn(32, 64)
    report = verify(model, x)  # as torch starts it
    assert report.input_cosine < 0.1
    assert report.rows[-1].cosine > 0.99
    assert not report.ok()
    assert repr(report).startswith("scales of Sequential: 30 layers, 3 small, 26 alike\n")
    found = plan(model, x)
    apply_(model, found, 0)
    calibrate_(model, x, plan=found)
    started = verify(model, x)
    assert started.ok(0.99, 1.01)
    assert max(row.cosine for row in started) < 0.1
    assert started.ok(0.99, 1.01, backward=(0.05, 1.01))


def test_what_torch_starts_with_is_small_and_nothing_worse():
    torch.manual_seed(0)
    found = verify(
        nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 10)), torch.randn(64, 8)
    )
    assert repr(found).startswith("scales of Sequential: 2 layers, 1 small\n")
    assert [row.verdict() for row in found] == ["ok", "small"]
    assert not found.ok()  # a plan, or calibration, makes it so


def test_every_verdict():
    from nethook.init.proof.report import LayerScale

    def said(forward, **more):
        return LayerScale(
            "a", "a.weight", forward, 1.0, 1.0, more.pop("cosine", 0.0), **more
        ).verdict()

    assert said(1.0) == "ok"
    assert said(0.01) == "vanishing"
    assert said(0.1) == "small"
    assert said(10.0) == "large"
    assert said(100.0) == "exploding"
    assert said(math.inf) == "not finite"
    assert said(math.nan) == "not finite"
    assert said(10.0, cancelled_by="norm") == "cancelled"
    assert said(1.0, cosine=0.999) == "alike"
    assert said(0.1, expected=0.1) == "ok"
    assert said(0.0, expected=0.1, ends_branch=True) == "zero"
    assert said(0.2, expected=math.nan) == "ok"


def test_branches_are_measured_against_their_share():
    torch.manual_seed(0)
    model, x = Functional(), torch.randn(64, 32)
    found = plan(model, x)
    apply_(model, found, 0)
    calibrate_(model, x, plan=found)
    report = verify(model, x)
    assert report["second"].expected == pytest.approx(found["second.weight"].target, rel=1e-3)
    assert report.ok(0.9, 1.1)
    zero = plan(model, x, zero=True)
    apply_(model, zero, 0)
    assert verify(model, x)["second"].verdict() == "zero"
    assert verify(model, x).ok()


def test_losses():
    model, x = mlp(2, nn.ReLU), torch.randn(4, 64)
    with pytest.raises(InputsError, match=r"`loss` must give one number; got shape \(4, 10\)"):
        verify(model, x, lambda out: out)
    with pytest.raises(InputsError, match="must depend on"):
        verify(model, x, lambda out: torch.tensor(1.0))
    with pytest.raises(InputsError, match="`loss` must give a tensor; got float"):
        verify(model, x, lambda out: 1.0)


def test_the_loss_of_a_model_output_is_used():
    model = gpt2()
    tokens = torch.randint(0, 20, (3, 8))
    own = verify(model, {"input_ids": tokens, "labels": tokens})
    given = verify(model, {"input_ids": tokens, "labels": tokens}, lambda out: out.loss)
    assert [row.backward for row in own] == [row.backward for row in given]
    assert own["transformer.wte"].role == "embedding"


def test_without_gradient():
    model = mlp(2, nn.ReLU).requires_grad_(False)
    with torch.no_grad():
        report = verify(model, torch.randn(4, 64))
    assert all(math.isfinite(row.backward) for row in report)  # through the input
    with torch.inference_mode():
        assert verify(model, torch.randn(4, 64)).rows
    tokens = verify(nn.Embedding(5, 4).requires_grad_(False), torch.tensor([1, 2]))
    assert math.isnan(tokens.rows[0].backward)


def test_looks_and_plain_data():
    report = verify(mlp(3, nn.ReLU), torch.randn(8, 64))
    assert repr(report).startswith("scales of Sequential: 3 layers")
    assert "<table>" in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["rows"][0]["address"] == "0/linear#0"
    assert report["0"] is report["0.weight"] is report["0/linear#0"]
    with pytest.raises(NoSuchSiteError, match="no layer 'nine'"):
        report["nine"]
    with pytest.raises(OptionError, match="`low` must be at least 0 and at most `high`"):
        report.ok(2.0, 1.0)


def test_a_figure_of_the_report():
    figure = verify(mlp(3, nn.ReLU), torch.randn(8, 64)).figure()
    assert [trace.name for trace in figure.data] == [
        "forward", "backward", "expected", "cosine of two inputs",
    ]  # fmt: skip
    assert len(figure.data[0].y) == 3
