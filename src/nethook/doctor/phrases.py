"""Small parts of the sentences that findings are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from nethook.doctor.history import History
from nethook.runs.names import GROUPS, ORDER
from nethook.text.numbers import ascii_number as number

KEEP_GRADIENT: Final = (
    "Start with nethook.init.apply_(model, nethook.init.plan(model, inputs)), use ReLU or GELU "
    "instead of sigmoid and tanh, add norms or skip connections."
)
"""The fix for gradients that change their size over depth before training has begun."""


def some(sites: Sequence[str], noun: str) -> str:
    """Sites in words: "`fc1`", "`fc1` and `fc2`", "12 parameters (`fc1.weight`, …)"."""
    named = [f"`{site}`" for site in sites]
    if len(named) <= 1:
        return named[0] if named else f"no {noun}"
    if len(named) <= 3:
        return f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{len(named)} {noun}s ({', '.join(named[:3])}, …)"


def one_or_many(sites: Sequence[str], one: str, many: str) -> str:
    """The word that fits so many sites."""
    return one if len(sites) == 1 else many


def rate_in_words(rate: float) -> str:
    """A sentence with the learning rate; nothing where it is not known (NaN).

    Optimizers that are not torch's do not tell it.
    """
    return f" The learning rate is {number(rate)}." if math.isfinite(rate) else ""


def backward_line(history: History) -> str:
    """The line of the first backward pass, as `source_line` has it."""
    return next((source_line(record.fact("source")) for record in history.records("train")[:1]), "")


def source_line(source: object) -> str:
    """A line of the user's code in brackets, " (train.py:42)"; nothing where it is not known."""
    return f" ({str(source).replace(chr(92), '/').rpartition('/')[2]})" if source else ""


def call_lines(history: History, call: str) -> tuple[str, ...]:
    """The line of the user's code that makes a call of the loop, `train.py:42`; () if unknown."""
    for event in history.events(ORDER):
        place = (event.data.get("lines") or {}).get(call)
        if place:
            return (str(place),)
    return ()


def optimizer_lines(history: History) -> tuple[str, ...]:
    """The lines that made the optimizers, `train.py:42`; () where they are not known."""
    made = [str(event.data.get("line") or "") for event in history.events(GROUPS)]
    return tuple(line for line in dict.fromkeys(made) if line)


def scheduler_lines(history: History, optimizer: str) -> tuple[str, ...]:
    """The lines that made the schedulers of an optimizer; () where they are not known."""
    of_it = [
        event.data.get("schedulers") or ()
        for event in history.events(GROUPS)
        if event.data.get("optimizer") == optimizer
    ]
    return tuple(dict.fromkeys(str(line) for lines in of_it for line in lines))


def file_and_line(source: object) -> tuple[str, ...]:
    """A line of the user's code for `Finding.lines`; none where it is not known."""
    return (str(source),) if source else ()
