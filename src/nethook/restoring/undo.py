"""Putting things back, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TypeAlias

Undo: TypeAlias = Callable[[], None]
"""Puts one thing back. It may be called twice: an interrupt may come in the middle of it."""


class undone(AbstractContextManager[None]):  # noqa: N801  it is used like a function
    """A block after which everything in a list has been put back, the last one first.

    What fails does not keep the others from being put back; the first error is raised at the end.
    `KeyboardInterrupt` waits until all is done.
    """

    __slots__ = ("_failed", "_undo")

    def __init__(self, undo: list[Undo]) -> None:
        self._undo = undo
        self._failed: BaseException | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._put_back()
        finally:
            self._put_back()  # an interrupt may have come between two lines; else nothing is left
        if self._failed is not None:
            raise self._failed

    def _put_back(self) -> None:
        while self._undo:
            try:
                while self._undo:
                    self._undo[-1]()
                    self._undo.pop()
            except KeyboardInterrupt as interrupt:  # this one once more
                self._failed = interrupt
            except BaseException as error:
                self._undo.pop()
                self._failed = self._failed or error
