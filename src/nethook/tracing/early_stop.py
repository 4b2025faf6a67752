"""Where a forward may stop: once every site that was asked for has been seen.

Some sites never run (an unused head, a projection that is used through its weight). Waiting for
them would mean never to stop, so a forward that ran to its end teaches which sites do run and in
which order; the next one of the same model and the same sites stops at the last of them. As soon
as the order differs, that lesson is void: the forward waits for every site and teaches anew.
"""

from __future__ import annotations

import weakref
from typing import NoReturn

from torch import nn

Sites = frozenset[str]


class Stopped(BaseException):
    """Ends a forward early. The scope that asked for it swallows it.

    Not an `Exception`: a model that catches those from its children must not catch this.
    """


class ForwardOrders:
    """What earlier forwards taught, by model and sites asked; forgotten with the model."""

    def __init__(self) -> None:
        # By id and not by the model: a module class may define an equality of its own.
        self._learnt: dict[int, tuple[weakref.ref[nn.Module], dict[Sites, tuple[str, ...]]]] = {}

    def get(self, model: nn.Module, sites: Sites) -> tuple[str, ...] | None:
        """The order in which these sites ran in a forward that ended without all of them."""
        entry = self._learnt.get(id(model))
        return entry[1].get(sites) if entry is not None and entry[0]() is model else None

    def put(self, model: nn.Module, sites: Sites, order: tuple[str, ...]) -> None:
        """Keeps the order of a forward that ran to its end."""
        key = id(model)
        entry = self._learnt.get(key)
        if entry is None or entry[0]() is not model:
            entry = (weakref.ref(model, lambda _: self._learnt.pop(key, None)), {})
            self._learnt[key] = entry
        entry[1][sites] = order


# A cache that lives as long as the models do: scopes are short, and each must know what the
# ones before it have learnt.
_orders = ForwardOrders()


class StopPlan:
    """Decides, for one scope, when the forward has gone far enough."""

    __slots__ = ("_asked", "_learnt", "_model", "_most", "_seen", "error", "stopped_at")

    def __init__(self, model: nn.Module, asked: Sites, *, open_ended: bool = False) -> None:
        self._model = weakref.ref(model)
        self._asked = asked
        # Of a pattern for operations only a whole forward tells how many sites it means.
        self._most = None if open_ended else len(asked)
        self._learnt = _orders.get(model, asked)
        self._seen: dict[str, None] = {}
        self.stopped_at: str | None = None
        self.error = Stopped()  # each scope swallows only its own

    def saw(self, address: str) -> None:
        """Notes that a site has run, and ends the forward if it was the last one."""
        if address in self._seen:
            return
        position = len(self._seen)
        self._seen[address] = None
        if len(self._seen) == self._most:
            self._stop(address)
        if self._learnt is not None:
            if position < len(self._learnt) and self._learnt[position] == address:
                if position + 1 == len(self._learnt):
                    self._stop(address)
            else:
                self._learnt = None

    def _stop(self, address: str) -> NoReturn:
        self.stopped_at = address
        raise self.error

    def finished(self, *, whole: bool) -> None:
        """A forward ended without being stopped; if it was whole, it teaches what there is."""
        model = self._model()
        if whole and model is not None and self._seen:
            _orders.put(model, self._asked, tuple(self._seen))
        self._seen.clear()
