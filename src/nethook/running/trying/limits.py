"""What every trial has of its own: its steps are counted, and its loaders start no processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.imports import when_imported
from nethook.hooks.process.loss_functions import LossFunctions
from nethook.hooks.process.optimizers import on_every_step
from nethook.hooks.wrapped import WrappedFunction


class Call(Hook):
    """A hook that calls a function with what torch gives."""

    __slots__ = ("_act",)

    def __init__(self, owner: Owner, address: str, act: Callable[..., Any]) -> None:
        super().__init__(owner, address)
        self._act = act

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Calls it."""
        return self._act(*given, **named)


def nothing(*_: Any) -> None:
    """For a step before which, or after which, nothing is done."""


def around_steps(
    hooks: Attachment,
    before: Callable[[Any], None] = nothing,
    after: Callable[[Any], None] = nothing,
) -> None:
    """Calls `before(optimizer)` and `after(optimizer)` around each step of any optimizer."""
    owner = hooks.owner
    on_every_step(
        hooks,
        Call(owner, "*", lambda optimizer, *_: before(optimizer)),
        Call(owner, "*", lambda optimizer, *_: after(optimizer)),
    )


def wrap(hooks: Attachment, holder: str, name: str, wrapper: Callable[..., Any]) -> None:
    """Calls `wrapper(original, *args, **kwargs)` in the place of a function, or of a method."""
    hook = Call(hooks.owner, f"{holder}.{name}", wrapper)
    hooks.add(WrappedFunction(holder, name, hook))


def count_steps(hooks: Attachment, stepped: Callable[[int], None]) -> None:
    """Calls `stepped(id(optimizer))` before each step."""
    around_steps(hooks, lambda optimizer: stepped(id(optimizer)))


def see_evaluations(hooks: Attachment, seen: Callable[[], None]) -> None:
    """Calls `seen()` when a loss is taken without gradient."""
    losses = LossFunctions(hooks.owner, lambda *_: seen())
    hooks.add(losses)
    losses.put_on()


def load_in_this_process(hooks: Attachment) -> None:
    """Data loaders read their data in this process: workers would be processes of their own."""
    when_imported("torch.utils.data.dataloader", partial(_wrap_loaders, hooks))


def _wrap_loaders(hooks: Attachment) -> None:
    wrap(hooks, "torch.utils.data.dataloader.DataLoader", "__init__", _made_without_workers)


# Arguments of a loader that are about its workers.
_ABOUT_WORKERS = (
    *("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout"),
    *("worker_init_fn", "in_order"),
)
_FIFTH = 5  # `num_workers` among the arguments by position


def _made_without_workers(original: Any, loader: Any, *args: Any, **named: Any) -> Any:
    if len(args) > _FIFTH:
        args = (*args[:_FIFTH], 0, *args[_FIFTH + 1 :])
    else:
        named["num_workers"] = 0
    for name in _ABOUT_WORKERS:
        named.pop(name, None)
    return original(loader, *args, **named)
