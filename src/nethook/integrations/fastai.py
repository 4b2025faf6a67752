"""nethook as a callback of fastai.

from nethook.fastai import NethookCallback

learn.fit_one_cycle(5, cbs=NethookCallback("runs/pets.db"))
"""

from __future__ import annotations

from typing import Any, ClassVar

try:
    from fastai.callback.core import Callback, CancelFitException
    from fastai.learner import Recorder, SkipToEpoch
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.fastai needs fastai, which is not installed: pip install fastai"
    ) from None

from torch.optim import Optimizer

from nethook.integrations.trainer_run import RecordsRun


class NethookCallback(RecordsRun, Callback):  # type: ignore[misc]  # it has no types
    """Records every `fit` of a learner in a run, with what fastai's recorder has.

    Losses and metrics are kept as `trainer/NAME` after each epoch. The search for a rate and
    predictions are not recorded. fastai keeps nothing of a callback in its checkpoints: a training
    that goes on with `start_epoch` goes on in the run at `to`, if there is one. Under `nethook run`
    the numbers go to the run that is open.

    Arguments: those of `nethook.integrations.trainer_run.RecordsRun`.
    """

    order: ClassVar[int] = Recorder.order + 1  # what it logs is there by then
    name = "nethook"
    _trains = False

    def before_fit(self) -> None:
        """Begins the run, or goes on in the one that is there."""
        learn = self.learn
        self._trains = not (hasattr(learn, "lr_finder") or hasattr(learn, "gather_preds"))
        if not self._trains:
            return
        plain = getattr(learn.opt, "opt", None)  # that of an `OptimWrapper`
        skipped = [each._skip_to for each in learn.cbs if isinstance(each, SkipToEpoch)]
        self.trainer_run.begin(
            learn.model,
            [plain] if isinstance(plain, Optimizer) else [],
            done=max(skipped, default=0) * len(learn.dls.train),
        )

    def after_batch(self) -> None:
        """Ends the training where a finding is to end it."""
        if self._trains and self.learn.training and self.trainer_run.react():
            raise CancelFitException

    def after_epoch(self) -> None:
        """Keeps what the recorder has of the epoch."""
        if self._trains:
            recorder = self.learn.recorder
            numbers: dict[str, Any] = dict(zip(recorder.metric_names, recorder.log, strict=False))
            numbers.pop("time", None)
            self.trainer_run.log(numbers)

    def after_fit(self) -> None:
        """The run ends with the training."""
        if self._trains:
            self._trains = False
            self.trainer_run.end()
