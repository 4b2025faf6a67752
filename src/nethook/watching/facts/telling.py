"""Sentences for the run's events about modes and parameters that have changed."""

from __future__ import annotations

from collections.abc import Mapping

from nethook.runs import names
from nethook.watching.protocols import Events


def tell_modes(session: Events, modes: dict[str, dict[str, bool]]) -> None:
    """Modules are in another mode than in the last pass of a phase; what was told is forgotten."""
    for phase, changed in modes.items():
        count = len(changed)
        flags = set(changed.values())
        what = f"training={flags.pop()}" if len(flags) == 1 else "another mode"
        noun = "module is" if count == 1 else "modules are"
        session.event(
            names.MODE,
            f"{count} {noun} in {what} from here on (phase {phase})",
            next(iter(changed)) if count == 1 else "",
            {"phase": phase, "training": dict(list(changed.items())[:100])},
        )
    modes.clear()


def tell_frozen(session: Events, changed: Mapping[str, bool]) -> None:
    """`requires_grad` of parameters has changed."""
    data = {"requires_grad": dict(list(changed.items())[:200])}
    message = f"requires_grad of {len(changed)} parameters changed"
    session.event(names.PARAMETERS, message, data=data)


def tell_clock(session: Events, clock: str) -> None:
    """What counts as a step from now on."""
    what = {
        "optimizer": "a step of the optimizers",
        "backward": "a backward pass, for no optimizer that holds the parameters has stepped",
        "forward": "a call of the model, for there was no backward pass",
    }
    session.event(names.CLOCK, f"a step is {what[clock]}", data={"clock": clock})


def tell_failure(session: Events, name: str, error: str, trace: str) -> None:
    """A part of watching has failed."""
    session.writer.event(
        names.FAILED,
        session.step,
        f"{name} failed and is off: {error}",
        "",
        {"where": name, "error": error, "traceback": trace},
    )
