"""The pre-flight check reports what is wrong before training, and leaves everything as it was."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook.errors import InputsError, OptionError
from nethook.hooks.process.discovery import Discovery

CE = nn.CrossEntropyLoss()


def data(samples: int = 32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 12, generator=generator)
    return x, torch.randint(0, 4, (samples,), generator=generator)


def mlp(*more: nn.Module, width: int = 32) -> nn.Sequential:
    torch.manual_seed(0)
    layers = (nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    return nn.Sequential(*layers, nn.Linear(width, 4), *more)


def codes(found: Any) -> set[str]:
    every = [one for each in found.findings for one in (each, *each.consequences)]
    return {each.code for each in every if each.severity != "info"}


def everything(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """All that could change, in a form that can be compared."""
    tensors = [*model.state_dict().values(), *(p.grad for p in model.parameters())]
    state = [each for values in optimizer.state.values() for each in values.values()]
    return [
        *(None if each is None else each.numpy().tobytes() for each in tensors),
        *(each.numpy().tobytes() if isinstance(each, torch.Tensor) else each for each in state),
        *(each._version for each in model.parameters()),
        *(id(each.grad) for each in model.parameters()),
        *(each.training for each in model.modules()),
        *(len(each._forward_hooks) + len(each._backward_hooks) for each in model.modules()),
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        str(np.random.get_state()),
        torch.is_grad_enabled(),
    ]


class Noisy(nn.Module):
    """Batch norm, dropout, and random numbers of three kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + 1e-3 * random.random() + 1e-3 * float(np.random.rand()) * torch.rand(1)
        return self.head(self.body(x))


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_bit_for_bit_as_it_was(training: bool) -> None:
    torch.manual_seed(1)
    model = Noisy().train(training)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, y = data()
    CE(model(x), y).backward()
    optimizer.step()

    def loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        penalty = sum(p.square().sum() for p in model.parameters())  # of the model, not of a copy
        return CE(output, target) + 1e-4 * penalty

    before = everything(model, optimizer)
    with torch.no_grad():
        before[-1] = False
        nethook.checkup(model, (x, y), loss, optimizer, steps=12)
        assert everything(model, optimizer) == before


def test_a_model_that_is_well() -> None:
    found = nethook.checkup(mlp(), data(), CE)
    assert found.ok
    assert not found.findings
    assert {check.state for check in found.checks} == {"ok"}
    assert len(found.checks) == 11
    assert found["first loss"].text.endswith("where 1.39 is usual")
    assert found["learns 16 samples"].text.startswith("loss 1.")
    assert len(found.scales.rows) == 3


def test_what_it_shows() -> None:
    found = nethook.checkup(mlp(nn.Softmax(1)), data(), CE, steps=12)
    text, html, plain = repr(found), found._repr_html_(), found.to_dict()
    assert text.startswith("pre-flight check of Sequential: 1 finding\n")
    assert "✗  output, loss and target  softmax-before-cross-entropy" in text
    assert "(test_checkup.py:" in text  # the line of the user's code
    assert "<table>" in html
    assert plain["ok"] is False
    assert plain["findings"][0]["code"] == "softmax-before-cross-entropy"
    assert [each["name"] for each in plain["checks"]] == [each.name for each in found.checks]
    with pytest.raises(KeyError, match="no check 'speed'; there are signal over depth"):
        found["speed"]


def _scaled(model: nn.Module, factor: float) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    return model


def _constant(model: nn.Module) -> nn.Module:
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.1)
    return model


def _dead(model: nn.Sequential) -> nn.Module:
    nn.init.constant_(model[2].bias, -50.0)
    return model


def _sigmoids() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Linear(12, 16), nn.Sigmoid()]
    for _ in range(10):
        layers += [nn.Linear(16, 16), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Linear(16, 4))


class Cut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(12, 16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x)).detach())


