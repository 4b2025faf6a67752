"""Files and copies of a hooked model, as they would be without our hooks.

Hooks of modules are entries of ordered dicts that belong to the module, so whoever pickles or
copies a model pickles or copies its hooks. Python asks `copyreg.dispatch_table` how an object of
a type is taken apart: `pickle` in C and in Python, `copy`, `torch.save`, `multiprocessing`,
`joblib` and `cloudpickle` all do. While a hook of ours is on any module, ordered dicts are taken
apart there as always, except that our entries are left out. Nothing else is changed, so a file is
the same byte for byte.

Not reached is a pickler with a `dispatch_table` of its own that was copied before. It gets what
`Hook.__reduce__` says: a function that does nothing.
"""

from __future__ import annotations

import copyreg
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ClassVar, Final

from nethook.hooks.hook import is_ours

Reducer = Callable[[Any], Any]

_table: Final[dict[type, Reducer]] = copyreg.dispatch_table


class WithoutOurHooks:
    """Takes ordered dicts apart without our hooks, in the way that was in use before."""

    __slots__ = ("before",)

    def __init__(self, before: Reducer | None = None) -> None:
        self.before = before

    def __call__(self, entries: OrderedDict[Any, Any]) -> Any:
        """What `entries.__reduce__()` returns for a dict in which our entries never were."""
        # A list at once: another thread may put hooks on or take them off meanwhile.
        items = list(entries.items())
        theirs = OrderedDict((key, entry) for key, entry in items if not is_ours(entry))
        if len(theirs) != len(items):
            vars(theirs).update(vars(entries))
            entries = theirs
        return entries.__reduce__() if self.before is None else self.before(entries)


class LeftOut:
    """A handle: our hooks are left out of files and copies until it is removed."""

    __slots__ = ()

    # What is registered with Python is the same for the whole process, and so are these.
    _on: ClassVar[set[int]] = set()  # the handles, by id
    # The one that is registered, or none. A list, for every attribute that is set on a class makes
    # Python forget what it knows of the class, and a scope may be opened in every step.
    _registered: ClassVar[list[WithoutOurHooks]] = []
    # The collector may end an attachment in the midst of these lines: a lock to enter twice.
    _lock: ClassVar = threading.RLock()

    def __init__(self) -> None:
        self._on.add(id(self))
        self._settle()

    def remove(self) -> None:
        """Ends it; the last one puts back what was registered before."""
        self._on.discard(id(self))
        self._settle()

    @classmethod
    def _settle(cls) -> None:
        """Registers what takes ordered dicts apart, or takes it off, as there are handles."""
        with cls._lock:
            registered = cls._registered
            if cls._on and not registered:
                ours = WithoutOurHooks()
                ours.before = _table.get(OrderedDict)
                registered.append(ours)
                _table[OrderedDict] = ours
            elif registered and not cls._on:
                ours = registered.pop()
                before = ours.before
                # Somebody who registered a function meanwhile keeps it, also if it calls ours.
                if _table.get(OrderedDict) is ours:
                    if before is None:
                        del _table[OrderedDict]
                    else:
                        _table[OrderedDict] = before
