"""Models whose forward changes one thing each that it should have left alone."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, spectral_norm


@dataclass
class Settings:
    calls: int = 0
    log: list[int] = field(default_factory=list)


class Adversary(nn.Module):
    """Something wrong, and then linear layers."""

    def __init__(self, wrong: Callable[[Any, Tensor], object], **attributes: Any) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("n", torch.zeros(3))
        self.register_buffer("cache", None)
        self.register_buffer("passing", torch.ones(2), persistent=False)
        self.first.weight.grad = torch.full((4, 4), 0.5)
        self._wrong = wrong
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        self._wrong(self, x)
        return self.last(F.relu(self.norm(self.first(x))))


class Object:
    """Any object: it is opened only where it is an input."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.keys: Tensor | None = None


def _raise(model: Any, x: Tensor) -> None:
    model.n.add_(1)
    random.random()
    model.norm(x)
    raise ZeroDivisionError("half-way")


def _step(model: Any, x: Tensor) -> None:
    with torch.enable_grad():
        F.mse_loss(model.last(x.detach()), x.detach()).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.sub_(parameter.grad, alpha=0.1)


def _zero_grad(model: Any, x: Tensor) -> None:
    if model.first.weight.grad is not None:  # a copy has none
        model.first.weight.grad.zero_()


def _swap(model: Any, x: Tensor) -> None:
    model.first, model.added = nn.Linear(4, 4), nn.ReLU()


def _hook(model: Any, x: Tensor) -> None:
    model.last.register_forward_hook(lambda *_: None)
    model.last.register_forward_pre_hook(lambda *_, **__: None, with_kwargs=True)
    model.last.weight.register_hook(lambda grad: grad * 2)


def _hidden() -> nn.Module:
    model = Adversary(lambda m, x: m.hidden[0](x))
    model.hidden = [nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))]
    return model


def _shared_memory() -> nn.Module:
    """Two weights in one piece of memory, as a flattened recurrent network has them."""
    model = Adversary(lambda m, x: m.two.data.add_(1))
    memory = torch.arange(8.0)
    model.one, model.two = nn.Parameter(memory[:4]), nn.Parameter(memory[4:])
    return model


def _of_numpy() -> nn.Module:
    model = Adversary(lambda m, x: m.shared.add_(1))
    model.array = np.zeros(3, dtype=np.float32)
    model.register_buffer("shared", torch.from_numpy(model.array))
    return model


