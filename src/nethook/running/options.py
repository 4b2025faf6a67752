"""What `nethook run` was asked for, as plain data that can be handed to other processes."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class RunOptions(NamedTuple):
    """The options of a run.

    Arguments:
        to: the run file, an absolute path: the script may change the folder it works in.
        name: what the run is called; "" for the script's name.
        budget: the share of the training's time that watching may take; None for no limit.
        include, exclude: patterns of the layers that are followed.
        batches: how many batches the flight recorder keeps; 0 for none.
        keep_args: whether the script's arguments are kept as they are.
        resume: whether it goes on in the run that is there.
        step: with which step; None for the one after the last that is kept.
        examine: whether steps are examined on copies.
        sinks: names of the trackers that get the numbers as well.
    """

    to: str
    name: str = ""
    budget: float | None = 0.03
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    batches: int = 3
    keep_args: bool = False
    resume: bool = False
    step: int | None = None
    examine: bool = True
    sinks: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The options as text."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, text: str) -> RunOptions:
        """The options that a text holds."""
        fields: dict[str, Any] = json.loads(text)
        fields["include"] = tuple(fields["include"])
        fields["exclude"] = tuple(fields["exclude"])
        fields["sinks"] = tuple(fields["sinks"])
        return cls(**fields)
