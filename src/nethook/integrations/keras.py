"""nethook as a callback of Keras, with torch as its backend.

from nethook.keras import NethookCallback

model.fit(x, y, epochs=5, callbacks=[NethookCallback("runs/mnist.db")])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

try:
    import keras
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.keras needs Keras, which is not installed: pip install keras"
    ) from None

from nethook.errors import OptionError
from nethook.integrations.trainer_run import RecordsRun


class NethookCallback(RecordsRun, keras.callbacks.Callback):  # type: ignore[misc]  # no types
    """Records every `fit` of a model in a run, with the metrics that Keras logs.

    Metrics are kept as `trainer/NAME` after each epoch, those of the validation as
    `trainer/val_NAME`. Keras keeps nothing of a callback in its checkpoints, but a model counts its
    steps (`model.optimizer.iterations`): one that has trained before goes on in the run at `to`, if
    there is one. Under `nethook run` the metrics go to the run that is open.

    Arguments: those of `nethook.integrations.trainer_run.RecordsRun`.
    """

    _begun = False

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """A training begins; what restores a backup may come after this."""
        if keras.backend.backend() != "torch":
            raise OptionError(
                f"nethook.keras needs torch as the backend of Keras; it is "
                f"{keras.backend.backend()!r}. Set KERAS_BACKEND=torch before importing keras."
            )
        self._begun = False

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Begins the run with the first epoch, or goes on in the one that is there."""
        if not self._begun:
            self._begun = True
            self.trainer_run.begin(self.model, done=int(self.model.optimizer.iterations))

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Ends the training where a finding is to end it."""
        if self.trainer_run.react():
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Keeps the metrics of an epoch, and of the validation after it."""
        self.trainer_run.log({"epoch": epoch, **(logs or {})})

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """The run ends with the training."""
        self.trainer_run.end()
