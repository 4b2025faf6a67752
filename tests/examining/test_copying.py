"""Copies of models with anything in them, and the models that have none."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

import nethook
from nethook.examining.copying import copy_of, model_bytes, why_not_copied
from nethook.examining.experiment import NotReplayableError


def norm_of_old() -> nn.Module:
    with pytest.warns(FutureWarning):
        layer = weight_norm(nn.Linear(4, 4))
    layer(torch.ones(1, 4))  # its weight has a history now
    return layer


class Carries(nn.Module):
    """A state with a history, in a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(4, 4)
        self.state = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output, self.state = self.cell(x)
        return output


MODELS = {
    "linear": lambda: nn.Linear(4, 4),
    "spectral norm": lambda: spectral_norm(nn.Linear(4, 4)),
    "weight norm": lambda: parametrizations.weight_norm(nn.Linear(4, 4)),
    "weight norm of old": norm_of_old,
    "lstm": lambda: nn.LSTM(4, 4, batch_first=True),
    "carries a state": Carries,
    "made by a first call": lambda: _called(nn.LazyLinear(4)),
    "tied": lambda: _tied(),
    "frozen": lambda: nn.Linear(4, 4).requires_grad_(False),
}


def _called(model: nn.Module) -> nn.Module:
    model(torch.ones(2, 4))
    return model


def _tied() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    return model


@pytest.mark.parametrize("name", MODELS)
def test_a_copy_gives_the_same_and_shares_nothing(name):
    model = MODELS[name]()
    x = torch.randn(3, 2, 4) if "lstm" in name or "state" in name else torch.randn(3, 4)
    model(x)
    assert why_not_copied(model) == ""
    copied = copy_of(model)
    theirs = {tensor.data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    assert theirs.isdisjoint(
        tensor.data_ptr() for tensor in (*copied.parameters(), *copied.buffers())
    )
    torch.manual_seed(0)
    expected = model.eval()(x)
    torch.manual_seed(0)
    given = copied.eval()(x)
    first = expected[0] if isinstance(expected, tuple) else expected
    second = given[0] if isinstance(given, tuple) else given
    assert torch.equal(first, second)


def test_tied_weights_stay_tied():
    copied = copy_of(_tied())
    assert copied[0].weight is copied[1].weight


def test_our_own_hooks_do_not_come_along(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4))
    with nethook.watch(model, to=tmp_path / "run.db"):
        assert why_not_copied(model) == ""
        copied = copy_of(model)
    assert not copied._forward_hooks
    assert not copied[0]._forward_hooks


def test_a_method_of_the_model_comes_along():
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(4, 4)
            self.seen = 0
            self.inner.register_forward_hook(self.count)

        def count(self, *_: object) -> None:
            self.seen += 1

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    model = Own()
    assert why_not_copied(model) == ""
    copied = copy_of(model)
    copied(torch.ones(1, 4))
    assert (model.seen, copied.seen) == (0, 1)


def foreign_hook() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4))
    seen: list[object] = []
    model[0].register_forward_hook(lambda *given: seen.append(given))
    return model


def replaced_forward() -> nn.Module:
    model = nn.Linear(4, 4)
    plain = model.forward
    model.forward = lambda x: plain(x) * 2
    return model


REFUSED = {
    "hooks on it": foreign_hook,
    "forward of Linear was replaced": replaced_forward,
    "no values": lambda: nn.Linear(4, 4, device="meta"),
    "no shape yet": lambda: nn.LazyLinear(4),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_is_not_run_aside(reason):
    assert reason in why_not_copied(REFUSED[reason]())


@pytest.mark.filterwarnings("ignore:`torch.jit")  # deprecated, from 2.10 on
def test_torchscript_is_not():
    assert "TorchScript" in why_not_copied(nn.Sequential(torch.jit.script(nn.Linear(4, 4))))


def test_a_process_group(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    assert "torch.distributed" in why_not_copied(nn.Linear(4, 4))


def test_what_python_cannot_copy():
    model = nn.Linear(4, 4)
    model.lock = threading.Lock()
    with pytest.raises(NotReplayableError, match="cannot be copied"):
        copy_of(model)


def test_bytes_of_a_copy():
    model = nn.BatchNorm1d(8)
    model.cache = [torch.zeros(100)]
    assert model_bytes(model) == 4 * (8 * 4) + 8 + 400
    assert model_bytes(_tied()) == (16 + 4 + 4) * 4
