"""Throws an exception at a chosen place inside a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

__all__ = ["PLACES", "Bomb", "Boom", "Place", "SilentBoom"]

Place = Literal["before", "after", "gradient"]
PLACES: tuple[Place, ...] = ("before", "after", "gradient")


class Boom(Exception):
    """What the bomb raises."""


class SilentBoom(BaseException):
    """The same, past every `except Exception`."""


@dataclass
class Bomb:
    """Goes off at the `at`-th module call: before its forward, after it, or in its backward.

    The fuse is laid with global hooks: hooks on the modules themselves would switch off the fused
    path of `nn.TransformerEncoderLayer`, and so hide what it does under an exception.
    """

    at: int
    place: Place = "after"
    kind: type[BaseException] = Boom
    calls: int = field(default=0, init=False)
    exploded: BaseException | None = field(default=None, init=False)

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bomb is live inside of this block."""
        register = (
            register_module_forward_pre_hook
            if self.place == "before"
            else register_module_forward_hook
        )
        handle = register(self._fuse)
        try:
            yield
        finally:
            handle.remove()

    def _fuse(self, module: nn.Module, args: Any, output: Any = None) -> None:
        self.calls += 1
        if self.calls - 1 != self.at:
            return
        if self.place != "gradient":
            self._explode()
        elif isinstance(output, Tensor) and output.requires_grad:
            if torch._C._functorch.is_functorch_wrapped_tensor(output):
                return
            output.grad_fn  # before register_hook: torch 2.13 can crash otherwise (#196459)
            output.register_hook(lambda _: self._explode())

    def _explode(self) -> None:
        # Once only: a leaf may carry the fuse into the next run.
        if self.exploded is None:
            self.exploded = self.kind(f"{self.place} call {self.at}")
            raise self.exploded
