"""What every hook of nethook is, and whose it is."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any, Final, Protocol


class Handle(Protocol):
    """What taking a hook off needs: torch's own handles, and those of this room."""

    def remove(self) -> None:
        """Takes the hook off; a second call does nothing."""


class Owner:
    """Whose hooks these are, and whether they are still meant to be there."""

    __slots__ = (
        "__weakref__",
        "alive",
        "earlier_threads",
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
        self.earlier_threads: frozenset[int | None] = frozenset()  # from before the scope
        self.roots: tuple[weakref.ref[Any], ...] = ()  # the models themselves
        self.alive = True  # False once its attachment was removed
        # Hooks that a hook put on leaf tensors while it ran; told when the attachment is removed.
        # A hook cannot hold its attachment: then that would live as long as the model.
        self.late: dict[int, Handle] = {}

    def __repr__(self) -> str:
        return f"Owner({self.name!r}, alive={self.alive})"


class Hook:
    """A callable that nethook registers with torch.

    Subclasses define `__call__`; this class says whose the hook is and where it stands, for
    `audit`.
    """

    __slots__ = ("address", "owner")

    # torch warns of the hooks that are missing from the file of a tensor, unless they say this.
    __torch_unserializable__ = True

    # What torch calls it with depends on where it is registered.
    __call__: Callable[..., Any]

    def __init__(self, owner: Owner, address: str) -> None:
        self.owner = owner
        self.address = address

    def __reduce__(self) -> tuple[Any, ...]:
        """A function of the standard library that does nothing, for copies and files.

        Files and copies of a model do not come here, see `saving`. It is for picklers that
        `saving` does not reach: what they write holds nothing of nethook.
        """
        return getattr, (contextlib.nullcontext(), "__exit__")

    def __repr__(self) -> str:
        return f"<{self.owner.name} at {self.address!r}>"


class _Flag(int):
    """A number that a pickle holds as True."""

    def __reduce__(self) -> tuple[Any, ...]:
        return bool, (1,)


OUR_FLAG: Final = _Flag(True)
"""What says how a hook of ours is called, where torch has True for the hooks of others."""


def is_ours(entry: object) -> bool:
    """Whether an entry of one of torch's dicts of hooks or of their flags is nethook's."""
    return isinstance(entry, Hook) or entry is OUR_FLAG
