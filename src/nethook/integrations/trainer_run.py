"""The run of a trainer: what the callbacks of all trainers share.

    run = TrainerRun("runs/mnist.db", on_finding="warn", report=False)
    run.begin(model, optimizers)
    run.log({"loss": 0.3})                 # kept as trainer/loss, at the step of the run
    for finding in run.new_findings(): …
    run.end()

Under `nethook run` the models are followed already: a trainer's run then joins that one, adds the
trainer's own numbers to it, and leaves its end to `nethook run`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError, OtherModelError
from nethook.hooks.audit import audit
from nethook.hooks.threads import Threads
from nethook.runs.names import TRAINER
from nethook.sinks.sink import Sink
from nethook.text.escape import line
from nethook.watching.watch import QUANTITIES, Watch, ending, watch, watch_of

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from nethook.doctor.finding import Finding

OnFinding: TypeAlias = str | Callable[["Finding"], object]


class TrainerRun:
    """One training of a trainer, in a run of its own or in that of `nethook run`.

    Arguments:
        to: the run file; `{time}` in it becomes the time. None means `runs/<time>.db`.
        on_finding: "warn", "stop", or a function that is called with each finding.
        report: write a report beside the run at the end.
        options: further arguments of `nethook.watch`.
    """

    def __init__(
        self, to: str | Path | None, *, on_finding: OnFinding, report: bool, **options: Any
    ) -> None:
        if on_finding not in ("warn", "stop") and not callable(on_finding):
            raise OptionError(
                f'`on_finding` must be "warn", "stop" or a function; got {on_finding!r}.'
            )
        self._to = to
        self._on_finding = on_finding
        self._report = report
        self._options = options
        self._model: nn.Module | None = None
        self._watch: Watch | None = None
        self._joins = False
        self._known: set[str] = set()  # codes that were handled

    @property
    def path(self) -> Path | None:
        """The run file; None as long as nothing is recorded."""
        watching = self._current()
        return None if watching is None else watching.path

    @property
    def step(self) -> int:
        """The step of the run that is under way."""
        watching = self._current()
        return 0 if watching is None else watching.step

    def begin(
        self,
        model: nn.Module,
        optimizers: Sequence[Optimizer] = (),
        *,
        resume: str | Path | None = None,
        step: int | None = None,
        done: int = 0,
    ) -> None:
        """The training begins, or goes on.

        Arguments:
            model: what is trained.
            optimizers: those that train it; nethook finds them if none are given.
            resume: the run to go on in, if a checkpoint named one that is still there.
            step: of that run, the number of steps that the checkpoint had done.
            done: steps that the trainer itself has counted before, where its checkpoints have no
                room for the name of a run: it goes on in the run at `to`, if there is one.
        """
        self._model = model
        self._known.clear()
        self._joins = _under_nethook_run(model)
        if self._joins:
            self._say_what_is_left_out()
            return
        if resume is None and done:
            resume, step = self._to, done
        goes_on = resume is not None and Path(resume).exists()
        try:
            if goes_on:
                self._open(resume, optimizers, resume=True, step=step)
            else:
                self._open(self._to, optimizers)
        except OtherModelError as error:
            if not done:  # a checkpoint has named that run
                raise
            path = Path(str(resume))
            _say(f"nethook: this training does not go on in {line(path)}: {error.differences}")
            self._open(path.with_name(f"{path.stem}-{{time}}.db"), optimizers)

    def _say_what_is_left_out(self) -> None:
        if self._options.get("sinks"):
            _say("nethook: under `nethook run` `sinks` does nothing: use its --to-tracker")
        if self._report:
            _say("nethook: under `nethook run` `report` does nothing: use `nethook report`")

    def _open(self, to: str | Path | None, optimizers: Sequence[Optimizer], **options: Any) -> None:
        assert self._model is not None
        self._watch = watch(
            self._model, list(optimizers) or None, to=to, **options, **self._options
        )

    def log(self, metrics: Mapping[str, Any]) -> None:
        """Keeps the trainer's own numbers; what is no number is left out. Harmless after the end.

        Trainers call their loggers after the end of the training, too.
        """
        watching = self._current()
        if watching is None or watching.closed:
            return
        numbers = {name: number_of(value) for name, value in metrics.items()}
        watching.log(**{f"{TRAINER}{n}": v for n, v in numbers.items() if v is not None})

    def keep(self, **facts: object) -> None:
        """Keeps facts about the run, as plain data."""
        watching = self._current()
        if watching is not None and not watching.closed:
            watching.keep(**facts)

    def new_findings(self) -> list[Finding]:
        """Errors and warnings that the doctor has found since the last call, each code once.

        It looks from time to time, on a thread of its own; nothing is looked for here.
        """
        watching = self._current()
        if watching is None:
            return []
        fresh = [
            finding
            for finding in watching.last_findings
            if finding.at_least("warning") and finding.code not in self._known
        ]
        self._known.update(finding.code for finding in fresh)
        return fresh

    def react(self) -> bool:
        """Does with new findings what was asked for; whether the training is to end."""
        fresh = self.new_findings()
        for finding in fresh:
            if callable(self._on_finding):
                self._on_finding(finding)
            else:
                _say(f"nethook: {finding}\n  fix: {finding.fix}")
        return bool(fresh) and self._on_finding == "stop"

    def end(self, error: BaseException | None = None) -> None:
        """The training has ended, maybe with an error. A second call does nothing."""
        watching = self._watch
        if watching is None or watching.closed:
            return
        if error is not None:
            words = f"{type(error).__name__}: {error}"
            watching.keep(**ending(words, isinstance(error, KeyboardInterrupt)))
        watching.close()
        if error is None and self._on_finding != "stop":
            self.react()
        if self._report:
            from nethook.figures import report

            written = watching.path.with_suffix(".html")
            report(watching.path, written)
            _say(f"nethook: the report is in {line(written)}")

    def _current(self) -> Watch | None:
        if self._joins and self._model is not None:
            return watch_of(self._model)
        return self._watch


class RecordsRun:
    """The constructor that the callbacks of all trainers have.

    Arguments:
        to: the run file; `{time}` in it becomes the time. None means `runs/<time>.db`.
        budget, include, exclude, quantities, phases, snapshots, batches, threads, keep_args,
        examine, sinks: those of `nethook.watch`.
        on_finding: what happens when the doctor finds an error or a warning during training:
            "warn" prints it, "stop" prints it and ends the training, a function is called with it.
        report: write a report beside the run at the end (needs `nethook[ui]`).
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
        super().__init__()
        self.trainer_run = TrainerRun(
            to, on_finding=on_finding, report=report, budget=budget, include=include,
            exclude=exclude, quantities=quantities, phases=phases, snapshots=snapshots,
            batches=batches, threads=threads, keep_args=keep_args, examine=examine, sinks=sinks,
        )  # fmt: skip

    @property
    def path(self) -> Path | None:
        """The run file; None before the training begins."""
        return self.trainer_run.path

    def kept_state(self) -> dict[str, Any]:
        """What a checkpoint keeps: the run, and how many of its steps were done."""
        path = self.trainer_run.path
        return {} if path is None else {"run": str(path), "step": self.trainer_run.step}


def read_state(kept: object) -> dict[str, Any]:
    """What `kept_state` gave, from a checkpoint that anybody may have written; else nothing."""
    if not isinstance(kept, Mapping):
        return {}
    run, step = kept.get("run"), kept.get("step")
    return {"run": run, "step": step} if isinstance(run, str) and type(step) is int else {}


def number_of(value: Any) -> float | None:
    """A number from what trainers log: numbers and tensors of one element; None for the rest."""
    if isinstance(value, bool | str) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _under_nethook_run(model: nn.Module) -> bool:
    """Whether `nethook run` waits for models in this process, or follows this one."""
    return any(hook.owner == "nethook run" for hook in audit(model).ours)


def _say(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
