"""Operations inside a forward: what their addresses stand for, and what a consumer is told.

`ops` shows how a consumer is written and attached.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from torch import nn

from nethook.addresses.ops import op_address
from nethook.addresses.tree import Site, Tree

_numbers = itertools.count()

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Place:
    """A module, as a place where operations run."""

    __slots__ = ("_module", "address", "counts", "is_root", "known", "names", "order", "type_name")

    def __init__(self, site: Site) -> None:
        self.address = site.address
        self.names = site.names + site.long
        self.order = site.order  # its place in the model
        self.is_root = site.order == 0
        self.type_name = type(site.module).__name__
        self._module = weakref.ref(site.module)
        # By name of the operation and then by number; None where the consumer did not want it.
        self.known: dict[str, list[Op | None]] = {}
        # How many operations of each name one call has had at most; None before it has run.
        self.counts: dict[str, int] | None = None

    def note(self, counts: dict[str, int]) -> None:
        """Notes which operations a call has had."""
        if self.counts is None:
            self.counts = dict(counts)
        elif self.counts != counts:
            for name, count in counts.items():
                self.counts[name] = max(count, self.counts.get(name, 0))

    @property
    def module(self) -> nn.Module | None:
        """The module itself; None if it is gone."""
        return self._module()

    def __repr__(self) -> str:
        return f"Place({self.address!r})"


class Op:
    """One operation of a module: what stands at `module/name#k`, in whatever call of it."""

    __slots__ = ("address", "data", "k", "name", "place")

    def __init__(self, place: Place, name: str, k: int) -> None:
        self.address = op_address(place.address, name, k)
        self.place = place
        self.name = name
        self.k = k
        self.data: Any = None  # for the consumer, to keep what belongs to this address

    @property
    def names(self) -> tuple[str, ...]:
        """Its address by every name of the module."""
        return tuple(op_address(each, self.name, self.k) for each in self.place.names)

    def __repr__(self) -> str:
        return f"Op({self.address!r})"


class ModuleCall:
    """One call of a module that is under way, and how many operations of each name it has had."""

    __slots__ = ("counts", "hidden", "place")

    def __init__(self, place: Place, counts: dict[str, int] | None = None) -> None:
        self.place = place
        self.counts: dict[str, int] = {} if counts is None else counts
        self.hidden = False  # the mode is out while it runs: see `ops`

    def __repr__(self) -> str:
        return f"ModuleCall({self.place.address!r})"


class OpConsumer:
    """What is told about operations. Override what is needed; the rest does nothing.

    A consumer is called inside the forward: what it raises leaves the forward. Torch calls that it
    makes in `before` and `after` are not seen as operations. Inside a backward pass it is told of
    what a checkpoint computes again, under the same addresses: ask `recomputing()`.
    """

    def wants(self, op: Op) -> bool:
        """Whether to be told of this operation; asked once, when it is first met."""
        return True

    def before(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Arguments | None:
        """Before an operation runs; other arguments for it, or None.

        Another tensor in the place of one that the operation writes to is written into that.
        """

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        """After an operation has run; another result, or None.

        The result of `x[i] = y` is given as x. Of an operation in place the result is one of the
        arguments, and another one is written into that.
        """

    def failed(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        error: BaseException,
    ) -> None:  # fmt: skip
        """After an operation has raised, for those that were told before it ran."""

    def entered(self, call: ModuleCall, args: tuple[Any, ...]) -> None:
        """When the call of a module begins."""

    def left(self, call: ModuleCall, output: Any) -> None:
        """When it has returned, with what; None where it raised. Not after a `BaseException`."""


class OpWatcher:
    """What one consumer watches: the modules of a model, by id, each with what is known of it."""

    __slots__ = ("_lock", "_tables", "alive", "consumer", "number", "places", "suspended", "told")

    def __init__(self, tree: Tree, consumer: OpConsumer) -> None:
        self.consumer = consumer
        self.alive = True
        self.suspended = 0
        self.number = next(_numbers)  # what was attached earlier has a lower one
        sites = tree.sites
        self.places = {id(site.module): Place(site) for site in sites}
        # A replica of a module (nn.DataParallel) is another object that shares its tables.
        self._tables = {
            id(site.module._forward_hooks): self.places[id(site.module)] for site in sites
        }
        self._lock = threading.Lock()
        # What the consumer does not override need not be called.
        cls, base = type(consumer), OpConsumer
        self.told = Told(
            before=cls.before is not base.before,
            after=cls.after is not base.after,
            failed=cls.failed is not base.failed,
            entered=cls.entered is not base.entered,
            left=cls.left is not base.left,
        )

    def place_of(self, module: nn.Module) -> Place | None:
        """The place of a module of this model, or of a replica of one; None for any other."""
        place = self.places.get(id(module))
        if place is not None and place.module is module:
            return place
        place = self._tables.get(id(module._forward_hooks))
        return place if place is not None and _same_table(place.module, module) else None

    def meet(self, place: Place, name: str, k: int) -> Op | None:
        """An operation that was not known: asks the consumer once whether it is wanted."""
        with self._lock:  # a module may run in several threads
            known = place.known.setdefault(name, [])
            while len(known) <= k:
                op = Op(place, name, len(known))
                known.append(op if self.consumer.wants(op) else None)
            return known[k]


class Told:
    """What a consumer wants to be told."""

    __slots__ = ("after", "before", "entered", "failed", "left")

    def __init__(
        self, *, before: bool, after: bool, failed: bool, entered: bool, left: bool
    ) -> None:
        self.before = before
        self.after = after
        self.failed = failed
        self.entered = entered
        self.left = left


def _same_table(original: nn.Module | None, replica: nn.Module) -> bool:
    return original is not None and original._forward_hooks is replica._forward_hooks
