"""nethook as a callback of Lightning.

    from nethook.lightning import NethookCallback

    trainer = Trainer(callbacks=[NethookCallback(to="runs/mnist.db")])

In the configuration of Lightning's command line: `class_path: nethook.lightning.NethookCallback`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback  # type: ignore[assignment, unused-ignore]
    except ImportError:
        from nethook.errors import MissingLibraryError

        raise MissingLibraryError(
            "nethook.lightning needs Lightning, which is not installed: pip install lightning"
        ) from None

from nethook.integrations.trainer_run import RecordsRun, number_of, read_state


class NethookCallback(RecordsRun, Callback):
    """Records every training of a `Trainer` in a run, with the metrics that the module logs.

    Metrics are kept as `trainer/NAME`, every `log_every_n_steps` steps and after validations. The
    sanity check is not recorded. A checkpoint names the run and the step: a training that goes on
    from it goes on in its run. Under `nethook run` the metrics go to the run that is open.

    Arguments: those of `nethook.integrations.trainer_run.RecordsRun`, all plain data.
    """

    _loaded: Mapping[str, Any] = MappingProxyType({})  # what a checkpoint has kept
    _logged: Mapping[str, float] = MappingProxyType({})  # the last value of each metric

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The sanity check is over, optimizers are there, a checkpoint is loaded."""
        self._logged = {}
        self.trainer_run.begin(
            pl_module, trainer.optimizers, resume=self._loaded.get("run"),
            step=self._loaded.get("step"),
        )  # fmt: skip
        self._loaded = {}

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Keeps what was logged, as often as the trainer's loggers do."""
        if trainer.global_step % max(1, trainer.log_every_n_steps) == 0:
            self._keep(trainer)
        if self.trainer_run.react():
            trainer.should_stop = True

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Keeps the metrics of a validation."""
        if not trainer.sanity_checking:
            self._keep(trainer)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Keeps the metrics of an epoch."""
        self._keep(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """The run ends with the training."""
        self._keep(trainer)
        self.trainer_run.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The run ends with the error."""
        self.trainer_run.end(exception)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the run, and how many of its steps were done."""
        return self.kept_state()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The training goes on from a checkpoint."""
        self._loaded = read_state(state_dict)

    def _keep(self, trainer: Any) -> None:
        """Keeps what has changed: a trainer has the metrics of the last validation all along."""
        numbers = {
            str(name): number
            for name, value in trainer.callback_metrics.items()
            if (number := number_of(value)) is not None
        }
        changed = {n: v for n, v in numbers.items() if self._logged.get(n) != v}
        if changed:
            self._logged = {**self._logged, **changed}
            self.trainer_run.log({"epoch": trainer.current_epoch, **changed})
