"""Weights & Biases.

In a run of the script's own nothing is committed: every `log` of wandb is a step on the axis of
all, and a second one would stretch it. What nethook sends goes with the script's next `log`; all of
it has `nethook/step` as its axis. In a run of nethook's own each point is a row.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nethook.sinks.bins import fold
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.text.findings import Finding

_LEVELS: Final = {"error": "ERROR", "warning": "WARN", "info": "INFO"}
_MOST_BINS: Final = 512
_LONGEST_TITLE: Final = 63


class WandbSink(Sink):
    """Sends to wandb: the run that is open, or one of its own.

    Arguments:
        detail, every: as in `Sink`.
        project: of a run of its own.
        own: open one even where the script has one.
        options: further arguments of `wandb.init`, such as `mode="offline"`.
    """

    name = "wandb"
    wants_report = True

    def __init__(
        self,
        *,
        detail: Detail = "few",
        every: float = EVERY,
        project: str = "nethook",
        own: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(detail=detail, every=every)
        self._options = {"project": project, **options}
        self._own = own
        self._run: Any = None
        self._joined = False

    def join(self) -> None:
        """Takes the run that the script has open."""
        wandb = sys.modules.get("wandb")
        if not self._own and wandb is not None and getattr(wandb, "run", None) is not None:
            self._run, self._joined = wandb.run, True

    def begin(self, facts: RunFacts) -> None:
        """Opens a run where there is none, and gives nethook's numbers an axis."""
        import wandb

        self.join()  # the script may have opened one since
        if self._run is None:
            # `create_new` leaves `wandb.run` alone: a later `wandb.init` of the script is its own.
            # What the script prints is left alone, too. Without an account wandb would ask for one.
            chosen = {
                "name": facts.name, "reinit": "create_new",
                "settings": wandb.Settings(silent=True, console="off"),
                **({} if _has_account() else {"mode": "offline"}), **self._options,
            }  # fmt: skip
            self._run = wandb.init(**chosen)
        self._run.define_metric("nethook/step", hidden=True)
        self._run.define_metric("nethook/*", step_metric="nethook/step")
        self._run.config.update(
            {"nethook": {"run": str(facts.path), "model": facts.model}}, allow_val_change=True
        )

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """One row, or a part of the script's next."""
        named = {f"nethook/{tag}": value for tag, value in values.items()}
        self._log(step, named)

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """At most 512 bins, which is wandb's limit."""
        import wandb

        shown = wandb.Histogram(np_histogram=fold(counts, edges, _MOST_BINS))
        self._log(step, {f"nethook/{name}": shown})

    def finding(self, finding: Finding) -> None:
        """An alert."""
        title = f"nethook: {finding.code}"[:_LONGEST_TITLE]
        text = f"{finding.message}\nFix: {finding.fix}" if finding.fix else finding.message
        self._run.alert(title=title, text=text, level=_LEVELS[finding.severity])

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict in the summary, the report as an artefact."""
        import wandb

        self._run.summary["nethook/verdict"] = verdict
        if report is not None:
            made = wandb.Artifact(f"nethook-report-{self._run.id}", type="report")
            made.add_file(str(report))
            self._run.log_artifact(made)
        if not self._joined:
            self._run.finish()

    def _log(self, step: int, values: Mapping[str, Any]) -> None:
        self._run.log({**values, "nethook/step": step}, commit=not self._joined)


def _has_account() -> bool:
    """Whether wandb knows where to send to, or was told by the environment what to do."""
    import wandb

    return bool(os.environ.get("WANDB_MODE") or wandb.api.api_key)
