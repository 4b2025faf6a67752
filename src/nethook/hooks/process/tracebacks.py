"""What hooks leave in a traceback, taken out of it again.

A module with hooks calls its forward through one function more than a module without, and the
traceback of an error in it shows both. Where the only hooks were nethook's, the traceback is made
the one that the user would have seen without them.
"""

from __future__ import annotations

import dis
from functools import cache
from types import CodeType, TracebackType

from torch import nn

from nethook.hooks.hook import Hook
from nethook.hooks.registries import global_hooks
from nethook.torch_private import CALL, HOOKS_OF_MODULES

_INNER = next(
    (each for each in CALL.co_consts if isinstance(each, CodeType) and each.co_name == "inner"),
    None,
)
_ON_CALLS = tuple(
    HOOKS_OF_MODULES[kind] for kind in ("forward_pre", "forward", "backward_pre", "backward")
)


def without_hooked_calls(entries: list[TracebackType]) -> list[TracebackType]:
    """The entries of a traceback, with calls of modules as they are where nothing is hooked."""
    straight = _straight_call()
    if straight is None or _INNER is None:
        return entries
    kept: list[TracebackType] = []
    skip = False
    for at, entry in enumerate(entries):
        following = entries[at + 1].tb_frame.f_code if at + 1 < len(entries) else None
        if skip:
            skip = False
        elif (
            entry.tb_frame.f_code is CALL
            and following is _INNER
            and _only_ours(entry.tb_frame.f_locals.get("self"))
        ):
            kept.append(TracebackType(None, entry.tb_frame, *straight))
            skip = True
        else:
            kept.append(entry)
    return kept


@cache
def _straight_call() -> tuple[int, int] | None:
    """Where a module without hooks calls its forward: instruction and line."""
    for instruction in dis.get_instructions(CALL):
        line = instruction.positions.lineno if instruction.positions else None
        if instruction.opname == "CALL_FUNCTION_EX" and line is not None:
            return instruction.offset, line
    return None


def _only_ours(module: object) -> bool:
    """Whether no hook of anybody else would have led to the same detour."""
    if not isinstance(module, nn.Module):
        return False
    hooks = [hook for name in _ON_CALLS for hook in getattr(module, name).values()]
    hooks += [
        hook
        for place in global_hooks()
        if "registration" not in place.kind
        for hook in place.hooks.values()
    ]
    return all(isinstance(hook, Hook) for hook in hooks)
