"""Losses of watched runs as users count them: against what the same loop counts by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.exporting.tables import tables
from nethook.figures.panels import loss_panel
from nethook.figures.reading import Reading
from nethook.page.folder import Entry
from nethook.page.sections.about import facts_of
from nethook.page.summaries import summary_of
from nethook.running.verdict import course, verdict_lines
from nethook.runs import names
from nethook.runs.reading.losses.shown import shown_losses
from nethook.text.numbers import number
from nethook.text.paragraphs import Style
from tests.watching.patient import patient  # noqa: F401 - used by every test

PLAIN = Style()
SAMPLES, BATCH = 43, 8  # the last batch has three
X = torch.randn(SAMPLES, 4, generator=torch.Generator().manual_seed(0))
CLASSES = torch.randint(0, 5, (SAMPLES,), generator=torch.Generator().manual_seed(1))
VALUES = torch.randn(SAMPLES, 5, generator=torch.Generator().manual_seed(2))
SOME = torch.where(torch.arange(SAMPLES) % 3 == 0, -100, CLASSES)
BATCHES = [slice(at, at + BATCH) for at in range(0, SAMPLES, BATCH)]


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 5))


@dataclass
class Counted:
    """A run, and what its loop has counted by itself."""

    run: Any
    train: list[float] = field(default_factory=list)
    evaluations: list[float] = field(default_factory=list)


def trained(path: Path, loss: Any, target: torch.Tensor, epochs: int = 3, **watch: Any) -> Counted:
    """Trains and evaluates; losses are counted over samples, as torch's own of all at once is."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    counted = Counted(None)
    with nethook.watch(model, optimizer, to=path, **watch):
        for _ in range(epochs):
            for batch in BATCHES:
                value = loss(model(X[batch]), target[batch])
                counted.train.append(value.item())
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
            with torch.no_grad():
                for batch in BATCHES:
                    loss(model(X[batch]), target[batch])
            # Not seen by the watch, whose pass goes on until the next training call: it is the
            # loss of all samples at once that is the oracle.
            weights = {name: value.detach() for name, value in model.named_parameters()}
            with torch.enable_grad():
                out = torch.func.functional_call(network(), weights, (X,))
                counted.evaluations.append(loss(out, target).item())
    counted.run = nethook.open_run(path)
    failed = [event.message for event in counted.run.events if event.kind == names.FAILED]
    assert failed == []
    return counted


LOSSES = [
    (F.cross_entropy, CLASSES),
    (F.cross_entropy, SOME),
    (lambda out, y: F.cross_entropy(out, y, torch.arange(1.0, 6.0)), SOME),
    (lambda out, y: F.cross_entropy(out, y, label_smoothing=0.1), SOME),
    (lambda out, y: F.cross_entropy(out, y.softmax(1)), VALUES),
    (lambda out, y: F.nll_loss(out.log_softmax(1), y), SOME),
    (F.mse_loss, VALUES),
    (F.smooth_l1_loss, VALUES),
    (lambda out, y: F.binary_cross_entropy_with_logits(out, y.sigmoid()), VALUES),
    (lambda out, y: F.kl_div(out.log_softmax(1), y.softmax(1), reduction="batchmean"), VALUES),
]


@pytest.mark.parametrize(("loss", "target"), LOSSES)
def test_an_evaluation_is_what_torch_says_of_all_samples_at_once(loss, target, tmp_path):
    counted = trained(tmp_path / "run.db", loss, target, budget=None)
    curve = counted.run.loss(phase="eval")
    np.testing.assert_allclose(curve.shown, counted.evaluations, rtol=1e-5)
    assert curve.batches.tolist() == [len(BATCHES)] * 3
    assert curve.shown_as == "mean over samples"
    train = counted.run.loss()
    np.testing.assert_allclose(train.shown, counted.train, rtol=1e-6)


def test_a_sum_is_shown_as_the_mean_over_samples(tmp_path):
    def loss(out, y):
        return F.cross_entropy(out, y, reduction="sum")

    counted = trained(tmp_path / "run.db", loss, CLASSES, budget=None)
    curve = counted.run.loss(phase="eval")
    np.testing.assert_allclose(curve.shown, np.array(counted.evaluations) / SAMPLES, rtol=1e-5)
    train, sizes = counted.run.loss(), [8, 8, 8, 8, 8, 3] * 3
    np.testing.assert_allclose(train.value, counted.train, rtol=1e-6)
    np.testing.assert_allclose(train.shown, np.array(counted.train) / sizes, rtol=1e-6)


@pytest.mark.parametrize("budget", [None, 0.03])
def test_every_step_says_its_samples_also_where_nothing_is_due(budget, tmp_path):
    counted = trained(tmp_path / "run.db", F.cross_entropy, SOME, epochs=60, budget=budget)
    curve = counted.run.loss()
    count = [int((SOME[batch] >= 0).sum()) for batch in BATCHES] * 60
    assert curve.samples.tolist() == count
    np.testing.assert_allclose(curve.value, counted.train, rtol=1e-6)
    epoch = curve.between(6, 11)  # what a loop prints after its second epoch
    own = np.average(counted.train[6:12], weights=count[6:12])
    assert epoch.mean == pytest.approx(own, rel=1e-6)
    assert epoch.batch_mean == pytest.approx(np.mean(counted.train[6:12]), rel=1e-6)


