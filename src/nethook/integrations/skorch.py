"""nethook as a callback of skorch.

from nethook.skorch import NethookCallback

net = NeuralNetClassifier(MLP, callbacks=[NethookCallback("runs/mnist.db")])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    from skorch.callbacks import Callback
except ImportError:
    from nethook.errors import MissingLibraryError

    raise MissingLibraryError(
        "nethook.skorch needs skorch, which is not installed: pip install skorch"
    ) from None

from torch.optim import Optimizer

from nethook.addresses.patterns import Pattern
from nethook.hooks.threads import Threads
from nethook.integrations.trainer_run import OnFinding, TrainerRun
from nethook.sinks.sink import Sink
from nethook.watching.watch import QUANTITIES


class NethookCallback(Callback):  # type: ignore[misc]  # it has no types
    """Records every `fit` of a net in a run, with the history that skorch keeps.

    Numbers of the history are kept as `trainer/NAME` after each epoch. skorch keeps nothing of a
    callback in its checkpoints, but the history has the batches of every epoch: `partial_fit` goes
    on in the run at `to`, if there is one. Under `nethook run` the numbers go to the run that is
    open. In a search over settings leave `to` as None: every fit then has a file of its own.

    Arguments: those of `nethook.integrations.trainer_run.RecordsRun`; scikit-learn clones a
    callback by them, so each is kept as it was given.
    """

    def __init__(
        self,
        to: str | Path | None = None,
        *,
        budget: float | None = 0.03,
        include: Pattern | None = None,
        exclude: Pattern | None = None,
        quantities: Sequence[str] = QUANTITIES,
        phases: Sequence[str] = ("train", "eval"),
        snapshots: Mapping[str, int] | None = None,
        batches: int = 3,
        threads: Threads = "own",
        keep_args: bool = False,
        examine: bool = False,
        sinks: Sequence[str | Sink] | str | Sink = (),
        on_finding: OnFinding = "warn",
        report: bool = False,
    ) -> None:
        self.to = to
        self.budget = budget
        self.include = include
        self.exclude = exclude
        self.quantities = quantities
        self.phases = phases
        self.snapshots = snapshots
        self.batches = batches
        self.threads = threads
        self.keep_args = keep_args
        self.examine = examine
        self.sinks = sinks
        self.on_finding = on_finding
        self.report = report
        self.trainer_run_: TrainerRun | None = None

    @property
    def path(self) -> Path | None:
        """The run file; None before the training begins."""
        return None if self.trainer_run_ is None else self.trainer_run_.path

    def on_train_begin(self, net: Any, X: Any = None, y: Any = None, **_: Any) -> None:  # noqa: N803
        """Begins the run, or goes on in the one that is there."""
        self.trainer_run_ = TrainerRun(
            self.to, on_finding=self.on_finding, report=self.report, budget=self.budget,
            include=self.include, exclude=self.exclude, quantities=self.quantities,
            phases=self.phases, snapshots=self.snapshots, batches=self.batches,
            threads=self.threads, keep_args=self.keep_args, examine=self.examine,
            sinks=self.sinks,
        )  # fmt: skip
        optimizer = getattr(net, "optimizer_", None)
        self.trainer_run_.begin(
            net.module_,
            [optimizer] if isinstance(optimizer, Optimizer) else [],
            done=sum(row.get("train_batch_count", 0) for row in net.history),
        )

    def on_batch_end(self, net: Any, batch: Any = None, training: bool = False, **_: Any) -> None:
        """Ends the training where a finding is to end it, as skorch's own callbacks do."""
        if training and self.trainer_run_ is not None and self.trainer_run_.react():
            raise KeyboardInterrupt

    def on_epoch_end(self, net: Any, **_: Any) -> None:
        """Keeps the numbers of an epoch."""
        if self.trainer_run_ is not None:
            row = {name: value for name, value in net.history[-1].items() if name != "batches"}
            self.trainer_run_.log(row)

    def on_train_end(self, net: Any, **_: Any) -> None:
        """The run ends with the training."""
        if self.trainer_run_ is not None:
            self.trainer_run_.end()
