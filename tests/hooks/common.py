"""What the tests of this room share."""

import faulthandler
import gc
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from nethook.hooks.hook import Hook, Owner


class Spy(Hook):
    """A hook that writes down what it was called with, and returns `answer`."""

    def __init__(
        self, owner: Owner | None = None, address: str = "here", answer: Any = None
    ) -> None:
        super().__init__(owner or Owner("nethook.test"), address)
        self.seen: list[tuple[Any, ...]] = []
        self.answer = answer

    def __call__(self, *given: Any) -> Any:
        self.seen.append(given)
        return self.answer


@contextmanager
def counted() -> Iterator[Callable[[], tuple[int, int]]]:
    """How many tensors and how many objects have come to life since and are still alive.

    What lives already is set aside (`gc.freeze`): counting is quick then, and exact.
    """

    def count() -> tuple[int, int]:
        gc.collect()
        alive = gc.get_objects()
        return sum(isinstance(each, torch.Tensor) for each in alive), len(alive)

    gc.collect()
    gc.freeze()
    try:
        yield count
    finally:
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # as it was: see tests/conftest.py


def all_hooks(model: nn.Module) -> dict[str, list[Any]]:
    """Every hook dict of every module and parameter, read straight from torch."""
    found: dict[str, list[Any]] = {}
    for name, module in model.named_modules():
        for attribute, value in vars(module).items():
            if "_hooks" in attribute and isinstance(value, dict) and value:
                found[f"{name}:{attribute}"] = list(value.items())
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        for attribute in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            if getattr(tensor, attribute):
                found[f"{name}:{attribute}"] = list(getattr(tensor, attribute).items())
    return found


def signal_of(action: Callable[[], object]) -> int:
    """Runs something that may crash in a fork of this process: the signal that ended it, or 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of forks
        child = os.fork()
    if child == 0:
        try:
            import resource

            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            faulthandler.disable()
            action()
        finally:
            os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])


@contextmanager
def one_rank() -> Iterator[None]:
    """A group of this process alone: what is spread over ranks can be made and looked at."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


def net() -> nn.Sequential:
    """A small network, the same numbers every time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
