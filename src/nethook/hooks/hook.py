"""What every hook of nethook is, whose it is, and what a copy or a file keeps of it."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Handle(Protocol):
    """What taking a hook off needs: torch's own handles, and those of this room."""

    def remove(self) -> None:
        """Takes the hook off; a second call does nothing."""


class Owner:
    """Whose hooks these are, and whether they are still meant to be there."""

    __slots__ = (
        "__weakref__",
        "alive",
        "known",
        "late",
        "name",
        "opener",
        "others",
        "roots",
        "thread",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.thread: int | None = None  # whose calls are seen, see `threads`; None: all
        self.others = 0  # calls that were not
        self.opener = 0  # the thread that opened the scope
        self.known: frozenset[int | None] = frozenset()  # threads from before the scope
        self.roots: tuple[weakref.ref[Any], ...] = ()  # the models themselves
        self.alive = True  # False once its attachment was removed
        # Hooks that a hook put on leaf tensors while it ran; told when the attachment is removed.
        # A hook cannot hold its attachment: then that would live as long as the model.
        self.late: dict[int, Handle] = {}

    def __repr__(self) -> str:
        return f"Owner({self.name!r}, alive={self.alive})"


class Hook:
    """A callable that nethook registers with torch.

    Subclasses define `__call__`; this class says whose the hook is and where it stands (for
    `audit`), and what becomes of it in a copy of the model: a deep copy or a pickle of a model
    holds a standard-library function that does nothing in its place, so that the copy records
    nothing, keeps nothing alive, and loads where nethook is not installed.
    """

    __slots__ = ("address", "owner")

    # What torch calls it with depends on where it is registered.
    __call__: Callable[..., Any]

    def __init__(self, owner: Owner, address: str) -> None:
        self.owner = owner
        self.address = address

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A function that does nothing: it takes any arguments and returns None."""
        return contextlib.nullcontext().__exit__

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make the same function when a file is read, from the standard library alone."""
        return getattr, (contextlib.nullcontext(), "__exit__")

    def __repr__(self) -> str:
        return f"<{self.owner.name} at {self.address!r}>"


def is_placeholder(hook: object) -> bool:
    """Whether `hook` is what a copy or a file keeps of a hook of nethook."""
    return isinstance(getattr(hook, "__self__", None), contextlib.nullcontext)
