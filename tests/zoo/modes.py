"""Forwards, or parts of them, that run under a mode of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]

SEEN = "what a hand-written hook does is logged as well"


def _mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


class Modes(nn.Module):
    """Parts of the forward run under other modes."""

    def __init__(self, mode: Any) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.inside = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.last = nn.Linear(4, 2)
        self._mode = mode

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        with self._mode():
            y = self.inside(x)
        return self.last(x * y.float())


class InferenceInside(nn.Module):
    """A frozen teacher runs in inference mode, its outputs leave it as a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True))
        self.student = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        with torch.inference_mode():
            target = self.teacher(x)
        return self.student(x) - target.clone()


@torch.inference_mode()
def _inference(model: nn.Module, given: Given) -> object:
    return model(given.floats(3, 4, grad=False))


@torch.no_grad()
def _no_grad(model: nn.Module, given: Given) -> object:
    return model(given.floats(3, 4))


def _autocast(model: nn.Module, given: Given) -> object:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(given.floats(3, 4))


def _anomaly(model: nn.Module, given: Given) -> object:
    with torch.autograd.detect_anomaly(check_nan=True):
        return model(given.floats(3, 4))


class FunctionLog(TorchFunctionMode):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._log.append(getattr(func, "__name__", repr(func)))
        return func(*args, **(kwargs or {}))


class DispatchLog(TorchDispatchMode):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self._log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._log.append(str(func))
        return func(*args, **(kwargs or {}))


class Logs(nn.Module):
    """Writes down every operation that its children do."""

    def __init__(self, mode: type[FunctionLog | DispatchLog]) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
        self.log: list[str] = []
        self._mode = mode

    def forward(self, x: Tensor) -> Tensor:
        with self._mode(self.log):
            return self.inner(x)


EXHIBITS = (
    Exhibit(
        "no_grad_inside", "A part of the forward without gradient.", lambda: Modes(torch.no_grad)
    ),
    Exhibit(
        "autocast_inside",
        "A part of the forward in autocast: a cache of weights, bfloat16 outputs.",
        lambda: Modes(lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
    ),
    Exhibit(
        "autocast_around", "The whole forward in autocast, the backward outside.", _mlp, _autocast
    ),
    Exhibit("inference_inside", "A part of the forward in inference mode.", InferenceInside),
    Exhibit(
        "inference_around",
        "The whole forward in inference mode, with in-place layers.",
        lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2)),
        _inference,
        differentiable=False,
    ),
    Exhibit(
        "no_grad_around",
        "The whole forward without gradient.",
        _mlp,
        _no_grad,
        differentiable=False,
    ),
    Exhibit(
        "anomaly_mode",
        "Anomaly mode keeps the stack of every operation.",
        _mlp,
        _anomaly,
        quiet=[Quiet(UserWarning, "Anomaly Detection has been enabled", "it is the exhibit")],
    ),
    Exhibit(
        "function_mode",
        "A torch function mode logs every call of torch.",
        lambda: Logs(FunctionLog),
        no_oracle=SEEN,
        logs_operations=True,
    ),
    Exhibit(
        "dispatch_mode",
        "A dispatch mode logs every operation.",
        lambda: Logs(DispatchLog),
        no_oracle=SEEN,
        logs_operations=True,
    ),
)
