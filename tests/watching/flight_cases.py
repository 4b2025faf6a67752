"""Small trainings that meet a NaN, and some that only look as if; and a loop to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.nested import tensors
from nethook.watching.clock.clock import Clock
from nethook.watching.flight.flag import Flag
from nethook.watching.flight.ranges import is_finite
from nethook.watching.flight.recorder import Flight
from nethook.watching.losses.marks import OUTPUT_MARK, OutputMark
from tests.watching.fakes import Raising, schedule

Batch = tuple[Any, Any]


@dataclass
class Case:
    """A model, its batches, its loss, and how it is trained."""

    model: nn.Module
    batches: list[Batch]
    loss: Callable[[Any, Any], torch.Tensor] = F.mse_loss
    optimizer: Callable[[Any], torch.optim.Optimizer] = lambda p: torch.optim.SGD(p, 0.01)
    scaler: Any = None


def batches(number: int = 4, *shape: int) -> list[Batch]:
    torch.manual_seed(0)
    shape = shape or (8, 4)
    return [(torch.randn(shape), torch.randn(shape[0], 2)) for _ in range(number)]


# -- models that make NaN --------------------------------------------------------------------------


class LogOfZero(nn.Module):
    """The log of what a rectifier returns, once a batch is negative enough."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 2)
        with torch.no_grad():
            self.fc1.weight.copy_(torch.eye(4))
            self.fc1.bias.zero_()

    def forward(self, x):
        hidden = F.relu(self.fc1(x))
        return self.fc2(torch.log(hidden))


def log_of_zero() -> Case:
    data = [(x.abs() + 0.1, y) for x, y in batches()]
    data[2] = (-data[2][0], data[2][1])
    return Case(LogOfZero(), data)


class MaskedMean(nn.Module):
    """The mean over the positions that a mask lets through."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x, mask):
        hidden = self.embed(x) * mask[..., None]
        pooled = hidden.sum(1) / mask.sum(1, keepdim=True)
        return self.head(pooled)


def empty_mask() -> Case:
    torch.manual_seed(0)
    data = []
    for step in range(4):
        mask = torch.ones(8, 5)
        if step == 2:
            mask[3] = 0
        data.append(((torch.randn(8, 5, 4), mask), torch.randn(8, 2)))
    return Case(MaskedMean(), data)


def half_overflow() -> Case:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).half()
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(4))
        model[1].weight.fill_(10.0)
    data = [(x.half(), y.half()) for x, y in batches()]
    data[2] = (torch.full((8, 4), 1e4).half(), data[2][1])

    def loss(output, target):
        return F.mse_loss(output.float(), target.float())

    return Case(model, data, loss, lambda p: torch.optim.SGD(p, 0.0))


class RootAtZero(nn.Module):
    """A root, whose derivative at 0 is infinite; the forward is fine."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 4)
        self.fc2 = nn.Linear(4, 2)
        with torch.no_grad():
            self.fc1.weight.copy_(torch.eye(4))
            self.fc1.bias.zero_()

    def forward(self, x):
        return self.fc2(torch.sqrt(self.fc1(x)))


def root_at_zero() -> Case:
    data = [(x.abs() + 0.1, y) for x, y in batches()]
    data[2][0][0, 0] = 0.0
    return Case(RootAtZero(), data, optimizer=lambda p: torch.optim.SGD(p, 0.0))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.RNN(4, 4, nonlinearity="relu", batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


def exploding_rnn() -> Case:
    torch.manual_seed(0)
    model = Recurrent()
    with torch.no_grad():
        model.rnn.weight_hh_l0.copy_(3 * torch.eye(4))
        model.rnn.weight_ih_l0.copy_(torch.eye(4))
    data = [(torch.rand(2, 4, 4), torch.randn(2, 2)) for _ in range(4)]
    data[2] = (torch.rand(2, 100, 4), torch.randn(2, 2))
    return Case(model, data, optimizer=lambda p: torch.optim.SGD(p, 1e-9))


def nan_in_data() -> Case:
    data = batches()
    data[2][0][1, 1] = float("nan")
    return Case(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), data)


def nan_in_targets() -> Case:
    data = batches()
    data[2][1][1, 1] = float("nan")
    return Case(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)), data)


def log_in_loss() -> Case:
    data = batches()
    model = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(1.0)

    def loss(output, target):
        return -torch.log(output).mean()

    # A step uphill drives some outputs below 0, where the rectifier makes them 0.
    return Case(model, data, loss, lambda p: torch.optim.SGD(p, 1.5, maximize=True))


def adam_without_eps() -> Case:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        model[0].bias.fill_(-100.0)  # dead units: their gradients are 0, and 0/0 is NaN
    return Case(model, batches(), optimizer=lambda p: torch.optim.Adam(p, 1e-3, eps=0.0))