ADVERSARIES: dict[str, Callable[[], nn.Module]] = {
    "python's numbers": lambda: Adversary(lambda m, x: random.random()),
    "numpy's numbers": lambda: Adversary(lambda m, x: np.random.randn()),
    "torch's numbers": lambda: Adversary(lambda m, x: torch.rand(1)),
    "seeds": lambda: Adversary(lambda m, x: (torch.manual_seed(9), random.seed(9))),
    "generators": lambda: Adversary(
        lambda m, x: (torch.rand(1, generator=m.own), m.python.random(), m.numpy[0].random(),
                      m.legacy.rand()),
        own=torch.Generator().manual_seed(1), python=random.Random(2),
        numpy=[np.random.default_rng(3)], legacy=np.random.RandomState(4),
    ),
    "input in place": lambda: Adversary(lambda m, x: x.mul_(2)),
    "input's data": lambda: Adversary(lambda m, x: x.data.mul_(2)),
    "input's shape": lambda: Adversary(lambda m, x: x.t_()),
    "attribute": lambda: Adversary(lambda m, x: setattr(m, "calls", m.calls + 1), calls=0),
    "new attribute": lambda: Adversary(lambda m, x: setattr(m, "seen", x)),
    "deleted attribute": lambda: Adversary(lambda m, x: vars(m).pop("gone", None), gone=[1]),
    "list": lambda: Adversary(lambda m, x: m.log.append(x), log=[1, 2]),
    "nested": lambda: Adversary(
        lambda m, x: (m.log["a"][0].append(1), m.log["b"].add(2)), log={"a": ([],), "b": {1}}
    ),
    "other containers": lambda: Adversary(
        lambda m, x: (m.last_ones.append(3), m.table.popitem(), m.table.update(c=3)),
        last_ones=deque([1, 2], maxlen=2), table=OrderedDict(a=1, b=2),
    ),
    "plain data": lambda: Adversary(
        lambda m, x: (m.settings.log.append(1), setattr(m.settings, "calls", 2),
                      setattr(m.space, "new", 1)),
        settings=Settings(), space=SimpleNamespace(a=1),
    ),
    "array": lambda: Adversary(lambda m, x: m.counts.__iadd__(1), counts=np.zeros(3)),
    "tensor attribute": lambda: Adversary(
        lambda m, x: (m.memory.add_(1), m.more[0].data.add_(1)),
        memory=torch.zeros(2), more=[torch.ones(2)],
    ),
    "buffer in place": lambda: Adversary(lambda m, x: m.n.add_(1)),
    "buffer replaced": lambda: Adversary(lambda m, x: setattr(m, "n", m.n + 1)),
    "buffer filled": lambda: Adversary(lambda m, x: setattr(m, "cache", x.clone())),
    "buffer added": lambda: Adversary(
        lambda m, x: m.register_buffer("more", x.clone(), persistent=False)
    ),
    "buffer removed": lambda: Adversary(lambda m, x: m._buffers.pop("passing", None)),
    "buffer in the graph": lambda: Adversary(
        lambda m, x: torch.is_grad_enabled() and m.n.add_(m.first.bias[:3])
    ),
    "buffer of another shape": lambda: Adversary(lambda m, x: m.n.resize_(5)),
    "buffer of numpy's": _of_numpy,
    "gradient in place": lambda: Adversary(_zero_grad),
    "gradient replaced": lambda: Adversary(
        lambda m, x: setattr(m.first.weight, "grad", torch.zeros(4, 4))
    ),
    "gradient removed": lambda: Adversary(lambda m, x: setattr(m.first.weight, "grad", None)),
    "gradient made": lambda: Adversary(
        lambda m, x: setattr(m.last.weight, "grad", torch.zeros(4, 4))
    ),
    "frozen": lambda: Adversary(lambda m, x: m.first.requires_grad_(False)),
    "weight's data": lambda: Adversary(
        lambda m, x: setattr(m.last.weight, "data", m.last.weight.data * 1.5)
    ),
    "weight in place": lambda: Adversary(lambda m, x: m.last.weight.data.mul_(1.5)),
    "weight replaced": lambda: Adversary(
        lambda m, x: setattr(m.last, "weight", nn.Parameter(torch.ones(4, 4)))
    ),
    "weights of one memory": _shared_memory,
    "a step": lambda: Adversary(_step),
    "mode": lambda: Adversary(lambda m, x: (m.norm.eval(), m.last.train(not m.training))),
    "modules": lambda: Adversary(_swap),
    "class": lambda: Adversary(
        lambda m, x: m.first.__setattr__("__class__", type("Other", (nn.Linear,), {}))
    ),
    "hooks added": lambda: Adversary(_hook),
    "module in a list": _hidden,
    "default type": lambda: Adversary(lambda m, x: torch.set_default_dtype(torch.float64)),
    "gradient mode": lambda: Adversary(lambda m, x: torch.set_grad_enabled(False)),
    "raises": lambda: Adversary(_raise),
    "lazy": lambda: nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.LazyLinear(4)),
    "spectral norm": lambda: nn.Sequential(
        parametrizations.spectral_norm(nn.Linear(4, 4)), spectral_norm(nn.Linear(4, 4))
    ),
    "tied": lambda: _tied(),
    "dropout": lambda: nn.Sequential(nn.Linear(4, 4), nn.Dropout(), nn.RReLU(), nn.Linear(4, 4)),
}  # fmt: skip


def _tied() -> nn.Module:
    model = Adversary(lambda m, x: m.last.weight.data.neg_())
    model.last.weight = model.first.weight
    return model
