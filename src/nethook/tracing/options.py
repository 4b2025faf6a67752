"""What a trace was asked for, checked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from nethook.errors import OptionError
from nethook.hooks.threads import Threads, check_threads
from nethook.tracing.keep import Keeper, keeper

Calls = Literal["all", "last"] | int
Copy = Literal["lazy", "now", "reference"] | bool | None
"""How tensors are kept. None, True and False are older words for the three."""

_COPIES: dict[object, bool | None] = {
    "lazy": None, None: None, "now": True, True: True, "reference": False, False: False,
}  # fmt: skip


@dataclass(slots=True, kw_only=True)  # not frozen: that would triple the time it takes to make
class Options:
    """The options of `trace`, as it documents them."""

    inputs: bool
    grads: bool
    input_grads: bool
    param_grads: bool
    nodes: bool
    copy: Copy
    detach: bool
    device: torch.device | str | None
    dtype: torch.dtype | None
    transform: Callable[[torch.Tensor], Any] | None
    calls: Calls
    stop: bool
    threads: Threads = "own"

    def __post_init__(self) -> None:
        if self.copy not in tuple(_COPIES):  # it may be anything, a list too
            raise OptionError(f'`copy` must be "lazy", "now" or "reference"; got {self.copy!r}.')
        if self.dtype is not None and not self.dtype.is_floating_point:
            raise OptionError(
                f"`dtype` must be a floating-point type, such as torch.float32; got {self.dtype}."
            )
        if self.transform is not None and not callable(self.transform):
            raise OptionError(
                f"`transform` must be a function of one tensor; got {self.transform!r}."
            )
        self.most_calls()
        check_threads(self.threads)
        if self.stop and self.threads == "all":
            raise OptionError(
                '`stop` must be False with threads="all"; got True. stop=True ends the forward of '
                "one thread: drop it, or trace that thread alone."
            )

    def most_calls(self) -> int | None:
        """How many calls of a site are kept, the latest ones; None for all of them."""
        if self.calls == "all":
            return None
        if self.calls == "last":
            return 1
        if type(self.calls) is int and self.calls > 0:  # True is an int, too
            return self.calls
        raise OptionError(
            '`calls` must be "all", "last", or how many of the latest calls to keep (1 or more); '
            f"got {self.calls!r}."
        )

    def keep(self) -> Keeper:
        """The function that keeps one tensor."""
        return keeper(
            copy=_COPIES[self.copy],
            detach=self.detach,
            device=self.device,
            dtype=self.dtype,
            transform=self.transform,
        )
