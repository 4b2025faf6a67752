"""MLflow: metrics with steps of their own, in batches, under names that it takes.

It has no histograms: quantiles of them are metrics instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nethook.sinks.bins import quantiles
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.sinks.tags import cleaned
from nethook.text.findings import Finding

_BATCH: Final = 200  # metrics in a call: Azure takes no more
_LONGEST_TAG: Final = 5000
_QUANTILES: Final = {"q05": 0.05, "q50": 0.5, "q95": 0.95}


class MlflowSink(Sink):
    """Sends to MLflow: the run that is active, or one of its own.

    Arguments:
        detail, every: as in `Sink`.
        experiment: of a run of its own.
        tracking_uri: of a run of its own; what MLflow is set to otherwise.
    """

    name = "mlflow"
    wants_report = True

    def __init__(
        self,
        *,
        detail: Detail = "few",
        every: float = EVERY,
        experiment: str = "nethook",
        tracking_uri: str | None = None,
    ) -> None:
        super().__init__(detail=detail, every=every)
        self._experiment = experiment
        self._uri = tracking_uri
        self._client: Any = None
        self._run = ""
        self._joined = False

    def join(self) -> None:
        """Takes the active run: MLflow has one for each thread."""
        mlflow = sys.modules.get("mlflow")
        active = getattr(mlflow, "active_run", lambda: None)() if self._uri is None else None
        if active is not None:
            self._run, self._joined = active.info.run_id, True

    def begin(self, facts: RunFacts) -> None:
        """Opens a run where none is active."""
        from mlflow.tracking import MlflowClient

        self._client = MlflowClient(tracking_uri=self._uri)
        if not self._run:
            found = self._client.get_experiment_by_name(self._experiment)
            where = (
                found.experiment_id
                if found is not None
                else self._client.create_experiment(self._experiment)
            )
            self._run = self._client.create_run(where, run_name=facts.name).info.run_id
        self._client.set_tag(self._run, "nethook.run", str(facts.path))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """All of them in as few calls as there may be."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [
            Metric(f"nethook/{cleaned(tag)}", float(value), now, step)
            for tag, value in values.items()
        ]
        for start in range(0, len(metrics), _BATCH):
            self._client.log_batch(self._run, metrics=metrics[start : start + _BATCH])

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """Three quantiles."""
        found = quantiles(counts, edges, list(_QUANTILES.values()))
        named = zip(_QUANTILES, found, strict=True)
        self.scalars(step, {f"{name}.{quantile}": value for quantile, value in named})

    def finding(self, finding: Finding) -> None:
        """A tag of the run."""
        text = f"{finding.severity}: {finding.message}"[:_LONGEST_TAG]
        self._client.set_tag(self._run, f"nethook.finding.{cleaned(finding.code)}", text)

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict as a tag, the report as an artefact."""
        self._client.set_tag(self._run, "nethook.verdict", verdict[:_LONGEST_TAG])
        if report is not None:
            self._client.log_artifact(self._run, str(report), "nethook")
        if not self._joined:
            self._client.set_terminated(self._run)
