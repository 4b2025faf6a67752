"""TensorBoard, while the run is written: an event file beside it, with the tags of the export."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nethook.errors import MissingLibraryError
from nethook.sinks.bins import fold
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.text.findings import Finding

_FLUSH: Final = 5  # seconds until a page shows what was written
_MOST_BINS: Final = 645


class TensorBoardSink(Sink):
    """Writes an event file.

    Arguments:
        detail, every: as in `Sink`.
        folder: where to; `NAME-tensorboard` beside the run otherwise.
    """

    name = "tensorboard"

    def __init__(
        self, *, detail: Detail = "few", every: float = EVERY, folder: str | Path | None = None
    ) -> None:
        super().__init__(detail=detail, every=every)
        self._folder = None if folder is None else Path(folder).expanduser()
        self._writer: Any = None
        self._step = 0

    def begin(self, facts: RunFacts) -> None:
        """Opens the file: one for each part of a run that goes on."""
        folder = self._folder or facts.path.with_name(f"{facts.path.stem}-tensorboard")
        self._writer = event_writer(folder, flush_secs=_FLUSH)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """A point of each tag."""
        self._step = max(self._step, step)
        for tag, value in values.items():
            self._writer.add_scalar(tag, value, step)

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """All bins, without the empty ends."""
        add_histogram(self._writer, name, counts, edges, step)

    def finding(self, finding: Finding) -> None:
        """A text: TensorBoard has no alerts."""
        text = f"**{finding.severity}** {finding.message}\n\nFix: {finding.fix}"
        step = self._step if finding.first_step is None else finding.first_step
        self._writer.add_text(f"findings/{finding.code}", text, step)

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict as a text."""
        self._writer.add_text("verdict", verdict, self._step)
        self._writer.close()


def event_writer(folder: Path, *, flush_secs: int, max_queue: int = 1000) -> Any:
    """What writes an event file.

    Raises:
        MissingLibraryError: tensorboard is not installed.
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingLibraryError(
            "an event file is written with tensorboard, which is not installed: "
            "pip install 'nethook[export]'"
        ) from None
    return SummaryWriter(log_dir=str(folder), max_queue=max_queue, flush_secs=flush_secs)


def add_histogram(
    writer: Any,
    tag: str,
    counts: Counts,
    edges: Edges,
    step: int,
    *,
    values: Edges | None = None,
    walltime: float | None = None,
) -> None:
    """A histogram of counts and edges; nothing where all counts are zero.

    `values` stand for the bins where sums are made; their middles otherwise.
    """
    if not counts.any():
        return
    occupied, ends = fold(counts, edges, _MOST_BINS)
    if values is None:
        middles = (ends[:-1] + ends[1:]) / 2
    else:
        first = int(counts.nonzero()[0][0])
        middles = values[first : first + len(occupied)]
    writer.add_histogram_raw(
        tag,
        min=float(middles[0]),
        max=float(middles[-1]),
        num=int(occupied.sum()),
        sum=float((middles * occupied).sum()),
        sum_squares=float((middles**2 * occupied).sum()),
        bucket_limits=ends[1:].tolist(),
        bucket_counts=occupied.tolist(),
        global_step=step,
        walltime=walltime,
    )
