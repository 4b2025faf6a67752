"""What is changed where: the arguments of `edit`, read and checked against a model.

    outputs={"fc1": edits.scale(0.5), nn.ReLU: [fn, edits.zero(calls=0)], "lstm": {"[0]": fn}}

A key is a pattern; a value is an edit, a list of edits that apply in order, or a mapping from a
path inside the value to either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any, Literal, TypeAlias

import torch

from nethook.addresses.nested import canonical, get, replace, tensors
from nethook.addresses.paths import Path, parse_path, show_path
from nethook.editing.calling import (
    Apply,
    call_form,
    call_unseen,
    not_in_place,
    takes_value_alone,
    wrote_in_place,
)
from nethook.editing.catalogue import Edit, Limit, only, patch
from nethook.editing.limits import Limits
from nethook.errors import EditError
from nethook.torch_private import backward_id, dispatch_modes, function_modes, version_of

Quantity: TypeAlias = Literal[
    "outputs", "inputs", "grads", "input_grads", "param_grads", "params", "answers", "calls",
    "nodes",
]  # fmt: skip
OneEdit: TypeAlias = Callable[..., Any]


class Entry:
    """One edit under one pattern: what it does, and how often it did."""

    __slots__ = (
        "_is_simple",
        "_with_grad",
        "apply",
        "edit",
        "fired",
        "limit",
        "part",
        "path",
        "pattern",
        "quantity",
        "seen",
        "sites",
    )  # fmt: skip

    def __init__(self, quantity: Quantity, pattern: Any, path: Path, edit: OneEdit) -> None:
        self.quantity = quantity
        self.pattern = pattern
        self.path = path
        self.edit = edit
        self.limit: Limit = None
        self.part: Limits | None = None  # which part of a value it changes; None: all of it
        self.apply: Apply | None = None  # of a function of the user's
        if isinstance(edit, Edit):
            self.limit = edit.calls
            if any(limit is not None for limit in (edit.rows, edit.positions, edit.phase)):
                self.part = _limits(quantity, edit)
            if isinstance(edit, only):
                self.apply = self.form(edit.function)
            # Whether it is called with the value alone.
            self._is_simple = self.part is None and not isinstance(edit, patch | only)
        else:
            self.apply = self.form(edit)
            self._is_simple = takes_value_alone(edit)
        self.sites: list[str] = []
        self.seen = 0  # how often a value of its sites was seen
        self.fired = 0  # how often it was applied
        self._with_grad: bool | None = None

    def note_tensor(self, *, requires_grad: bool) -> None:
        """A tensor was seen whose gradient this entry would change."""
        self._with_grad = self._with_grad or requires_grad

    @property
    def is_without_grad(self) -> bool:
        """Whether tensors were seen, and none of them required a gradient."""
        return self._with_grad is False

    def form(self, function: OneEdit) -> Apply:
        """How a function of the user's is called with a value and a site."""
        return call_form(function, self)

    @property
    def what(self) -> str:
        """The entry as it was written, for messages."""
        inside = f"[{show_path(self.path)!r}]" if self.path else ""
        return f"{self.quantity}[{show_pattern(self.pattern)}]{inside}"

    def on(self, value: Any, site: str, call: int) -> Any:
        """The value with this edit applied at its path; the same object where nothing changed."""
        if not self.path:
            return self.change(value, site, call)
        try:
            old = get(value, self.path)
        except LookupError as error:
            raise self.no_such_part(site, error) from None
        new = self.change(old, site, call)
        return value if new is old else replace(value, self.path, new)

    def means(self, value: Any, path: Path, site: str) -> bool:
        """Whether the tensor at `path` in a value is one that this entry is meant for."""
        try:
            return not self.path or canonical(value, self.path) == path
        except LookupError as error:
            raise self.no_such_part(site, error) from None

    def no_such_part(self, site: str, error: LookupError) -> EditError:
        """The error for a path that leads nowhere."""
        return EditError(f"the edit at {self.what} found no such part at {site!r}: {error}")

    def change(self, value: Any, site: str, call: int) -> Any:
        """The edit applied to a value; the same object where nothing changed."""
        # Checkpointing runs a forward a second time inside backward. The edit must apply again, or
        # the two passes would differ; but it is the same call, and is counted once.
        recomputed = self.is_recomputed(site)
        if not recomputed:
            self.seen += 1
        if self.limit is not None and not applies(self.limit, call):
            return value
        if self.part is not None:
            return call_unseen(self._changed_part, value, site, call)
        if not recomputed:
            self.fired += 1
        try:
            return self._changed(value, site, call)
        except EditError as error:
            if repr(site) in str(error):
                raise
            raise EditError(f"at {site!r}: {error}") from None

    def _changed(self, value: Any, site: str, call: int) -> Any:
        if (
            self._is_simple
            and type(value) is torch.Tensor
            and not function_modes()
            and not dispatch_modes()
        ):
            # Nearly always. No mode sees it, so no operation is traced either.
            before = -1 if value.is_inference() else version_of(value)
            new = self.edit(value)
            if new is None and not value.is_inference() and version_of(value) != before:
                raise wrote_in_place(site)
        else:
            new = call_unseen(self._applied, value, site, call)
        return value if new is None else new

    def is_recomputed(self, site: str) -> bool:
        """Whether a checkpoint runs this call again; an error where the edit cannot be repeated."""
        if backward_id() == -1 or self.quantity not in ("outputs", "inputs", "calls", "answers"):
            return False
        by_tokens = self.part is not None and self.part.by_tokens
        if self.limit is not None or by_tokens:
            positions = self.part is not None and self.part.positions is not None
            limit = "positions=" if positions else "phase="
            limit = limit if self.limit is None else f"calls={self.limit!r}"
            which = "token" if self.limit is None else "call"
            raise EditError(
                f"the edit at {self.what} is limited by {limit}, and {site!r} runs "
                "under activation checkpointing, where a forward is computed again in backward: "
                f"which {which} that is cannot be told. Leave {limit.partition('=')[0]}= out."
            )
        return True

    def _changed_part(self, value: Any, site: str, call: int) -> Any:
        """The value with this edit applied to a part of it; it fires where there is such a part."""
        assert self.part is not None
        self._check_is_tensor(value, site)
        part = self.part.part_of(value, site)
        if part is None:
            return value
        if backward_id() == -1 or self.quantity.endswith("grads"):
            self.fired += 1
        return mixed(part, self._applied(value, site, call), value, self.what, site)

    def _applied(self, value: Any, site: str, call: int) -> Any:
        if self.apply is not None:
            return not_in_place(self.apply, value, site)
        self._check_is_tensor(value, site)
        return self.edit(value, call) if isinstance(self.edit, patch) else self.edit(value)

    def _check_is_tensor(self, value: Any, site: str) -> None:
        if not isinstance(value, torch.Tensor):
            paths = ", ".join(repr(show_path(path)) for path, _ in tensors(value))
            name = type(self.edit).__name__
            if not paths:
                raise EditError(
                    f"{name} at {self.what} needs a tensor, but {site!r} returned a "
                    f"{type(value).__name__}, in which no tensor has an address. Write a function "
                    f"that takes the object and returns another: {{{self.pattern!r}: function}}."
                )
            raise EditError(
                f"{name} at {self.what} needs a tensor, but {site!r} returned a "
                f"{type(value).__name__} with tensors at: {paths}. Name one of them: "
                f"{{{self.pattern!r}: {{'[0]': edits.{name}(...)}}}}."
            )


