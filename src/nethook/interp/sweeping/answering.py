"""Which calls before a change can be answered from the base run, and why some cannot.

Before the first changed site nothing differs from the base run. So what modules returned there is
still right, unless calling them does more than return a value.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from nethook.addresses.tree import Tree
from nethook.hooks.answering import why_unanswerable
from nethook.hooks.audit import audit
from nethook.hooks.wrapped import wrapped_functions
from nethook.interp.sweeping.batches import Dims
from nethook.interp.sweeping.recording import Called, Recording
from nethook.torch_private import (
    any_global_hook,
    buffers_of,
    forward_hooks_of,
    forward_pre_hooks_of,
)

_RUN_IN_FORWARD = ("forward_pre", "forward", "answer", "global_forward_pre", "global_forward")


def why_hooked(tree: Tree) -> str:
    """Why hooks that are on before the sweep forbid answers; "" where there are none."""
    hooked = any(forward_hooks_of(m) or forward_pre_hooks_of(m) for m in tree.modules)
    if not hooked and not any_global_hook() and not any(True for _ in wrapped_functions()):
        return ""  # nearly always; asking for owners takes long
    for info in audit(tree.root):
        if info.kind in _RUN_IN_FORWARD:
            where = "all modules have" if info.address == "*" else f"{info.address!r} has"
            return f"{where} a hook ({info.owner}), which has to be called"
    return ""


class Written:
    """The buffers of a model, to find out whether a run has written to one, and put them back.

    By their values: batch normalisation writes to its means without leaving a trace in versions.
    """

    def __init__(self, tree: Tree) -> None:
        self._buffers = [
            (f"{address}.{name}".lstrip("."), buffer, buffer.detach().clone())
            for address, module in zip(tree.addresses, tree.modules, strict=True)
            for name, buffer in buffers_of(module).items()
            if buffer is not None and not buffer.is_inference() and not buffer.is_meta
        ]

    def which(self) -> str:
        """The first buffer that was written to; "" where none was."""
        return next((name for name, now, was in self._buffers if not torch.equal(now, was)), "")

    def put_back(self) -> None:
        """Gives every buffer the value that it had."""
        for _, buffer, before in self._buffers:
            buffer.copy_(before)


def why_opaque(recording: Recording, last: int) -> str:
    """Why an object that modules hand around before a moment forbids answers; "" if none does."""
    for called in recording.calls.values():
        if called.module is None or not called.ended:
            continue
        kind = called.given if called.began[0] <= last else ""
        kind = kind or (called.returned if called.ended[0] <= last else "")
        if kind:
            hint = ": give base with use_cache=False" if "Cache" in kind else ""
            return f"{called.address!r} hands on a {kind}, which a call may change{hint}"
    return ""


def answerable(recording: Recording, dims: dict[str, Dims], *, single: bool) -> list[Called]:
    """The modules that were called once and can be answered, in the order in which they began.

    With `single` their rows need not be known: there is one copy of each.
    """
    able = (called for called in recording.calls.values() if _able(called, dims, single=single))
    return sorted(able, key=lambda called: called.began[0])


def answered_before(moment: int, able: Sequence[Called]) -> list[Called]:
    """The outermost of the answerable modules whose call had ended at a moment."""
    latest = 0  # end of those that were found: what ends before it, and began later, is inside
    answered = []
    for called in able:
        ended = called.ended[0]
        if latest < ended <= moment:
            latest = ended
            answered.append(called)
    return answered


def _able(called: Called, dims: dict[str, Dims], *, single: bool) -> bool:
    return (
        called.module is not None
        and called.once
        and (single or called.address in dims)
        and why_unanswerable(called.module) is None
    )
