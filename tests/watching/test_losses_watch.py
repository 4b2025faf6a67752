"""Loss records of watched runs: what decides each finding about losses is in the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import cross_entropy as imported_by_name

import nethook
from nethook.runs import names
from nethook.watching.watch import watch
from tests.watching.patient import patient  # noqa: F401 - used by every test

STEPS = 6
X = torch.randn(STEPS, 16, 4, generator=torch.Generator().manual_seed(0))
CLASSES = torch.randint(0, 5, (STEPS, 16), generator=torch.Generator().manual_seed(1))
VALUES = torch.randn(STEPS, 16, 1, generator=torch.Generator().manual_seed(2))


def network(*after: nn.Module, out: int = 5) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, out), *after)


def follow(
    model: nn.Module, loss: Callable[[Any, int], torch.Tensor], path: Path, **options: Any
) -> Any:
    """Trains a model for some steps under a watch and opens the run."""
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, optimizer, to=path, budget=None, **options):
        for step in range(STEPS):
            optimizer.zero_grad()
            loss(model(X[step]), step).backward()
            optimizer.step()
    return opened(path)


def opened(path: Path) -> Any:
    run = nethook.open_run(path)
    assert [event.message for event in run.events if event.kind == names.FAILED] == []
    return run


def only(run: Any, phase: str = "train") -> list[dict[str, Any]]:
    """The records of the run's only loss."""
    records = [record for record in run.losses if record.phase == phase]
    assert len({record.name for record in records}) == 1
    return [record.data for record in records]


# -- one finding each ------------------------------------------------------------------------------


def test_softmax_before_cross_entropy(tmp_path):
    first = only(
        follow(
            network(nn.Softmax(1)),
            lambda out, step: F.cross_entropy(out, CLASSES[step]),
            tmp_path / "run.db",
        )
    )[0]
    assert first["kind"] == "cross_entropy"
    assert first["chain"] == ["NllLoss", "LogSoftmax", "Softmax"]
    assert first["row_sums"] == pytest.approx([1, 1], abs=1e-5)
    assert 0 <= first["given"]["min"] <= first["given"]["max"] <= 1


def test_squared_error_on_class_numbers(tmp_path):
    first = only(
        follow(
            network(out=1),
            lambda out, step: F.mse_loss(out[:, 0], CLASSES[step].float()),
            tmp_path / "run.db",
        )
    )[0]
    assert first["kind"] == "mse"
    target = first["target"]
    assert (target["integral"], target["min"], target["max"]) == (True, 0, 4)
    assert target["distinct"] == len(CLASSES[0].unique())


def test_a_binary_loss_on_several_classes(tmp_path):
    first = only(
        follow(
            network(out=1),
            lambda out, step: F.binary_cross_entropy_with_logits(out[:, 0], CLASSES[step].float()),
            tmp_path / "run.db",
        )
    )[0]
    assert first["kind"] == "bce_with_logits"
    assert first["target"]["max"] == 4
    assert first["target"]["binary_share"] < 1


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_broadcast(tmp_path):
    first = only(
        follow(
            network(out=1),
            lambda out, step: F.mse_loss(out, VALUES[step][:, 0]),
            tmp_path / "run.db",
        )
    )[0]
    assert first["broadcast"] is True
    assert first["prediction"]["shape"] == [16, 1]
    assert first["target"]["shape"] == [16]
    assert first["broadcast_to"] == [16, 16]


def test_a_loss_that_is_maximised(tmp_path):
    run = follow(
        network(), lambda out, step: -F.cross_entropy(out, CLASSES[step]), tmp_path / "run.db"
    )
    first = only(run)[0]
    assert (first["negated"], first["floored"]) == (True, True)
    assert first["value"] < 0


def test_an_output_that_cannot_reach_the_targets(tmp_path):
    first = only(
        follow(
            network(nn.Sigmoid(), out=1),
            lambda out, step: F.mse_loss(out, 3 * VALUES[step]),
            tmp_path / "run.db",
        )
    )[0]
    assert first["chain"] == ["MseLoss", "Sigmoid"]
    assert 0 <= first["prediction"]["min"] <= first["prediction"]["max"] <= 1
    assert first["target"]["min"] < 0
    assert first["target"]["max"] > 1


@pytest.mark.parametrize("divide", [1, 3])
def test_accumulation_with_and_without_division(divide, tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        for step in range(STEPS):
            (F.cross_entropy(model(X[step]), CLASSES[step]) / divide).backward()
            if step % 3 == 2:
                optimizer.step()
                optimizer.zero_grad()
    run = opened(tmp_path / "run.db")
    first = only(run)[0]
    assert first["divided_by"] == (None if divide == 1 else pytest.approx(3))
    assert run.series(names.LOOP, names.BACKWARDS)["mean"].tolist() == [3, 3]


def test_one_answer_for_every_input(tmp_path):
    model = network()
    with torch.no_grad():
        model[2].bias[3] = 100.0
    first = only(
        follow(model, lambda out, step: F.cross_entropy(out, CLASSES[step]), tmp_path / "run.db")
    )[0]
    assert first["argmax_counts"] == [0, 0, 0, 16, 0]
    assert first["prediction"]["class_entropy"] == 0
    assert first["target"]["class_entropy"] > 1
    assert first["class_counts"] == torch.bincount(CLASSES[0], minlength=5).tolist()


def test_labels_that_cannot_be_learnt_keep_the_loss_at_their_entropy(tmp_path):
    model = network()
    with torch.no_grad():
        for parameter in model[2].parameters():
            parameter.zero_()
    run = follow(model, lambda out, step: F.cross_entropy(out, CLASSES[step]), tmp_path / "run.db")
    first = only(run)[0]
    assert first["value"] == pytest.approx(math.log(5))
    assert first["prediction"]["entropy"] == pytest.approx(math.log(5))
    assert first["target"]["class_entropy"] <= math.log(5)
    assert len(run.scalars[names.loss_name(run.losses[0].name)].value) == STEPS


# -- values ----------------------------------------------------------------------------------------


def test_every_step_has_its_value(tmp_path):
    losses = []

    def loss(out, step):
        losses.append(F.cross_entropy(out, CLASSES[step]))
        return losses[-1]

    run = follow(network(), loss, tmp_path / "run.db")
    name = run.losses[0].name
    assert name.startswith("test_losses_watch.py:")
    expected = [each.item() for each in losses]
    assert run.scalars[names.loss_name(name)].value.tolist() == expected
    series = run.series(names.loss_address(name), names.LOSS)
    assert series["mean"].tolist() == pytest.approx(expected)


def test_under_a_loss_scaler_values_are_unscaled(tmp_path):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    expected = []
    with watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(X[step]), CLASSES[step])
            expected.append(loss.item())
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    run = opened(tmp_path / "run.db")
    first = only(run)[0]
    assert (first["scale"], first["factor"], first["divided_by"]) == (1024.0, 1.0, None)
    values = run.scalars[names.loss_name(run.losses[0].name)].value.tolist()
    assert values == pytest.approx(expected)


