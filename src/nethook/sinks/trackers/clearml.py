"""ClearML. Every report names its iteration, so a script's own are where they were."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from nethook.sinks.bins import fold
from nethook.sinks.sink import EVERY, Counts, Detail, Edges, RunFacts, Sink
from nethook.text.findings import Finding

_LEVELS: Final = {"error": logging.ERROR, "warning": logging.WARNING, "info": logging.INFO}
_MOST_BINS: Final = 100  # each is a bar of a plot


class ClearmlSink(Sink):
    """Sends to ClearML: the current task, or one of its own.

    Arguments:
        detail, every: as in `Sink`.
        project: of a task of its own.
        offline: keep a task of its own in a local folder; so it is where no server is set up.
    """

    name = "clearml"
    wants_report = True

    def __init__(
        self,
        *,
        detail: Detail = "few",
        every: float = EVERY,
        project: str = "nethook",
        offline: bool = False,
    ) -> None:
        super().__init__(detail=detail, every=every)
        self._project = project
        self._offline = offline
        self._task: Any = None
        self._joined = False

    def join(self) -> None:
        """Takes the current task."""
        clearml = sys.modules.get("clearml")
        found = None if clearml is None else clearml.Task.current_task()
        if found is not None:
            self._task, self._joined = found, True

    def begin(self, facts: RunFacts) -> None:
        """Makes a task where there is none; ClearML's own recording of frameworks stays off."""
        from clearml import Task

        self.join()
        if self._task is None:
            # A process of its own would be forked from this thread, and might wait for ever.
            Task._report_subprocess_enabled = False
            if self._offline or not _has_account():
                Task.set_offline(True)
            self._task = Task.init(
                project_name=self._project, task_name=facts.name, auto_connect_frameworks=False,
                auto_connect_arg_parser=False, auto_connect_streams=False,
                auto_resource_monitoring=False, reuse_last_task_id=False,
            )  # fmt: skip
        self._task.set_user_properties(nethook_run=str(facts.path))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """The first word of a tag is the plot, the rest is the curve in it."""
        logger = self._task.get_logger()
        for tag, value in values.items():
            title, _, series = tag.partition("/")
            logger.report_scalar(f"nethook/{title}", series or title, value, iteration=step)

    def histogram(self, step: int, name: str, counts: Counts, edges: Edges) -> None:
        """A plot of bars."""
        folded, ends = fold(counts, edges, _MOST_BINS)
        title, _, series = name.partition("/")
        self._task.get_logger().report_histogram(
            f"nethook/{title}", series or title, folded.tolist(), iteration=step,
            xlabels=[f"{edge:.3g}" for edge in ends[:-1]],
        )  # fmt: skip

    def finding(self, finding: Finding) -> None:
        """A line of the log, and a tag by which tasks are found."""
        self._task.add_tags([f"nethook:{finding.code}"])
        text = f"nethook: {finding.severity}: {finding.message} {finding.fix}"
        level = _LEVELS[finding.severity]
        self._task.get_logger().report_text(text, level=level, print_console=False)

    def end(self, verdict: str, report: Path | None) -> None:
        """The verdict in the log, the report as an artefact."""
        self._task.get_logger().report_text(f"nethook: {verdict}", print_console=False)
        if report is not None:
            # It is sent later, by another thread: from a copy, which is removed then.
            copy = Path(tempfile.mkdtemp(prefix="nethook-")) / report.name
            shutil.copyfile(report, copy)
            self._task.upload_artifact("nethook-report", str(copy), delete_after_upload=True)
        self._task.flush(wait_for_uploads=True)
        if not self._joined:
            self._task.close()


def _has_account() -> bool:
    """Whether ClearML knows a server."""
    told = os.environ.get("CLEARML_API_HOST") or os.environ.get("CLEARML_CONFIG_FILE")
    return bool(told) or (Path.home() / "clearml.conf").exists()
