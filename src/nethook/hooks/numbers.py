"""Numbers for our hooks that are nobody else's.

torch numbers the hooks of a process one after the other and keeps each under its number, and a
pickled model with hooks of its user's contains those numbers. If ours were counted, the same
script would write another file. So they are numbered by a counter of our own, far from torch's.
"""

from __future__ import annotations

import itertools
from typing import Final

from torch.utils.hooks import RemovableHandle

next_number: Final = itertools.count(1 << 48).__next__
"""`next_number()` is a number that no other hook has. Not a function: a trace asks very often."""


def renumbered(handle: RemovableHandle) -> RemovableHandle:
    """Gives a hook that was registered just now a number of ours, and torch its number back."""
    number, handle.id = handle.id, next_number()
    for reference in (handle.hooks_dict_ref, *handle.extra_dict_ref):
        entries = reference()
        if entries is not None and number in entries:
            entries[handle.id] = entries.pop(number)  # it was the last, and still is
    # Another thread may have registered a hook since; then torch goes on behind that one.
    if RemovableHandle.next_id == number + 1:
        RemovableHandle.next_id = number
    return handle
