"""SwanLab. A process has one run, so the script's is used where there is one.

A row with a step moves the count of rows without one: it is put back, under SwanLab's own lock.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from nethook.errors import NethookError
from nethook.sinks.bins import fold
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.text.findings import Finding

_MOST_BINS: Final = 100  # each is a bar of a chart


class SwanlabSink(Sink):
    """Sends to SwanLab: the run that is open, or one of its own.

    Arguments:
        detail, every: as in `Sink`.
        project: of a run of its own.
        options: further arguments of `swanlab.init`, such as `mode="offline"`.
    """

    name = "swanlab"

    def __init__(
        self,
        *,
        detail: Detail = "few",
        every: float = EVERY,
        project: str = "nethook",
        **options: Any,
    ) -> None:
        super().__init__(detail=detail, every=every)
        self._options = {"project": project, **options}
        self._run: Any = None
        self._joined = False
        self._step = 0

    def join(self) -> None:
        """Takes the run that is open."""
        swanlab = sys.modules.get("swanlab")
        if swanlab is not None and swanlab.has_run():
            self._run, self._joined = swanlab.get_run(), True

    def begin(self, facts: RunFacts) -> None:
        """Opens a run where there is none."""
        import swanlab

        self.join()
        if self._run is None:
            # Without an account SwanLab would ask for one.
            offline = {} if _has_account() else {"mode": "offline"}
            self._run = swanlab.init(**{"name": facts.name, **offline, **self._options})

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """One row."""
        self._step = max(self._step, step)
        self._log({f"nethook/{tag}": float(value) for tag, value in values.items()}, step)

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """A chart of bars."""
        import swanlab

        folded, ends = fold(counts, edges, _MOST_BINS)
        bars = swanlab.echarts.Bar()
        bars.add_xaxis([f"{edge:.3g}" for edge in ends[:-1]])
        bars.add_yaxis(name, folded.tolist())
        self._log({f"nethook/{name}": bars}, step)

    def finding(self, finding: Finding) -> None:
        """A text."""
        import swanlab

        text = f"{finding.severity}: {finding.message} {finding.fix}"
        step = self._step if finding.first_step is None else finding.first_step
        self._log({f"nethook/finding/{finding.code}": swanlab.Text(text)}, step)

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict as a text. SwanLab keeps no files of a run."""
        import swanlab

        self._log({"nethook/verdict": swanlab.Text(verdict)}, self._step)
        if not self._joined:
            self._run.finish()

    def _log(self, values: Mapping[str, Any], step: int) -> None:
        with self._same_step():
            self._run.log(dict(values), step=step)

    @contextmanager
    def _same_step(self) -> Iterator[None]:
        """What the script logs without a step is counted as if nothing had been sent."""
        if not self._joined:
            yield
            return
        lock = getattr(self._run, "_api_lock", None)
        context: Any = getattr(self._run, "_ctx", None)
        if lock is None or not hasattr(context, "_global_step"):
            raise NethookError(
                "this version of swanlab would count nethook's rows among the script's own; let "
                "nethook open a run of its own, before or without swanlab.init()"
            )
        with lock:
            before = context._global_step
            try:
                yield
            finally:
                context._global_step = before


def _has_account() -> bool:
    """Whether SwanLab knows where to send to, or was told by the environment what to do."""
    told = os.environ.get("SWANLAB_MODE") or os.environ.get("SWANLAB_API_KEY")
    return bool(told) or (Path.home() / ".swanlab" / ".netrc").exists()
