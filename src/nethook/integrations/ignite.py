"""nethook as a handler of Ignite.

from nethook.ignite import NethookHandler

handler = NethookHandler(model, optimizer, to="runs/mnist.db")
handler.attach(trainer, evaluators={"val": evaluator})
trainer.run(loader, max_epochs=5)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    from ignite.engine import Engine, Events
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.ignite needs Ignite, which is not installed: pip install pytorch-ignite"
    ) from None

from torch import nn
from torch.optim import Optimizer

from nethook.integrations.trainer_run import RecordsRun, read_state


class NethookHandler(RecordsRun):
    """Records a training in a run, with the metrics of the trainer and of its evaluators.

    The trainer's metrics are kept as `trainer/NAME` after each epoch, and a number that its step
    returns as `trainer/loss`; those of an evaluator as `trainer/EVALUATOR_NAME` after each of its
    runs. In a checkpoint the handler names the run and the step: a training that goes on from it
    goes on in its run.

        Checkpoint({"model": model, "trainer": trainer, "nethook": handler}, "checkpoints")

    Under `nethook run` the numbers go to the run that is open.

    Arguments:
        model: what is trained.
        optimizer: one or several; None finds the optimizers that hold its parameters.
        to, options: as those of `nethook.integrations.trainer_run.RecordsRun`.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer | Sequence[Optimizer] | None = None,
        to: str | Path | None = None,
        **options: Any,
    ) -> None:
        super().__init__(to, **options)
        self._model = model
        if isinstance(optimizer, Optimizer):
            optimizer = [optimizer]
        self._optimizers = list(optimizer or ())
        self._loaded: Mapping[str, Any] = {}

    def attach(self, trainer: Engine, evaluators: Mapping[str, Engine] | None = None) -> None:
        """Follows a trainer, and keeps the metrics of evaluators under their names."""
        trainer.add_event_handler(Events.STARTED, self._begin)
        trainer.add_event_handler(Events.ITERATION_COMPLETED, self._react)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, self._log_epoch)
        trainer.add_event_handler(Events.COMPLETED, self._end)
        trainer.add_event_handler(Events.EXCEPTION_RAISED, self._fail)
        for name, evaluator in (evaluators or {}).items():
            evaluator.add_event_handler(Events.COMPLETED, self._log_evaluation, name)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: the run, and how many of its steps were done."""
        return self.kept_state()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """The training goes on from a checkpoint."""
        self._loaded = read_state(state_dict)

    def _begin(self, engine: Engine) -> None:
        loaded, self._loaded = self._loaded, {}
        self.trainer_run.begin(
            self._model, self._optimizers, resume=loaded.get("run"), step=loaded.get("step")
        )

    def _react(self, engine: Engine) -> None:
        if self.trainer_run.react():
            engine.terminate()

    def _log_epoch(self, engine: Engine) -> None:
        state = engine.state
        self.trainer_run.log({"epoch": state.epoch, "loss": state.output, **state.metrics})

    def _log_evaluation(self, engine: Engine, name: str) -> None:
        self.trainer_run.log(
            {f"{name}_{key}": value for key, value in engine.state.metrics.items()}
        )

    def _end(self, engine: Engine) -> None:
        self.trainer_run.end()

    def _fail(self, engine: Engine, error: BaseException) -> None:
        """The run ends with the error. An engine raises it where nobody else handles it."""
        self.trainer_run.end(error)
        others = getattr(engine, "_event_handlers", {}).get(Events.EXCEPTION_RAISED, ())
        if len(others) <= 1:
            raise error
