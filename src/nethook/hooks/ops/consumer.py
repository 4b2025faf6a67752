"""Operations inside a forward: what their addresses stand for, and what a consumer is told.

`watch` shows how a consumer is written and attached.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from torch import nn

from nethook.addresses.op_addresses import op_address, op_prefix
from nethook.addresses.tree import Tree
from nethook.torch_private import forward_hooks_of

# One count for the process: modules of several models may run inside each other, and consumers are
# told in the order in which they were attached.
_numbers = itertools.count()

# In evaluation these run as one fused kernel, unless a mode is on.
_CAN_BE_FUSED = (nn.TransformerEncoder, nn.TransformerEncoderLayer, nn.MultiheadAttention)

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Place:
    """A module, as a place where operations run."""

    __slots__ = (
        "address", "can_be_fused", "is_root", "names", "ops", "order", "prefix", "ref",
    )  # fmt: skip

    def __init__(
        self, order: int, address: str, others: tuple[str, ...], module: weakref.ref[nn.Module]
    ) -> None:
        self.order = order  # its place in the model
        self.is_root = order == 0
        self.address = address
        self.names = (address, *others)
        self.prefix = op_prefix(address)
        self.ref = module
        self.can_be_fused = isinstance(module(), _CAN_BE_FUSED)
        # By name of the operation and then by number; None where the consumer did not want it.
        self.ops: dict[str, list[Op | None]] = {}

    @property
    def module(self) -> nn.Module | None:
        """The module itself; None if it is gone."""
        return self.ref()

    def __repr__(self) -> str:
        return f"Place({self.address!r})"


class Op:
    """One operation of a module: what stands at `module/name#k`, in whatever call of it."""

    __slots__ = ("data", "k", "name", "place")

    def __init__(self, place: Place, name: str, k: int) -> None:
        self.place = place
        self.name = name
        self.k = k
        self.data: Any = None  # for the consumer, to keep what belongs to this address

    @property
    def address(self) -> str:
        """Its address, `module/name#k`."""
        return f"{self.place.prefix}{self.name}#{self.k}"

    @property
    def names(self) -> tuple[str, ...]:
        """Its address by every name of the module."""
        return tuple(op_address(name, self.name, self.k) for name in self.place.names)

    def __repr__(self) -> str:
        return f"Op({self.address!r})"


class ModuleCall:
    """One call of a module that is under way, and how many operations of each name it has had."""

    __slots__ = ("counts", "hidden", "ops", "place")

    def __init__(self, place: Place, counts: dict[str, int] | None = None) -> None:
        self.place = place
        self.ops = place.ops
        self.counts: dict[str, int] = {} if counts is None else counts
        self.hidden = False  # the mode is out while it runs: see `watch._may_be_fused`

    def __repr__(self) -> str:
        return f"ModuleCall({self.place.address!r})"


class OpConsumer:
    """What is told about operations. Override what is needed; the rest does nothing.

    A consumer is called inside the forward: what it raises leaves the forward. Torch calls that it
    makes in `before` and `after` are not seen as operations. Inside a backward pass it is told of
    what a checkpoint computes again, under the same addresses: ask `recomputing()`.
    """

    # Of a consumer that wants every operation and keeps nothing in `op.data`, what was met once is
    # known in its next scope, too.
    shares_ops = False

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

    def instead(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        compute: Callable[..., Any],
    ) -> Any:  # fmt: skip
        """In the place of an operation: its result. `compute(*args, **kwargs)` runs it.

        Between `before` and `after`. Of an operation in place the result is written into what the
        operation writes to.
        """
        return compute(*args, **kwargs)

    def failed(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        error: BaseException,
    ) -> None:  # fmt: skip
        """After an operation has raised, for those that were told before it ran."""

    def entered(self, call: ModuleCall, args: tuple[Any, ...]) -> None:
        """When the call of a module begins."""

    def left(self, call: ModuleCall, output: Any) -> None:
        """When it has returned, with what; None where it raised. Not after a `BaseException`."""


class ModelPlaces:
    """What was met of one model: its places by id, with their operations."""

    __slots__ = ("_names", "lock", "places")

    def __init__(self, names: tuple[Any, ...]) -> None:
        self._names = names
        self.places: dict[int, Place] = {}
        self.lock = threading.Lock()  # a module may run in several threads

    def is_of(self, names: tuple[Any, ...]) -> bool:
        """Whether the model is still the same, with the same names."""
        return self._names == names


# By id of the model: scopes are short, and each would have to learn every operation again. Only
# addresses are kept; they go with the model.
_places_of_models: dict[int, tuple[weakref.ref[nn.Module], ModelPlaces]] = {}


def _places_of(model: nn.Module, names: tuple[Any, ...]) -> ModelPlaces:
    key = id(model)
    entry = _places_of_models.get(key)
    if entry is None or entry[0]() is not model or not entry[1].is_of(names):
        entry = (weakref.ref(model, lambda _: _places_of_models.pop(key, None)), ModelPlaces(names))
        _places_of_models[key] = entry
    return entry[1]


class Met:
    """Which modules have run in a scope, and what operations they had: for messages."""

    __slots__ = ("_counts", "_fused", "_names")

    def __init__(self) -> None:
        # By order of the module: how many operations of each name one call has had at most.
        self._counts: dict[int, dict[str, int]] = {}
        self._names: dict[int, tuple[str, ...]] = {}
        self._fused: set[int] = set()

    def note(self, place: Place, counts: dict[str, int]) -> None:
        """Notes which operations a call has had."""
        had = self._counts.get(place.order)
        if had is None:
            self._counts[place.order] = counts
            self._names[place.order] = place.names
        elif had != counts:
            for name, count in counts.items():
                had[name] = max(count, had.get(name, 0))

    def note_fused(self, place: Place) -> None:
        """Notes that a module may have run as one fused kernel."""
        self._fused.add(place.order)

    def counts(self, module: str) -> dict[str, int] | None:
        """The operations that a module had, by any of its names; None if it has not run."""
        order = next((order for order, names in self._names.items() if module in names), None)
        return None if order is None else self._counts[order]

    def was_fused(self, module: str) -> bool:
        """Whether a module may have run as one fused kernel."""
        return any(module in self._names.get(order, ()) for order in self._fused)


class OpWatcher:
    """What one consumer watches: the modules of a model, each with what is known of it."""

    __slots__ = (
        "_addresses", "_lock", "_modules", "_others", "_tables", "after", "alive", "by_id",
        "consumer", "met", "number", "off", "only_after", "suspended", "told",
    )  # fmt: skip

    def __init__(self, tree: Tree, consumer: OpConsumer) -> None:
        self.consumer = consumer
        self.alive = True
        self.suspended = 0
        self.off = False  # not alive, or suspended
        self.number = next(_numbers)  # what was attached earlier has a lower one
        self._addresses = tree.addresses
        self._others = tree.other_names()
        # By id, which is quick, with the module itself to be sure that it is the same one.
        self._modules = {
            id(module): (order, weakref.ref(module)) for order, module in enumerate(tree.modules)
        }
        names = (self._addresses, self._others, list(self._modules))
        shared = _places_of(tree.root, names) if consumer.shares_ops else ModelPlaces(names)
        self.by_id = shared.places
        self._lock = shared.lock
        self.met = Met()
        self._tables: dict[int, int] | None = None
        # What the consumer does not override need not be called.
        cls, base = type(consumer), OpConsumer
        self.told = Told(
            wants=cls.wants is not base.wants,
            before=cls.before is not base.before,
            after=cls.after is not base.after,
            instead=cls.instead is not base.instead,
            failed=cls.failed is not base.failed,
            entered=cls.entered is not base.entered,
            left=cls.left is not base.left,
        )
        self.after = consumer.after
        told = self.told
        self.only_after = told.after and not (told.before or told.instead or told.failed)

    def end(self) -> None:
        """Sees nothing from now on."""
        self.alive = False
        self.settle()
        if not self.consumer.shares_ops:
            for place in self.by_id.values():
                place.ops.clear()  # operations and their places hold each other, and `data`

    def settle(self) -> None:
        """Is off where it is not alive, or suspended."""
        self.off = not self.alive or bool(self.suspended)

    def place_of(self, module: nn.Module) -> Place | None:
        """The place of a module of this model, or of a replica of one; None for any other."""
        place = self.by_id.get(id(module))
        if place is not None and place.ref() is module:
            return place
        entry = self._modules.get(id(module))
        if entry is None or entry[1]() is not module:
            entry = self._original(module)
            if entry is None:
                return None
        order, ref = entry
        original = ref()
        with self._lock:
            place = self.by_id.get(id(original))
            if place is None or place.ref() is not original:
                others = self._others.get(order, ())
                place = Place(order, self._addresses[order], others, ref)
                self.by_id[id(original)] = place
            return place

    def _original(self, replica: nn.Module) -> tuple[int, weakref.ref[nn.Module]] | None:
        """What a replica was made of (nn.DataParallel): it shares the tables of its original."""
        if self._tables is None:
            live = [(key, ref()) for key, (_, ref) in self._modules.items()]
            self._tables = {
                id(forward_hooks_of(module)): key for key, module in live if module is not None
            }
        entry = self._modules.get(self._tables.get(id(forward_hooks_of(replica)), 0))
        original = None if entry is None else entry[1]()
        same = original is not None and forward_hooks_of(original) is forward_hooks_of(replica)
        return entry if same else None

    def has_any(self, modules: set[int]) -> bool:
        """Whether the model has any of the modules with these ids."""
        return not self._modules.keys().isdisjoint(modules)

    def meet(self, place: Place, name: str, k: int) -> Op | None:
        """An operation that was not known: asks the consumer once whether it is wanted."""
        with self._lock:
            ops = place.ops.get(name)
            if ops is None:
                ops = place.ops[name] = []
            while len(ops) <= k:
                op = Op(place, name, len(ops))
                ops.append(op if not self.told.wants or self.consumer.wants(op) else None)
            return ops[k]


class Told:
    """What a consumer wants to be told."""

    __slots__ = ("after", "before", "entered", "failed", "instead", "left", "wants")

    def __init__(
        self, *, wants: bool, before: bool, instead: bool, after: bool, failed: bool,
        entered: bool, left: bool,
    ) -> None:  # fmt: skip
        self.wants = wants
        self.before = before
        self.instead = instead
        self.after = after
        self.failed = failed
        self.entered = entered
        self.left = left