def test_two_losses_of_a_pair_are_two_series(tmp_path):
    torch.manual_seed(0)
    generator, critic = nn.Linear(4, 4), nn.Linear(4, 1)
    first = torch.optim.SGD(generator.parameters(), 0.01)
    second = torch.optim.SGD(critic.parameters(), 0.01)
    models = {"G": generator, "D": critic}
    with watch(models, [first, second], to=tmp_path / "run.db", budget=None):
        for step in range(STEPS):
            second.zero_grad()
            real, fake = critic(X[step]), critic(generator(X[step]).detach())
            (F.softplus(-real).mean() + F.softplus(fake).mean()).backward()
            second.step()
            first.zero_grad()
            F.binary_cross_entropy_with_logits(
                critic(generator(X[step])), torch.ones(16, 1)
            ).backward()
            first.step()
    run = opened(tmp_path / "run.db")
    kinds = {record.name: record.data["kind"] for record in run.losses}
    assert sorted(kinds.values()) == ["bce_with_logits", "other"]
    for name in kinds:
        assert len(run.scalars[names.loss_name(name)].value) == STEPS
    assert {record.data["model"] for record in run.losses} == {"D"}


def test_a_closure_that_is_called_several_times(tmp_path):
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), 0.1, max_iter=3)
    seen = []

    with watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        for step in range(2):

            def closure(step=step):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(X[step]), CLASSES[step])
                loss.backward()
                seen.append(loss.item())
                return loss

            optimizer.step(closure)
    run = opened(tmp_path / "run.db")
    series = run.series(names.loss_address(run.losses[0].name), names.LOSS)
    assert int(series["count"].sum()) == len(seen)


# -- evaluation ------------------------------------------------------------------------------------


class WithLoss(nn.Module):
    """Returns its own loss, as models of the transformers library do."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, x, labels):
        logits = self.inner(x)
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


CALLS = {
    "attribute": lambda out, y: F.cross_entropy(out, y),
    "name": imported_by_name,
    "module": nn.CrossEntropyLoss(),
}


@pytest.mark.parametrize("how", [*CALLS, "model"])
def test_evaluation_losses_are_seen_however_they_are_called(how, tmp_path):
    model = WithLoss() if how == "model" else network()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    expected = []

    def evaluate(step):
        if how == "model":
            return model(X[step], CLASSES[step])["loss"]
        return CALLS[how](model(X[step]), CLASSES[step])

    with watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        for step in range(3):
            optimizer.zero_grad()
            evaluate(step).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                values = [evaluate(each).item() for each in range(3, STEPS)]
            expected.append(sum(values) / len(values))
            model.train()
    run = opened(tmp_path / "run.db")
    records = only(run, "eval")
    assert len(records) == 3
    assert records[0]["kind"] == "cross_entropy"
    name = next(record.name for record in run.losses if record.phase == "eval")
    series = run.series(names.loss_address(name), names.LOSS, phase="eval")
    assert series["mean"].tolist() == pytest.approx(expected, abs=1e-6)
    labels = CLASSES[3]
    assert records[0]["class_counts"] == torch.bincount(labels, minlength=5).tolist()


def test_training_falls_and_evaluation_rises(tmp_path):
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    with watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        for _ in range(40):
            optimizer.zero_grad()
            F.cross_entropy(model(X[0]), CLASSES[0]).backward()
            optimizer.step()
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(X[1]), CLASSES[1])
            model.train()
    run = opened(tmp_path / "run.db")
    by_phase = {record.phase: record.name for record in run.losses}
    train = run.scalars[names.loss_name(by_phase["train"])].value
    held_out = run.series(names.loss_address(by_phase["eval"]), names.LOSS, phase="eval")["mean"]
    assert len(train) == 40
    assert train[-1] < 0.8 * train[0]
    assert held_out[-1] > held_out[0]


def test_a_model_with_several_outputs(tmp_path):
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x):
            hidden = self.inner(x)
            return {"features": hidden.relu(), "logits": hidden * 2}

    first = only(
        follow(
            Two(),
            lambda out, step: F.cross_entropy(out["logits"], CLASSES[step]),
            tmp_path / "run.db",
        )
    )[0]
    assert (first["model"], first["path"]) == ("", '["logits"]')
    assert first["chain"] == ["NllLoss", "LogSoftmax", "Mul"]
