"""Training a copy on a few samples."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from nethook.doctor.finding import Finding
from nethook.examining.checkup import trial
from nethook.examining.checkup.batch import as_batch
from nethook.examining.checkup.copies import set_apart
from nethook.examining.checkup.trial import Trial, first_steps, joined, trials
from nethook.watching.watch import watch

LOSS = nn.CrossEntropyLoss()


def batch(samples: int = 32) -> trial.Batch:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 6, generator=generator)
    return as_batch((x, torch.randint(0, 3, (samples,), generator=generator)), LOSS)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))


@contextmanager
def record(
    net: nn.Module, optimizer: torch.optim.Optimizer, path: Path, *, examine: bool
) -> Iterator[None]:
    begun = watch(net, optimizer, path, budget=None, batches=1, examine=examine)
    begun.be_silent()
    with begun:
        yield


@pytest.mark.parametrize(
    ("losses", "learns"),
    [
        ((2.0,) * 10, False),
        ((2.0,) * 5 + (1.41,) * 5, False),
        ((2.0,) * 5 + (1.39,) * 5, True),  # by three tenths
        ((2.0,) * 7 + (0.1, 0.1, 0.1), True),  # the median of the last five
        ((2.0,) * 8 + (0.1, 0.1), False),
        ((2.0, float("nan"), float("nan"), float("nan")), False),
    ],
)
def test_what_counts_as_learning(losses: tuple[float, ...], learns: bool) -> None:
    made = Trial("Adam", losses)
    assert made.learns is learns
    assert made.start == 2.0


def test_steps_that_change_nothing() -> None:
    with set_apart(model(), batch(), LOSS, None) as copies:
        before = copies.model[0].weight.clone()
        first = first_steps(copies, batch(), record)
        given = batch()
        expected = LOSS(given.inputs.call(copies.model), given.targets)
        assert torch.equal(copies.model[0].weight, before)
    assert first.loss == pytest.approx(float(expected.detach()))
    assert first.first_loss is not None
    assert first.first_loss[1] == pytest.approx(float(torch.log(torch.tensor(3.0))))
    assert not first.findings


def test_a_loop_by_hand_has_the_same_losses() -> None:
    optimizer = torch.optim.SGD((net := model()).parameters(), lr=0.1)
    with set_apart(net, batch(), LOSS, optimizer) as copies:
        (made, *_), _ = trials(copies, batch(), 12, record)
    assert made.optimizer == "SGD(lr=0.1)"
    x, y = batch().given.args[0][: trial.SAMPLES], batch().targets[: trial.SAMPLES]
    for loss in made.losses:
        value = LOSS(net(x), y)
        assert loss == pytest.approx(float(value.detach()), rel=1e-5)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()


def test_other_rates_are_tried_until_one_learns() -> None:
    still = torch.optim.SGD((net := model()).parameters(), lr=1e-9)
    with set_apart(net, batch(), LOSS, still) as copies:
        made, _ = trials(copies, batch(), 40, record)
    assert [each.optimizer for each in made[:2]] == ["SGD(lr=1e-09)", "Adam(lr=0.003)"]
    assert made[-1].learns
    with set_apart(model(), batch(), LOSS, None) as copies:
        made, _ = trials(copies, batch(), 40, record)
    assert made[0].optimizer == "Adam(lr=0.003)"


def finding(code: str, message: str = "", **more: object) -> Finding:
    return Finding(code, "error", message, "", **more)  # type: ignore[arg-type]


def test_findings_of_several_sources_are_joined_by_code() -> None:
    (kept,) = joined([finding("dead-units", "first")], [finding("dead-units", "second")])
    assert kept.message == "second"


def test_symptoms_stand_under_what_causes_them() -> None:
    below = finding("class-collapse", consequences=(finding("dead-units"),))
    cause, other = joined([below], [finding("symmetric-init"), finding("loss-broadcast")])
    assert (cause.code, other.code) == ("loss-broadcast", "symmetric-init")
    (symptom,) = cause.consequences
    assert symptom.code == "dead-units"  # which explains the other
    assert [each.code for each in symptom.consequences] == ["class-collapse"]
    assert joined([]) == []
