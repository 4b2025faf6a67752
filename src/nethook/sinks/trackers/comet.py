"""Comet. A process has one live experiment, so the script's is used where there is one.

A metric with a step sets the step of all that follow: it is put back each time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nethook.sinks.bins import quantiles
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.text.findings import Finding

_SHARES = [(part + 0.5) / 100 for part in range(100)]


class CometSink(Sink):
    """Sends to Comet: the live experiment, or one of its own.

    Arguments:
        detail, every: as in `Sink`.
        project_name: of an experiment of its own.
        offline_directory: where an experiment of its own is written, without a network; None sends
            it, with the API key that Comet is set to.
        options: further arguments of `comet_ml.Experiment`.
    """

    name = "comet"
    wants_report = True

    def __init__(
        self,
        *,
        detail: Detail = "few",
        every: float = EVERY,
        project_name: str = "nethook",
        offline_directory: str | Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__(detail=detail, every=every)
        self._options = {"project_name": project_name, **options}
        self._offline = offline_directory
        self._experiment: Any = None
        self._joined = False

    def join(self) -> None:
        """Takes the live experiment."""
        comet = sys.modules.get("comet_ml")
        found = None if comet is None else comet.get_running_experiment()
        if found is not None and not found.ended:  # Comet also returns one that has ended
            self._experiment, self._joined = found, True

    def begin(self, facts: RunFacts) -> None:
        """Opens an experiment where none is live; Comet's own recording of torch stays off."""
        import comet_ml

        self.join()
        if self._experiment is None:
            quiet = {
                "log_code": False, "log_graph": False, "auto_param_logging": False,
                "auto_metric_logging": False, "parse_args": False, "auto_output_logging": False,
                "log_env_details": False, "display_summary_level": 0, **self._options,
            }  # fmt: skip
            if self._offline is None and comet_ml.get_api_key(None, comet_ml.get_config()):
                self._experiment = comet_ml.Experiment(**quiet)
            else:
                folder = self._offline or facts.path.parent / "comet"
                Path(folder).mkdir(parents=True, exist_ok=True)
                self._experiment = comet_ml.OfflineExperiment(
                    offline_directory=str(folder), **quiet
                )
            self._experiment.set_name(facts.name)
        self._experiment.log_other("nethook/run", str(facts.path))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """A metric each."""
        with self._same_step():
            for tag, value in values.items():
                self._experiment.log_metric(f"nethook/{tag}", value, step=step)

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """A hundred values that are spread as the tensor is: Comet bins by itself."""
        with self._same_step():
            values = quantiles(counts, edges, _SHARES)
            self._experiment.log_histogram_3d(values, name=f"nethook/{name}", step=step)

    def finding(self, finding: Finding) -> None:
        """A note, and a tag by which experiments are found."""
        self._experiment.add_tag(f"nethook:{finding.code}")
        text = f"{finding.severity}: {finding.message} {finding.fix}"
        self._experiment.log_other(f"nethook/finding/{finding.code}", text)

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict as a note, the report as an asset."""
        self._experiment.log_other("nethook/verdict", verdict)
        if report is not None:
            text = report.read_text(encoding="utf-8")  # the file is gone before it is sent
            self._experiment.log_asset_data(text, name="nethook-report.html")
        if not self._joined:
            self._experiment.end()

    @contextmanager
    def _same_step(self) -> Iterator[None]:
        """What the script logs without a step is where it was."""
        before = self._experiment.curr_step
        try:
            yield
        finally:
            if self._joined:
                self._experiment.curr_step = before