def nan_in_parameters() -> Case:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    with torch.no_grad():
        model[1].weight[0, 0] = float("nan")
    return Case(model, batches())


# -- trainings that only look as if ----------------------------------------------------------------


def scaler_finds_its_scale() -> Case:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=100)
    data = batches(4) + batches(4)
    return Case(model, [(x * 10, y * 10) for x, y in data], scaler=scaler)


class Mask(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value

    def forward(self, scores):
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        return scores.masked_fill(hidden, self.value)


class Attention(nn.Module):
    def __init__(self, value: float) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.mask = Mask(value)

    def forward(self, x):
        scores = self.mask(self.q(x) @ self.k(x).mT)
        return scores.softmax(-1) @ self.v(x)


def infinite_mask() -> Case:
    torch.manual_seed(0)
    data = [(torch.randn(3, 5, 4), torch.randn(3, 5, 2)) for _ in range(4)]
    return Case(Attention(float("-inf")), data)


def lowest_mask() -> Case:
    case = infinite_mask()
    case.model = Attention(torch.finfo(torch.float32).min)
    return case


class Padding(nn.Module):
    """Fills the outputs of padded positions with NaN, so that nobody uses them by mistake."""

    def forward(self, output):
        padded = torch.zeros(output.shape, dtype=torch.bool)
        padded[-1] = True
        return output.masked_fill(padded, float("nan"))


def padding_of_nan() -> Case:
    def loss(output, target):
        return F.mse_loss(output[:-1], target[:-1])

    return Case(nn.Sequential(nn.Linear(4, 2), Padding()), batches(), loss)


# -- a loop ----------------------------------------------------------------------------------------


class Loop:
    """Trains a case and tells the flight recorder what the watch would tell it."""

    guard = Raising()

    def __init__(self, case: Case, path: Path, batches: int = 3) -> None:
        self.case = case
        self.path = path
        self.clock = Clock()
        self.phase = "train"
        self.schedule = schedule()
        self.events: list[tuple[str, str, str, dict[str, Any]]] = []
        self.flight = Flight(self, batches)

    @property
    def step(self) -> int:
        return self.clock.step

    @step.setter
    def step(self, step: int) -> None:
        self.clock.step = step

    def event(self, kind: str, message: str, address: str = "", data: Any = None) -> None:
        self.events.append((kind, message, address, dict(data or {})))

    def run_path(self) -> str:
        return str(self.path)

    def run(self) -> list[tuple[str, str, str, dict[str, Any]]]:
        case, flight = self.case, self.flight
        handles = self._attach()
        optimizer = case.optimizer(case.model.parameters())
        for x, y in case.batches:
            args = x if isinstance(x, tuple) else (x,)
            optimizer.zero_grad()
            flight.held.begins("", case.model, args, {})
            output = case.model(*args)
            output.grad_fn.metadata[OUTPUT_MARK] = OutputMark("")
            loss = case.loss(output, y)
            if case.scaler is not None:
                loss = case.scaler.scale(loss)
            flight.backward_begins([loss])
            loss.backward()
            skipped = self._step(optimizer)
            flight.step_ended(self.step, skipped)
            self.clock.step += 1
        for handle in handles:
            handle.remove()
        flight.close()
        return self.events

    def _step(self, optimizer) -> bool:
        scaler = self.case.scaler
        if scaler is not None:
            scaler.unscale_(optimizer)
        parameters = dict(self.case.model.named_parameters())
        for name, parameter in parameters.items():
            self._flag(name, "param_grads", parameter.grad)
        skipped = False
        if scaler is not None:
            skipped = bool(scaler._found_inf_per_device(optimizer)[torch.device("cpu")])
        if not skipped:
            self.flight.step_begins(optimizer, skipped)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()
        for name, parameter in parameters.items():
            self._flag(name, "params", parameter)
        return skipped

    def _flag(self, address, quantity, value, module=None, inputs=None) -> None:
        if value is not None and not is_finite(value):
            flag = Flag(address, quantity, self.step, self.phase, module, inputs, value)
            self.flight.non_finite(flag)

    def _attach(self) -> list[Any]:
        handles = []
        for name, module in self.case.model.named_modules():
            if not list(module.children()):
                handles.append(module.register_forward_hook(self._hook(name)))
        return handles

    def _hook(self, name):
        def hook(module, args, output):
            self._flag(name, "outputs", output, module, args)
            for _, tensor in tensors(output):
                if tensor.requires_grad and tensor.is_floating_point():
                    tensor.register_hook(lambda grad: self._flag(name, "grads", grad))

        return hook
