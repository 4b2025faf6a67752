"""What a tracker is to nethook: five calls, all from one thread that is not the training's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from nethook.errors import OptionError
from nethook.text.findings import Finding

if TYPE_CHECKING:  # `nethook run` checks names of trackers before the script has chosen a numpy
    import numpy as np
    import numpy.typing as npt

Detail: TypeAlias = Literal["few", "all"]
"""`few`: the loop, blocks and the worst layers; `all`: every series, and histograms."""
DETAILS: Final = ("few", "all")
EVERY: Final = 0.1
"""Seconds between two points."""

Edges: TypeAlias = "npt.NDArray[np.float64]"
Counts: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True)
class RunFacts:
    """What a tracker is told of a run when it begins.

    Arguments:
        name: of the run.
        path: of the run file.
        model: the classes of its models.
    """

    name: str
    path: Path
    model: str = ""


class Sink:
    """Receives the numbers of a run while it is written. Overrides what it can use.

        class Printed(nethook.sinks.Sink):
            def scalars(self, step, values):
                print(step, values)

        nethook.watch(model, optimizer, sinks=[Printed()])

    All calls but `join` come from one thread of nethook's: a slow tracker holds up neither the
    training nor the run file. A sink that raises gets nothing more, and the run has an event.

    Arguments:
        detail: `few` (the loop, blocks, the worst layers) or `all` (every series, histograms).
        every: seconds between two points, each the mean of what came since the last; 0 sends every
            window, which is every step of the first thousand.
    """

    name: str = ""
    """What events call it; "" for the name of its class."""
    wants_report: bool = False
    """Whether `end` is to be given a report, which takes a second or two to write."""

    def __init__(self, *, detail: Detail = "few", every: float = EVERY) -> None:
        if detail not in DETAILS:
            raise OptionError(f"`detail` must be one of {', '.join(DETAILS)}; got {detail!r}.")
        if not every >= 0:
            raise OptionError(f"`every` must be seconds, at least 0; got {every!r}.")
        self.detail: Detail = detail
        self.every = float(every)

    def join(self) -> None:
        """On the thread that opens the watch: find the tracker's run that the script has open."""

    def begin(self, facts: RunFacts) -> None:
        """The run has begun: go on in the tracker's run that was found, or open one."""

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers at a step; they may be infinite or NaN."""

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """How the elements of a tensor are spread: `counts[i]` from `edges[i]` to `edges[i+1]`."""

    def finding(self, finding: Finding) -> None:
        """The doctor has found something; each code once, and again where it got worse."""

    def end(self, verdict: str, report: Path | None) -> None:
        """The run has ended. The report, an HTML file, is removed when this returns."""