def firings(entries: Iterable[Entry]) -> dict[str, int]:
    """How often entries were applied, by what was written; one pattern may have several edits."""
    counts: dict[str, int] = {}
    for entry in entries:
        counts[entry.what] = counts.get(entry.what, 0) + entry.fired
    return counts


def show_pattern(pattern: Any) -> str:
    """A pattern in few words: a text as it is typed, anything else by its name."""
    if isinstance(pattern, str | re.Pattern):
        return repr(pattern)
    named = pattern if hasattr(pattern, "__name__") else type(pattern)
    return str(named.__name__)


def mixed(part: torch.Tensor, new: Any, value: torch.Tensor, what: str, site: str) -> torch.Tensor:
    """The new value in its part, and the old one elsewhere."""
    if not isinstance(new, torch.Tensor) or new.shape != value.shape:
        got = tuple(new.shape) if isinstance(new, torch.Tensor) else type(new).__name__
        raise EditError(
            f"the edit at {what} changes a part of the value at {site!r}, and must return a tensor "
            f"of its shape, {tuple(value.shape)}; got {got}."
        )
    return torch.where(part, new.to(value.dtype), value)


def _limits(quantity: Quantity, edit: Edit) -> Limits:
    if quantity in ("params", "param_grads"):
        raise EditError(
            f"rows=, positions=, phase= of {type(edit).__name__} must be left out in {quantity}=: "
            "a parameter has no rows of a batch. Use edits.mask for a part of it."
        )
    if (edit.positions is not None or edit.phase is not None) and quantity.endswith("grads"):
        name = "phase" if edit.positions is None else "positions"
        raise EditError(
            f"{name}= of {type(edit).__name__} must be left out in {quantity}=: in a backward "
            "pass it is not known which tokens a gradient belongs to. Use rows=, or change "
            "outputs=."
        )
    return Limits(edit.rows, edit.positions, edit.phase)


def applies(limit: int | slice, call: int) -> bool:
    """Whether a limit by calls includes a call."""
    if isinstance(limit, int):
        return call == limit
    step = limit.step or 1
    start = limit.start or 0
    return (
        call >= start and (limit.stop is None or call < limit.stop) and (call - start) % step == 0
    )


def read(
    quantity: Quantity, given: Mapping[Any, Any] | None, make: type[Entry] | None = None
) -> list[Entry]:
    """One argument of `edit`, as entries in the order in which they were written."""
    make = make or Entry
    if given is None:
        return []
    if not _is_mapping(given):
        raise EditError(
            f"`{quantity}` must be a mapping from a pattern to an edit; got "
            f"{type(given).__name__}. Write {quantity}={{'fc1': edits.scale(0.5)}}."
        )
    entries: list[Entry] = []
    for pattern, edits in given.items():
        if not isinstance(edits, Edit) and _is_mapping(edits):
            for text, inner in edits.items():
                path = parse_path(text)
                entries += [make(quantity, pattern, path, one) for one in _list(inner, pattern)]
        else:
            entries += [make(quantity, pattern, (), one) for one in _list(edits, pattern)]
    return entries


def _is_mapping(given: Any) -> bool:
    # An abstract class is slow to ask.
    return type(given) is dict or (
        not isinstance(given, FunctionType) and isinstance(given, Mapping)
    )


def _list(edits: Any, pattern: Any) -> list[OneEdit]:
    several = list(edits) if isinstance(edits, (list, tuple)) else [edits]
    for one in several:
        if isinstance(one, type) and issubclass(one, Edit):
            raise EditError(
                "An edit must be a function or one of nethook.edits; got the class "
                f"edits.{one.__name__} at {pattern!r}. Call it: edits.{one.__name__}(...)."
            )
        if not callable(one):
            raise EditError(
                f"An edit must be a function or one of nethook.edits; got {type(one).__name__} at "
                f"{pattern!r}. To put a fixed value there, write edits.replace(value)."
            )
    return several
