"""Answering calls: what takes the place of a module's forward, or of an operation.

answers={"layer3": edits.answer(recorded)}                   # it does not run at all
answers={"layer3": lambda args, kwargs: args[0]}             # nor here: the layer is skipped
answers={"/softmax": fn}     # fn(args, kwargs, compute) computes it otherwise
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from nethook.editing.calling import Apply, call_unseen, parameters_of
from nethook.editing.catalogue import Edit, answer
from nethook.editing.changes import Change
from nethook.editing.entries import Entry, OneEdit, Quantity, applies, mixed, read
from nethook.errors import EditError
from nethook.hooks.ops.mode import seen
from nethook.hooks.threads import elsewhere

Compute = Callable[..., Any]


class AnswerEntry(Entry):
    """One answer under one pattern."""

    __slots__ = ("_takes_compute", "_takes_site")

    def __init__(self, quantity: Quantity, pattern: Any, path: Any, edit: OneEdit) -> None:
        self._takes_compute = self._takes_site = False
        super().__init__(quantity, pattern, path, edit)
        if path:
            raise EditError(
                f"the answer at {self.what} takes the place of a whole call, and has no path. "
                "Answer with a function that returns the whole value."
            )
        if isinstance(edit, Edit) and not isinstance(edit, answer):
            raise EditError(
                f"answers= takes edits.answer(value) or a function fn(args, kwargs, compute); got "
                f"edits.{type(edit).__name__} at {self.what}. To change what was computed, give it "
                "to outputs=."
            )

    def form(self, function: OneEdit) -> Apply:
        """Reads how a function wants to be called: with `compute` or without."""
        required, self._takes_site = parameters_of(function)
        required -= self._takes_site and required > 2
        if required not in (2, 3):
            raise EditError(
                f"The answer at {self.what} must be a function fn(args, kwargs) or fn(args, "
                f"kwargs, compute); got one that requires {required} arguments."
            )
        self._takes_compute = required == 3
        return function

    def answered(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], site: str, call: int, compute: Compute
    ) -> Any:
        """What the call returns."""
        recomputed = self.is_recomputed(site)
        self.seen += not recomputed
        if self.limit is not None and not applies(self.limit, call):
            return compute(*args, **kwargs)
        if self.part is not None:
            return self._answered_part(args, kwargs, site, compute)
        self.fired += not recomputed
        return call_unseen(self._answer, args, kwargs, site, compute)

    def _answer(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], site: str, compute: Compute
    ) -> Any:
        if isinstance(self.edit, answer):
            return self.edit.returned((args, kwargs))
        named = {"site": site} if self._takes_site else {}
        if self._takes_compute:
            return self.edit(args, kwargs, _computes_seen(compute), **named)
        return self.edit(args, kwargs, **named)

    def _answered_part(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], site: str, compute: Compute
    ) -> Any:
        """What the module computes, with a part of it answered."""
        assert self.part is not None
        value = compute(*args, **kwargs)
        self._check_is_tensor(value, site)
        part = self.part.part_of(value, site)
        if part is None:
            return value
        self.fired += not self.is_recomputed(site)
        new = call_unseen(self._answer, args, kwargs, site, compute)
        return call_unseen(mixed, part, new, value, self.what, site)


def _computes_seen(compute: Compute) -> Compute:
    """The computation of the model's own, in the midst of a function of the user's."""

    def computed(*args: Any, **kwargs: Any) -> Any:
        with seen():
            return compute(*args, **kwargs)

    return computed


class Answer(Change):
    """In the place of a forward or an operation. Entries that were written later are outside."""

    __slots__ = ()

    def __call__(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Compute
    ) -> Any:
        """What the call returns."""
        if not self.owner.alive or elsewhere(self.owner, module):
            return run(*args, **kwargs)
        call = self.next_call()
        for entry in self.entries:
            assert isinstance(entry, AnswerEntry)
            run = _bound(entry, self.address, call, run)
        return run(*args, **kwargs)


def _bound(entry: AnswerEntry, site: str, call: int, compute: Compute) -> Compute:
    return lambda *args, **kwargs: entry.answered(args, kwargs, site, call, compute)


def read_answers(given: Mapping[Any, Any] | None) -> list[Entry]:
    """The argument `answers` of `edit`, as entries; a tensor stands for `edits.answer` of it."""
    if isinstance(given, Mapping):
        given = {
            pattern: answer(value) if isinstance(value, torch.Tensor) else value
            for pattern, value in given.items()
        }
    return read("answers", given, AnswerEntry)