# -- micro-batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("divides", [True, False])
@pytest.mark.parametrize("budget", [None, 0.03])
def test_micro_batches(divides, budget, tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    steps: list[list[float]] = []
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=budget):
        for _ in range(80):
            steps.append([])
            for at in range(4):
                batch = slice(8 * at, 8 * at + 8)
                loss = F.cross_entropy(model(X[batch]), CLASSES[batch])
                loss = loss / 4 if divides else loss
                loss.backward()
                steps[-1].append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
    curve = nethook.open_run(tmp_path / "run.db").loss()
    by_step = np.array(steps)
    expected = by_step.sum(1) if divides else by_step.mean(1)
    np.testing.assert_allclose(curve.value, expected, rtol=1e-6)
    np.testing.assert_allclose(curve.shown, expected, rtol=1e-6)
    assert curve.divided.tolist() == [4.0 if divides else 0.0] * 80
    assert curve.samples.tolist() == [32.0] * 80
    assert curve.batches.tolist() == [4.0] * 80


def test_a_loss_divided_by_the_items_of_the_whole_step(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    logged = []
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        for first in (0, 1, 2, 3):
            micro = [batch for batch in BATCHES if batch.start // 8 % 4 >= first][:4]
            items = sum((SOME[batch] >= 0).sum() for batch in micro)
            total = 0.0
            for batch in micro:
                loss = F.cross_entropy(model(X[batch]), SOME[batch], reduction="sum") / items
                loss.backward()
                total += loss.item()
            optimizer.step()
            optimizer.zero_grad()
            logged.append(total)
    curve = nethook.open_run(tmp_path / "run.db").loss()
    np.testing.assert_allclose(curve.shown, logged, rtol=1e-6)


# -- a compiled model ------------------------------------------------------------------------------


def test_a_compiled_model_has_one_loss_however_often_it_is_compiled(tmp_path):
    model = torch.compile(network(), backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        for _ in range(4):
            for batch in BATCHES:  # the last is shorter: compiled anew
                loss = F.cross_entropy(model(X[batch]), CLASSES[batch])
                losses.append(loss.item())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    run = nethook.open_run(tmp_path / "run.db")
    assert len(run.loss_curves()) == 1
    np.testing.assert_allclose(run.loss().value, losses, rtol=1e-6)


def test_where_no_node_knows_the_samples_they_are_those_of_the_batch(tmp_path):
    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, out):
            ctx.save_for_backward(out)
            return out.square().mean()

        @staticmethod
        def backward(ctx, grad):
            (out,) = ctx.saved_tensors
            return grad * 2 * out / out.numel()

    counted = trained(tmp_path / "run.db", lambda out, _: Loss.apply(out), VALUES, epochs=1)
    assert counted.run.loss().samples.tolist() == [8.0] * 5 + [3.0]


# -- one number ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted(tmp_path_factory) -> Counted:
    path = tmp_path_factory.mktemp("one") / "run.db"
    return trained(path, lambda out, y: F.mse_loss(out, y, reduction="sum"), VALUES)


def test_terminal_page_report_and_export_say_the_same(counted):
    run = counted.run
    train, evaluated = shown_losses(run)
    assert train.last == pytest.approx(counted.train[-1] / 3, rel=1e-6)
    assert evaluated.last == pytest.approx(counted.evaluations[-1] / SAMPLES, rel=1e-5)
    for loss in (train, evaluated):
        ends = f"{loss.first:.4g} → {loss.last:.4g}"
        line = f"{loss.label} {ends}  ({loss.name}, mean over samples)"
        assert line in verdict_lines(run, PLAIN)
        assert f"{loss.label} {ends} (mean over samples)" in repr(run)
        facts = dict(facts_of(Reading(run)))
        page = f"{number(loss.first, 4)} → {number(loss.last, 4)}"
        assert facts[loss.label] == f"{page} (mean over samples)"
    assert f"loss {train.last:.4g}" in course(run)
    assert summary_of(Entry("run", run.path, "run.db")).loss == (
        f"{number(train.first, 4)} → {number(train.last, 4)}"
    )
    lines = {line.name: line for line in loss_panel(Reading(run)).lines}
    assert lines["training"].value[-1] == train.last
    assert lines["evaluation"].value[-1] == evaluated.last
    exported = {piece["phase"][0]: piece for piece in tables(run)["loss_curves"]}
    assert exported["train"]["shown"][-1] == train.last
    assert exported["eval"]["shown"][-1] == evaluated.last
    assert exported["train"]["counted"][0] == "mean over samples"


def test_what_the_program_logs_stands_first(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db") as watch:
        for batch in BATCHES:
            F.cross_entropy(model(X[batch]), CLASSES[batch]).backward()
            optimizer.step()
            optimizer.zero_grad()
        watch.log(train_loss=1.25, val_accuracy=0.5)
    run = nethook.open_run(tmp_path / "run.db")
    lines = [line for line in verdict_lines(run, PLAIN) if line.startswith("loss ")]
    assert lines[0] == "loss 1.25  (train_loss, logged by the program)"
    assert lines[1].endswith(", mean over samples)")
    assert dict(facts_of(Reading(run)))["loss"] == "1.25 (logged by the program)"
