"""Options and states of a trace as tests of single files need them."""

from __future__ import annotations

from typing import Any

from nethook.tracing.options import Options
from nethook.tracing.tape.state import State


def options(**changes: Any) -> Options:
    """The options of a trace that was asked for nothing, with these changes."""
    given: dict[str, Any] = {"copy": "lazy", "detach": True, "calls": "all"}
    given |= dict.fromkeys(
        ("inputs", "grads", "input_grads", "param_grads", "nodes", "stop"), False
    )
    given |= dict.fromkeys(("device", "dtype", "transform"))
    return Options(**(given | changes))


def state(**changes: Any) -> State:
    """What the records of such a trace share."""
    return State(options(**changes))
