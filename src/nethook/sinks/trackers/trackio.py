"""trackio: local first, with alerts.

A row with a step moves the step of the script's next row. So a run that the script has open gets a
second handle, which counts for itself: the rows of both are in one run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nethook.sinks.bins import fold
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.text.findings import Finding

_LEVELS: Final = {"error": "ERROR", "warning": "WARN", "info": "INFO"}
_MOST_BINS: Final = 512


class TrackioSink(Sink):
    """Sends to trackio: the run that is open, or one of its own.

    Arguments:
        detail, every: as in `Sink`.
        project: of a run of its own.
        options: further arguments of `trackio.init`.
    """

    name = "trackio"
    wants_report = True

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
        self._found: Any = None
        self._run: Any = None
        self._step = 0

    def join(self) -> None:
        """Takes the run that the script has open: trackio knows it in the script's thread alone."""
        if "trackio" in sys.modules:
            from trackio import context_vars

            self._found = context_vars.current_run.get()

    def begin(self, facts: RunFacts) -> None:
        """A second handle on the script's run, or a run of its own."""
        import trackio

        if self._found is not None:
            self._run = _second_handle(self._found)
            return
        chosen = {
            "name": facts.name, "resume": "allow", "embed": False, "auto_log_cpu": False,
            "auto_log_gpu": False, **self._options,
        }  # fmt: skip
        self._run = trackio.init(**chosen)

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """One row."""
        self._step = max(self._step, step)
        self._run.log({f"nethook/{tag}": value for tag, value in values.items()}, step=step)

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """At most 512 bins."""
        import trackio

        shown = trackio.Histogram(np_histogram=fold(counts, edges, _MOST_BINS))
        self._run.log({f"nethook/{name}": shown}, step=step)

    def finding(self, finding: Finding) -> None:
        """An alert."""
        from trackio import AlertLevel

        text = f"{finding.message}\nFix: {finding.fix}" if finding.fix else finding.message
        level = AlertLevel[_LEVELS[finding.severity]]
        step = self._step if finding.first_step is None else finding.first_step
        self._run.alert(f"nethook: {finding.code}", text, level, step)

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict as an alert, the report as an artefact."""
        from trackio import AlertLevel

        self._run.alert("nethook: verdict", verdict, AlertLevel.INFO, self._step)
        if report is not None:
            self._run.log_artifact(str(report), name="nethook-report", type="report")
        self._run.finish()


def _second_handle(run: Any) -> Any:
    """Another object for the same run, whose steps are its own."""
    from trackio import Run

    where = {
        name: getattr(run, f"_{name}", None)
        for name in ("space_id", "bucket_id", "server_base_url", "write_token")
    }
    return Run(
        url=run.url, project=run.project, client=None, name=run.name, run_id=run.id,
        group=run.group, auto_log_cpu=False, auto_log_gpu=False, **where,
    )  # fmt: skip
