"""nethook as a tracker of Accelerate.

from nethook.accelerate import NethookTracker

tracker = NethookTracker(model, optimizer, to="runs/gpt.db")
accelerator = Accelerator(log_with=[tracker])
accelerator.init_trackers("gpt")          # the run begins
accelerator.log({"loss": loss}, step=step)
accelerator.end_training()                # and ends
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from accelerate.tracking import GeneralTracker
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.accelerate needs accelerate, which is not installed: pip install accelerate"
    ) from None

from torch import nn
from torch.optim import Optimizer

from nethook.integrations.trainer_run import RecordsRun, TrainerRun


class NethookTracker(RecordsRun, GeneralTracker):  # type: ignore[misc]  # it has no types
    """Records a training in a run, with what `accelerator.log` is given as `trainer/NAME`.

    A tracker never sees the model, so it is named here: as it was before `prepare`, or after.

    Arguments:
        model: what is trained.
        optimizer: what trains it; None finds the optimizers that hold its parameters.
        to, options: as those of `nethook.integrations.trainer_run.RecordsRun`; a tracker cannot
            stop a training, so `on_finding="stop"` only prints.
    """

    name = "nethook"
    requires_logging_directory = False
    main_process_only = False  # every process writes the file of its rank

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | None = None,
        to: str | Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__(to, **options)
        self._model = model
        self._optimizer = optimizer
        self._begun = False

    @property
    def tracker(self) -> TrainerRun:
        """The run."""
        return self.trainer_run

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """`init_trackers` was called, with a configuration: the run begins and keeps it."""
        self._begin()
        self.trainer_run.keep(config=values)

    def log(self, values: dict[str, Any], step: int | None = None, **_: Any) -> None:
        """Keeps numbers at the step of the run."""
        self._begin()
        self.trainer_run.log(values)
        self.trainer_run.react()

    def finish(self) -> None:
        """`end_training` was called: the run ends."""
        self.trainer_run.end()

    def start(self) -> None:
        """`init_trackers` was called: the run begins."""
        self._begin()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            plain = getattr(self._optimizer, "optimizer", self._optimizer)
            self.trainer_run.begin(self._model, [] if plain is None else [plain])
