"""The order of a module's hooks, those included that rest.

A hook that rests is not in torch's dict: a module whose dicts are empty is called faster. Its place
among the others is kept here, for all hooks that rest in one dict together, so that they may come
back in any order. torch's dict itself cannot keep it: it is copied and pickled with the module.

Hooks that others registered meanwhile stand behind those that rest, as they would if nobody had
rested; one that was prepended stands before them, if a hook from before is still on to tell.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

_Hooks = OrderedDict[int, Any]
_Reference = Callable[[], _Hooks | None]  # weak: a hook of somebody else's may hold the module


class Order:
    """The keys of one dict in order, and which of them rest."""

    __slots__ = ("_dict_id", "_keys", "_reference", "_resting")

    def __init__(self, reference: _Reference, hooks: _Hooks) -> None:
        self._dict_id = id(hooks)
        self._reference = reference
        self._keys = list(hooks)
        self._resting: set[int] = set()

    def put_back(self, hooks: _Hooks, key: int, hook: Any) -> None:
        """Puts a hook into `hooks` again, at its place."""
        if not hooks:
            hooks[key] = hook  # mostly nobody else has hooks there
        else:
            keys = self._update(hooks)
            hooks[key] = hook
            for behind in keys[keys.index(key) + 1 :]:
                if behind in hooks:
                    hooks.move_to_end(behind)  # in one go: no interrupt loses a hook of others
        self.forget(key)

    def forget(self, key: int) -> None:
        """A hook rests no longer: it came back, or never will."""
        self._resting.discard(key)
        if not self._resting and _orders.get(self._dict_id) is self:
            del _orders[self._dict_id]

    def _update(self, hooks: _Hooks) -> list[int]:
        """Takes in what was registered, removed and moved by others."""
        kept = [key for key in self._keys if key in hooks or key in self._resting]
        self._keys = keys = merged(kept, list(hooks))
        return keys


# By the id of the dict; only while one of its hooks rests. Global, because several attachments may
# have hooks that rest in the same dict, and know nothing of each other.
_orders: dict[int, Order] = {}


def note_rest(reference: _Reference, hooks: _Hooks, key: int) -> Order:
    """Remembers the place of a hook that is about to be taken out of `hooks` for a while."""
    order = _orders.get(id(hooks))
    if order is None or order._reference() is not hooks:
        order = _orders[id(hooks)] = Order(reference, hooks)
    else:
        order._update(hooks)
    order._resting.add(key)
    return order


def merged(before: list[int], now: list[int]) -> list[int]:
    """The keys of `before` that are missing put back into `now`, each beside its old neighbour."""
    keys = list(now)
    for position, key in enumerate(before):
        if key not in keys:
            # Behind the one that stood before it; the first, before the one that stood behind it.
            follower = next((other for other in before if other in now), None)
            if position:
                keys.insert(keys.index(before[position - 1]) + 1, key)
            else:
                keys.insert(0 if follower is None else keys.index(follower), key)
    return keys
