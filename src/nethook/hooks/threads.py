"""Whose calls a scope sees: those of the thread, and of the context, that opened it.

A model may be called by several threads at once: a server with requests, an evaluation beside the
training. A hook of torch is called for all of them, so each hook asks `elsewhere` first.

- A `with` block sees the calls of its context (`contextvars`): of the thread that entered it, of an
  asyncio task that entered it and of no other, and of what `asyncio.to_thread` runs for it. So it
  does those of threads that the model itself starts in its forward.
- What is attached without a block sees the calls of the thread that attached it.
- `threads="all"` sees every call.

In a process that was forked nothing is seen: what it would record nobody can read.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextvars import ContextVar
from threading import get_ident
from typing import Final, Literal

from torch import nn

from nethook.errors import OptionError
from nethook.hooks.hook import Owner
from nethook.hooks.stack import calls_under_way
from nethook.torch_private import REPLICA, backward_id

Threads = Literal["own", "all"]


CONTEXT: Final = 0
"""As the thread of an owner: the contexts in which it is open."""
NOWHERE: Final = -1
"""As the thread of an owner: none."""

# The scopes that are open in a context. Global as every `ContextVar` is: hooks are shared by all
# threads, and this is how one finds out whether the call under way is its own.
_open: ContextVar[tuple[Owner, ...]] = ContextVar("nethook scopes", default=())
open_here: Final = _open.get
"""`owner in open_here()` answers for nearly every call that it is not `elsewhere`."""
# Those that stay open without a block, so that a forked child can switch them off: it inherits
# them, and nobody in it closes them.
_staying: weakref.WeakSet[Owner] = weakref.WeakSet()


def check_threads(threads: str) -> None:
    """Refuses what is neither of the two."""
    if threads not in ("own", "all"):
        raise OptionError(
            f'`threads` must be "own" or "all"; got {threads!r}. With "own" a scope sees the calls '
            'of the thread that opens it, with "all" those of every thread.'
        )


def enter(owner: Owner, threads: Threads, *models: nn.Module) -> None:
    """From now on a scope sees the calls of this context, or all."""
    _opened(owner, *models)
    if threads == "own":
        owner.thread = CONTEXT
        _open.set((*_open.get(), owner))


def _opened(owner: Owner, *models: nn.Module) -> None:
    here = owner.opener = get_ident()
    owner.roots = tuple([weakref.ref(model) for model in models])
    alone = threading.active_count() == 1
    owner.earlier_threads = frozenset(
        (here,) if alone else [thread.ident for thread in threading.enumerate()]
    )


def leave(owner: Owner) -> None:
    """The scope has ended. It may be called in any context."""
    if owner.thread == CONTEXT:
        _open.set(tuple([other for other in _open.get() if other is not owner]))


def stay(owner: Owner, threads: Threads, *models: nn.Module) -> None:
    """From now on what was attached sees the calls of this thread, or all, until it is removed."""
    _staying.add(owner)
    _opened(owner, *models)
    if threads == "own":
        owner.thread = owner.opener


def elsewhere(owner: Owner, module: nn.Module | None = None) -> bool:
    """Whether the call that is under way is none of the scope's; that is counted."""
    thread = owner.thread
    if thread is None:
        return False
    if thread == CONTEXT:
        if owner in _open.get():
            return False
    elif thread == get_ident():
        return False
    if thread != NOWHERE:
        # nn.DataParallel runs copies of a model in threads of its own, for the one that called it.
        if module is not None and module.__dict__.get(REPLICA):
            return False
        # A device's backward pass runs in a thread of torch's, and with it what a checkpoint
        # computes again.
        if backward_id() != -1 and isinstance(threading.current_thread(), threading._DummyThread):
            return False
        if _is_helper(owner):
            return False
    owner.others += 1
    return True


def _is_helper(owner: Owner) -> bool:
    """Whether this thread runs a part of the model for the thread that opened the scope.

    A model may start threads in its forward. They call its parts, and not the model itself, while
    the thread that opened the scope is inside a call of the model. Both are read off their stacks:
    this is asked only where another thread calls, and costs nothing where none does.
    """
    if get_ident() in owner.earlier_threads:
        return False
    roots = [model for ref in owner.roots if (model := ref()) is not None]
    return calls_under_way(roots, owner.opener) > 0 and calls_under_way(roots) == 0


def taken_off(told: tuple[object, ...]) -> bool:
    """Whether a hook that asked for keyword arguments is called without them.

    Torch calls the hooks that were there when a forward began; how to call them it looks up when it
    comes to them. One that another thread has taken off meanwhile is called as if it had not asked.
    """
    return len(told) != 2


def others_ran(owner: Owner, option: str) -> str:
    """What to add to a message where a scope saw nothing: "" if no other thread ran the model."""
    if not owner.others:
        return ""
    return (
        " Another thread has called the model meanwhile, and this scope sees the calls of its own "
        f'thread: open it in the thread that runs the model, or with {option}(…, threads="all").'
    )


def _off_in_child() -> None:
    _open.set(())  # of the thread that forked, the only one that there is in the child
    for owner in list(_staying):
        owner.thread = NOWHERE


# Looked up when it is called, so that a test can switch it off.
os.register_at_fork(after_in_child=lambda: _off_in_child())  # noqa: PLW0108
