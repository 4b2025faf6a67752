"""Gradients that are clipped where nobody does it, and less where the limit is too low.

Cannot be applied where no optimizer steps, to an optimizer that unscales gradients in its own
kernel, and, for a limit, where the script does not clip by torch's functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from nethook.hooks.attachment import Attachment
from nethook.hooks.process.optimizers import on_every_step
from nethook.running.trying.change import Change
from nethook.running.trying.fixes.settings import evidence
from nethook.running.trying.limits import Call, nothing, wrap
from nethook.runs.reading.run import Run
from nethook.text.numbers import ascii_number as number

CODES: Final = ("exploding-gradient", "clipping-too-tight")
_LIMIT: Final = 1.0


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """A limit for the norm, or a factor for the limit that there is."""
    code = str(finding.get("code"))
    if code == "exploding-gradient":
        return Change(
            "clipping", code, f"gradients clipped to a norm of {number(_LIMIT)}", {"limit": _LIMIT}
        )
    factor = float(f"{evidence(finding, 'norm before by norm after') or 10.0:.1g}")
    return Change("clipping", code, f"limit of clipping times {number(factor)}", {"factor": factor})


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """From now on."""
    if "limit" in change.numbers:
        _clip_before_steps(hooks, done, change.numbers["limit"])
    else:
        _raise_limits(hooks, done, change.numbers["factor"])


def _clip_before_steps(hooks: Attachment, done: Callable[[], None], limit: float) -> None:
    def clip(optimizer: Any) -> None:
        if getattr(optimizer, "grad_scale", None) is None:  # else they are not unscaled yet
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            torch.nn.utils.clip_grad_norm_(parameters, limit)
            done()

    def before(optimizer: Any, args: Any, named: Any) -> Any:
        closure = args[1] if len(args) > 1 else named.get("closure")
        if not callable(closure):
            clip(optimizer)
            return None

        def clipped(*given: Any, **more: Any) -> Any:
            loss = closure(*given, **more)
            clip(optimizer)
            return loss

        if len(args) > 1:
            return (args[0], clipped, *args[2:]), named
        return args, {**named, "closure": clipped}

    on_every_step(hooks, Call(hooks.owner, "*", before), Call(hooks.owner, "*", nothing))


def _raise_limits(hooks: Attachment, done: Callable[[], None], factor: float) -> None:
    def raised(original: Any, parameters: Any, limit: Any, *args: Any, **named: Any) -> Any:
        done()
        return original(parameters, limit * factor, *args, **named)

    def by_norm(original: Any, *args: Any, **named: Any) -> Any:
        return raised(original, *_first(args, named, "parameters", "max_norm"), **named)

    def by_value(original: Any, *args: Any, **named: Any) -> Any:
        return raised(original, *_first(args, named, "parameters", "clip_value"), **named)

    for holder in ("torch.nn.utils", "torch.nn.utils.clip_grad"):
        wrap(hooks, holder, "clip_grad_norm_", by_norm)
        wrap(hooks, holder, "clip_grad_value_", by_value)


def _first(args: tuple[Any, ...], named: dict[str, Any], *names: str) -> tuple[Any, ...]:
    """The arguments by position, with those of the first names that were given by name."""
    return (*args, *(named.pop(name) for name in names[len(args) :]))
