"""Forwards whose order of calls cannot be read from the module tree."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor, nn

from tests.zoo.exhibit import Exhibit, Given

__all__ = ["EXHIBITS"]


class Recursive(nn.Module):
    """Calls itself, through `__call__`, three levels down."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, depth: int = 3) -> Tensor:
        if depth == 0:
            return x * 2
        return self(self.fc(x).tanh(), depth=depth - 1) + x


class DataDependent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positive = nn.Linear(4, 4)
        self.negative = nn.Linear(4, 4)
        self.never = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(4):
            x = self.positive(x) if x.sum() > 0 else self.negative(x)
            if x.abs().max() > 1e6:
                x = self.never(x)
        return x


class ManyCalls(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.Tanh()

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(40):
            x = self.act(self.fc(x)) + x
        return x


class EarlyReturn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index == 1:
                return x
        return x


class GeneratorForward(nn.Module):
    """Its forward is a generator: the body, and the calls in it, run after the call returned."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Iterator[Tensor]:
        for layer in self.layers:
            x = layer(x)
            yield x


class ReadsGenerator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source = GeneratorForward()

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([x.tanh() for x in self.source(x)])


class ForwardDirectly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bypassed = nn.Linear(4, 4)
        self.called = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.called(self.bypassed.forward(x))


class Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor, kind: type[BaseException]) -> Tensor:
        hidden = self.fc(x)
        if kind is not type(None):
            raise kind("as usual")
        return hidden


class CatchesChild(nn.Module):
    """Takes another way when its child fails, with an ordinary exception and with a grave one."""

    def __init__(self) -> None:
        super().__init__()
        self.child = Fails()
        self.fallback = nn.Linear(4, 4)
        self.caught: list[str] = []

    def forward(self, x: Tensor) -> Tensor:
        for kind in (ValueError, KeyboardInterrupt):
            try:
                return self.child(x, kind)
            except kind as error:
                self.caught.append(repr(error))
                x = self.fallback(x)
        return x


class StopsIteration(nn.Module):
    """A child ends a loop with StopIteration, which looks like the end of a generator."""

    def __init__(self) -> None:
        super().__init__()
        self.child = Fails()
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        try:
            self.child(x, StopIteration)
        except StopIteration:
            x = self.fc(x)
        return x


class Threads(nn.Module):
    """Calls its children from two other threads."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.right = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
            # One after the other: two runs must build their graphs in the same order.
            left = one.submit(self.left, x).result()
            return left * two.submit(self.right, x).result()


class CalledInBackward(nn.Module):
    """A tensor hook of the model's own runs one of its modules during the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.critic = nn.Linear(4, 1)
        self.scores: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        if y.requires_grad:
            y.register_hook(self._judge)
        return y.tanh()

    def _judge(self, grad: Tensor) -> None:
        self.scores.append(self.critic(grad).detach())


class OwnCall(nn.Linear):
    """Overrides `__call__`, and does something after the hooks have run."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs) * 2


class SkipsModuleCall(nn.Linear):
    """Overrides `__call__` so that no hook ever runs."""

    def __call__(self, x: Tensor) -> Tensor:
        return self.forward(x)


def _forward_on_instance() -> nn.Module:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    layer = model[0]
    original = layer.forward
    layer.forward = lambda x: original(x).tanh()
    return model


class Proxy(nn.Module):
    """Hands every unknown attribute on to the module inside, as wrappers do."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("inner"), name)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x) * self.weight[0, 0]


class Falsy(nn.Module):
    """Has a length of zero: `if module:` takes it for missing."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def __len__(self) -> int:
        return 0

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)


def _child_directly(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    return model.get_submodule("1")(x), model.get_submodule("0.0")(x)


def _reads_stream(model: nn.Module, given: Given) -> object:
    stream = model(given.floats(3, 4))
    assert isinstance(stream, Iterator)
    return list(stream)


EXHIBITS = (
    Exhibit("recursion", "A module that calls itself.", Recursive),
    Exhibit(
        "data_dependent",
        "Which modules run is decided by the numbers; one never does.",
        DataDependent,
    ),
    Exhibit("many_calls", "One layer, forty calls in one forward.", ManyCalls),
    Exhibit("early_return", "The last modules of a list are never reached.", EarlyReturn),
    Exhibit(
        "generator_forward", "A child's forward is a generator, read by its parent.", ReadsGenerator
    ),
    Exhibit(
        "generator_root",
        "The root's forward is a generator: its children run when the call is long over.",
        GeneratorForward,
        _reads_stream,
    ),
    Exhibit("forward_directly", "`child.forward(x)` runs no hook of the child.", ForwardDirectly),
    Exhibit(
        "child_directly",
        "Children are called from outside, the root is not.",
        lambda: nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Tanh()), nn.Linear(4, 2)),
        _child_directly,
    ),
    Exhibit("catches_child", "A child raises, its parent goes on another way.", CatchesChild),
    Exhibit("stop_iteration", "A child raises StopIteration.", StopsIteration),
    Exhibit("threads", "Children run in other threads.", Threads),
    Exhibit("called_in_backward", "A module runs inside of the backward pass.", CalledInBackward),
    Exhibit(
        "own_call",
        "`__call__` is overridden and changes the output after the hooks.",
        lambda: nn.Sequential(OwnCall(4, 4), nn.Linear(4, 2)),
    ),
    Exhibit(
        "skips_module_call",
        "`__call__` is overridden and runs no hooks.",
        lambda: nn.Sequential(SkipsModuleCall(4, 4), nn.Linear(4, 2)),
    ),
    Exhibit("forward_on_instance", "`forward` is set on the instance.", _forward_on_instance),
    Exhibit(
        "proxy",
        "`__getattr__` hands unknown names on to another module.",
        lambda: Proxy(nn.Linear(4, 4)),
    ),
    Exhibit(
        "falsy_module",
        "A module that is false.",
        lambda: nn.Sequential(Falsy(), nn.Sequential(), nn.Tanh()),
    ),
)