class Drops(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(12, 64)
        self.out = nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(nn.functional.dropout(torch.relu(self.fc(x)), 0.5))


FAULTS = {
    "bad-init-scale": (lambda: _scaled(mlp(), 12.0), "signal over depth"),
    "symmetric-init": (lambda: _constant(mlp()), "units at the start"),
    "dead-units": (lambda: _dead(mlp()), "dead units"),
    "vanishing-gradient": (_sigmoids, "gradient over depth"),
    "no-gradient": (Cut, "parameters"),
    "train-mode-evaluation": (Drops, "training and evaluation"),
    "missing-activation": (lambda: nn.Sequential(nn.Linear(12, 8), nn.Linear(8, 4)), None),
}


@pytest.mark.parametrize("code", FAULTS)
def test_what_is_wrong_with_a_model(code: str) -> None:
    make, check = FAULTS[code]
    torch.manual_seed(0)
    found = nethook.checkup(make(), data(), CE, steps=20)
    named = {one.code for each in found.findings for one in (each, *each.consequences)}
    assert code in named
    if check is not None:
        assert found[check].state == "bad"
        assert not found.ok


def test_a_first_loss_that_is_too_high() -> None:
    model = mlp()
    with torch.no_grad():
        model[4].weight.mul_(100)
    found = nethook.checkup(model, data(), CE, steps=12)
    assert found["first loss"].state == "bad"
    assert "bad-init-scale" in codes(found)


def test_inputs_that_are_constant_or_raw() -> None:
    x, y = data()
    constant = nethook.checkup(mlp(), (torch.ones_like(x), y), CE, steps=20)
    assert constant["inputs"].state == "bad"
    assert "input-collapsed" in codes(constant)
    raw = nethook.checkup(mlp(), (200 * x + 500, y), CE, steps=20)
    assert raw["inputs"].state in ("bad", "note")
    tokens = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), nn.Linear(24, 4))
    words = torch.randint(0, 50, (32, 3))
    assert nethook.checkup(tokens, (words, y), CE).ok


def test_targets_that_do_not_fit() -> None:
    x, y = data()
    torch.manual_seed(0)
    one = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
    with pytest.warns(UserWarning, match="target size"):
        broadcast = nethook.checkup(one, (x, x[:, 0]), nn.MSELoss(), steps=12)
    assert "loss-broadcast" in codes(broadcast)
    mismatch = nethook.checkup(
        nn.Sequential(one, nn.Flatten(0)), (x, y.float()), nn.MSELoss(), steps=12
    )
    assert "loss-target-mismatch" in codes(mismatch)
    range_ = nethook.checkup(
        nn.Sequential(one, nn.Sigmoid()), (x, 5 + x[:, :1]), nn.MSELoss(), steps=12
    )
    assert "output-range" in codes(range_)


def test_what_the_optimizer_does() -> None:
    model = mlp()
    half = torch.optim.Adam(model[0].parameters(), lr=1e-2)
    assert "optimizer-misses-parameters" in codes(nethook.checkup(model, data(), CE, half))
    good = torch.optim.Adam(model.parameters(), lr=1e-2)
    assert nethook.checkup(model, data(), CE, good).ok
    slow = torch.optim.SGD(model.parameters(), lr=1e-9)
    found = nethook.checkup(model, data(), CE, slow, steps=20)
    assert codes(found) & {"learning-rate-too-low", "not-learning"}
    assert "SGD(lr=1e-09)" in found["learns 16 samples"].text
    assert "Adam(lr=0.003)" in found["learns 16 samples"].text


def test_a_network_that_cannot_learn() -> None:
    class Blind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.bias.expand(len(x), 4) * 1.0

    found = nethook.checkup(Blind(), data(), CE, steps=20)
    assert not found.ok
    assert codes(found) & {"input-ignored", "not-learning"}
    assert found["learns 16 samples"].state == "bad"


def test_a_model_with_a_loss_of_its_own_and_inputs_by_name() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = mlp()

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> SimpleNamespace:
            logits = self.body(x)
            return SimpleNamespace(logits=logits, loss=nn.functional.cross_entropy(logits, labels))

    x, y = data()
    assert nethook.checkup(Own(), {"x": x, "labels": y}).ok
    assert nethook.checkup(Own(), nethook.inputs(x, labels=y)).ok


def test_what_draws_numbers_in_evaluation_and_is_no_dropout() -> None:
    class Sampled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = mlp()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x + 0.01 * torch.randn_like(x))

    found = nethook.checkup(Sampled(), data(), CE)
    assert found.ok
    assert found["training and evaluation"].state == "note"
    assert "randn_like" in found["training and evaluation"].text


def test_a_wrapped_model_is_checked_up_from_inside() -> None:
    found = nethook.checkup(nn.DataParallel(mlp()), data(), CE, steps=12)
    assert found.model == "Sequential"


REFUSED = {
    "`batch` must be (inputs, targets); got a Tensor": (mlp, data()[0], CE),
    "`batch` must be (inputs, targets); got a tuple of 3": (mlp, (1, 2, 3), CE),
    "`loss_fn` must be a function of output and targets; got a str": (mlp, data(), "mse"),
    "`loss_fn` must give a tensor with one number; got shape (32,)": (
        mlp, data(), nn.CrossEntropyLoss(reduction="none"),
    ),
    "`loss_fn` must give a loss with a gradient": (mlp, data(), lambda out, y: CE(out.detach(), y)),
    "must have a `.loss`; got a Tensor": (mlp, data()[0], None),
    "'0.weight' is on the meta device": (lambda: mlp().to("meta"), data(), CE),
    "'weight' has no shape yet": (lambda: nn.LazyLinear(4), data(), CE),
    "`model` must have a parameter that requires a gradient": (
        lambda: mlp().requires_grad_(False), data(), CE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_what_cannot_be_checked_up_is_said_in_words(words: str) -> None:
    make, batch, loss = REFUSED[words]
    with pytest.raises(InputsError) as error:
        nethook.checkup(make(), batch, loss)
    assert words in str(error.value)


def test_a_model_that_cannot_be_copied() -> None:
    model = mlp()
    model.lock = (each for each in ())  # a generator
    with pytest.raises(InputsError, match=r"`model` must be one that copy\.deepcopy can copy"):
        nethook.checkup(model, data(), CE)


def test_too_few_steps() -> None:
    with pytest.raises(OptionError, match="`steps` must be at least 12; got 3"):
        nethook.checkup(mlp(), data(), CE, steps=3)


def test_an_error_of_the_model_comes_as_it_is() -> None:
    x, y = data()
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied") as error:
        nethook.checkup(mlp(), (x[:, :5], y), CE)
    assert error.value.__notes__ == [
        "nethook.checkup called the model with tensors of shapes (32, 5)."
    ]


def test_copies_are_nobodys_newcomers() -> None:
    met: list[object] = []
    newcomers = Discovery(
        "test", called=lambda model, _: met.append(model), stepped=met.append, built=lambda: None
    )
    newcomers.turn_on()
    try:
        model = mlp()
        nethook.checkup(model, data(), CE, steps=12)
        assert not met
        model(data()[0])
        assert met[0] is model
    finally:
        newcomers.remove()


class LastState(nn.Module):
    """Its LSTM takes the first dimension for time, unless it is told otherwise."""

    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 8, batch_first=batch_first)
        self.out = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.rnn(x)[0][:, -1])


@pytest.mark.parametrize("batch_first", [False, True])
def test_samples_that_know_of_each_other_are_asked_about(batch_first: bool) -> None:
    """All steps of a check have the same batch, which says nothing of its rows."""
    torch.manual_seed(0)
    batch = torch.randn(24, 7, 4), torch.randint(3, (24,))
    found = nethook.checkup(LastState(batch_first), batch, CE)
    assert ("samples-mixed" in [finding.code for finding in found.findings]) != batch_first
    (told,) = [check for check in found.checks if check.name == "experiments on copies"]
    assert told.state == ("ok" if batch_first else "note")
    assert codes(found) == set()


def test_what_a_slow_rate_of_ours_leaves_is_no_symptom() -> None:
    """The first of the rates is too low for it, and a later one learns all samples."""
    torch.manual_seed(0)
    found = nethook.checkup(
        LastState(batch_first=True), (torch.randn(24, 7, 4), torch.randint(3, (24,))), CE
    )
    (told,) = [check for check in found.checks if check.name.startswith("learns")]
    assert told.state == "ok"
    assert "lr=0.001" not in told.text
    assert not found.findings
