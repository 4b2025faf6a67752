"""`watch`: follow a training run from the first step, with two lines added to the script."""

from __future__ import annotations

import sys
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.errors import InputsError, OptionError
from nethook.hooks.threads import Threads, check_threads
from nethook.keywords import suggests
from nethook.runs import names
from nethook.text.escape import line
from nethook.text.watch_cost import watch_cost
from nethook.watching.attach import attach, given_models, given_optimizers
from nethook.watching.diagnosis import Diagnosis
from nethook.watching.fail_open import WatchWarning
from nethook.watching.session import Session
from nethook.watching.threads import tell_others

if TYPE_CHECKING:
    from nethook.doctor.finding import Finding
    from nethook.figures.notebook import Live
    from nethook.sinks.feed import Feed
    from nethook.sinks.sink import Sink

QUANTITIES: Final = ("outputs", "grads", "params", "param_grads", "updates")
"""What can be watched."""


@suggests
def watch(
    model: nn.Module | Sequence[nn.Module] | Mapping[str, nn.Module],
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
    to: str | Path | None = None,
    *,
    resume: bool = False,
    step: int | None = None,
    include: Pattern | None = None,
    exclude: Pattern | None = None,
    quantities: Sequence[str] = QUANTITIES,
    budget: float | None = 0.03,
    phases: Sequence[str] = ("train", "eval"),
    snapshots: Mapping[str, int] | None = None,
    batches: int = 3,
    threads: Threads = "own",
    keep_args: bool = False,
    examine: bool = False,
    sinks: Sequence[str | Sink] | str | Sink = (),
) -> Watch:
    """Follows a training run: every layer, every step, into one file. The run is not changed.

        with nethook.watch(model, optimizer, to="runs/mnist.db") as watch:
            train()                              # as always; optimizer.step() is the clock
            watch.log(val_accuracy=0.97)
        nethook.open_run("runs/mnist.db")

    Records, for every layer, outputs and their gradients; for every parameter its value, its
    gradient as the optimizer uses it, and the true update; the loss and how it was made; and the
    order of the loop's calls. `docs/watch.md` tells which loops are understood.

    Arguments:
        model: a module, or several as a list or by name.
        optimizer: one or several; None finds those that hold the model's parameters.
        to: the run file; `{time}` in it becomes the time. None means `runs/<time>.db`.
        resume: goes on in the run at `to`, if there is one; without it an existing run is refused.
        step: of a run that goes on, the step of the checkpoint that training goes on from: the
            number of steps that were done before. None goes on after the last step that is kept.
            Steps from there on that are in the run already are dropped: they are trained again.
        include, exclude: patterns of the layers whose outputs and gradients are recorded, as in
            `select`. None means every module without modules below it.
        quantities: which of `outputs`, `grads`, `params`, `param_grads`, `updates`.
        budget: what watching may cost, as a share of the training's own time. Above it quantities
            take turns, and then steps. None records everything at every step.
        phases: `train`, `eval`, and `aux` for passes without gradient that are no evaluation.
        snapshots: address of a layer -> how many samples of its output to keep, at steps 0, 1, 2,
            3, 4, 6, 8, 12, …
        batches: steps whose inputs are held on to, to be saved when a NaN appears; 0 holds none.
        threads: "own" follows one thread, the one that opens the watch or, where that is another,
            the one that trains; "all" follows every thread that calls the model.
        keep_args: keep the whole command line of the program. Otherwise values that might be
            secrets are kept as `***`.
        examine: run experiments on copies of the model, in the first steps and at the end: at most
            1 % of the run, but up to 0.3 s, and never more than 2 s. The script sees nothing of it.
        sinks: trackers that get the run's numbers while it trains: names such as "wandb" or
            "tensorboard:all", or `nethook.sinks.Sink` objects.

    Returns:
        A `Watch`: a context manager, with `close()`, `log(**scalars)`, `findings`, `cost` and
        `path`.

    Raises:
        RunExistsError: there is a file at `to` already.
        OtherModelError: the run to go on in has other sites or shapes than this model.
        RunInUseError: another process is writing it.
        RunFileError: `to` is a path that can never be written. A disk that is full is said in one
            warning instead, and the run is written when there is room.
        OptionError, NoSuchSiteError: an argument that means nothing.

    An error inside nethook while it watches is caught, said once, and written to the run's events.
    """
    return Watch(
        model, optimizer, to, resume=resume, step=step, include=include, exclude=exclude,
        quantities=quantities, budget=budget, phases=phases, snapshots=snapshots, batches=batches,
        threads=threads, keep_args=keep_args, examine=examine, sinks=sinks,
    )  # fmt: skip


class Watch:
    """A run that is being followed. Made by `nethook.watch`."""

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        to: str | Path | None,
        *,
        resume: bool = False,
        step: int | None = None,
        include: Pattern | None,
        exclude: Pattern | None,
        quantities: Sequence[str],
        budget: float | None,
        phases: Sequence[str],
        snapshots: Mapping[str, int] | None,
        batches: int,
        threads: Threads = "own",
        keep_args: bool = False,
        examine: bool = False,
        sinks: Sequence[str | Sink] | str | Sink = (),
    ) -> None:
        began = time.perf_counter()
        check_threads(threads)
        models = given_models(model)
        optimizers = given_optimizers(optimizer)
        wanted = _chosen("quantities", quantities, QUANTITIES)
        shown = _chosen("phases", phases, ("train", "eval", "aux"))
        if budget is not None and not 0 < budget <= 10:
            raise OptionError(
                f"`budget` must be a fraction of the training's time, above 0 and at most 10, or "
                f"None; got {budget!r}. 0.03 is 3 %; None measures everything in every step."
            )
        if batches < 0:
            raise OptionError(f"`batches` must be at least 0; got {batches!r}. 0 holds none.")
        _check_resume(to, resume, step)
        self._feed = _feed(sinks, models)
        _warn_of_strangers(models, optimizers)
        for module in models.values():
            other = _WATCHED.get(module)
            earlier = other() if other is not None else None
            if earlier is not None and not earlier.closed:
                earlier.close()
                _say(f"nethook: the earlier watch of this model ended ({line(earlier.path)})")
        self._closed = False
        self._ended = False  # closed, and written to its end
        self._lives: list[Live] = []
        self._lines: list[str] = []
        self._session, self._hooks = attach(
            models, optimizers, Path("runs") / "{time}.db" if to is None else to,
            resume=resume, step=step, include=include, exclude=exclude, wanted=wanted,
            budget=budget, phases=shown, snapshots=snapshots or {}, batches=batches,
            threads=threads, keep_args=keep_args, examine=examine, listener=self._feed,
        )  # fmt: skip
        if self.resumed:
            self.keep(ended=None)  # how it ended before
        if (dropped := self.dropped) and dropped[0] == 0:
            _say(
                f"nethook: step=0 starts {line(self.path)} over: what it had of steps 0 to "
                f"{dropped[1]:,} was dropped"
            )
        self._diagnosis = Diagnosis(self._session.journal.writer, self._session.schedule.budget)
        for module in models.values():
            _WATCHED[module] = weakref.ref(self)
        budget_of = self._session.schedule.budget
        # What the script does until it calls the model (loading data, say) is no part of training.
        self._session.recorders.first_call.append(budget_of.training_begins)
        budget_of.started(time.perf_counter() - began)

    @property
    def path(self) -> Path:
        """The run file."""
        return self._session.journal.writer.path

    @property
    def overhead(self) -> float:
        """What the steps have cost so far, as a fraction of the training's own time.

        The opening is part of it: in a short run it is most of it. What a further step costs is
        `cost["steady_overhead"]`.
        """
        return self._session.schedule.budget.overhead

    @property
    def cost(self) -> dict[str, float | None]:
        """What watching has cost so far, in seconds, by part of the run and by thread.

        `docs/watch.md` explains each. `steady_overhead` is None as long as the opening lasts.
        """
        session = self._session
        if not self._closed:
            session.schedule.budget.writer_took(session.journal.writer.seconds)
        return session.schedule.budget.as_dict()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the run so far; to look takes a fraction of a second."""
        return self._diagnosis.findings if self._closed else self._diagnosis.look()

    @property
    def last_findings(self) -> tuple[Finding, ...]:
        """What the doctor found when it last looked, on its own thread; nothing is looked at."""
        return self._diagnosis.findings

    @property
    def problem(self) -> str | None:
        """Why nothing is being written at the moment, or was to the end; None where all is well."""
        return self._session.journal.writer.problem

    @property
    def sink_problems(self) -> list[str]:
        """Which sinks were switched off, and why; the run has an event for each."""
        return [] if self._feed is None else self._feed.problems

    @property
    def step(self) -> int:
        """The step that is under way, from 0."""
        return self._session.clock.step

    @property
    def stepped(self) -> bool:
        """Whether an optimizer of the model's parameters has stepped."""
        return bool(self._session.clock.optimizer_steps)

    @property
    def resumed(self) -> bool:
        """Whether this goes on in a run that was there before."""
        return bool(self._session.journal.writer.earlier)

    @property
    def dropped(self) -> tuple[int, int] | None:
        """The first and the last step whose earlier record was dropped to go on, if any."""
        return self._session.journal.writer.dropped

    @property
    def closed(self) -> bool:
        """Whether watching has ended."""
        return self._closed

    def log(self, **scalars: float) -> None:
        """Keeps numbers of your own at this step: `watch.log(val_accuracy=0.97)`."""
        if self._closed:
            raise OptionError("This watch was closed: nothing can be logged any more.")
        values = {}
        for name, value in scalars.items():
            try:
                values[name] = float(value)
            except (TypeError, ValueError, RuntimeError):
                raise InputsError(
                    f"`{name}` must be a number; got {type(value).__name__}. "
                    "Pass one number per name, such as loss.item()."
                ) from None
        for name, number in values.items():
            self._session.journal.writer.log(name, number, self._session.clock.step)

    def live(self, *, theme: str = "light") -> Live:
        """Shows the overview of this run in the cell of a notebook, and keeps it up to date.

        Arguments:
            theme: `light` or `dark`.

        Returns:
            What follows the run; its `stop()` ends that, as does the end of watching.
        """
        from nethook.figures.notebook import Live

        self._lives.append(Live(self.path, lambda: self._ended, theme=theme))
        return self._lives[-1]

    def be_silent(self) -> None:
        """Says nothing on standard error from now on: what is to be said is in the run's events."""
        self._session.journal.guard.silent = True

    def expect_one_batch(self) -> None:
        """All steps will have the same batch: no sign that its rows belong together."""
        self._session.journal.one_batch = True

    def keep(self, **facts: object) -> None:
        """Keeps facts about the run, as plain data: `run.info` has them."""
        self._session.journal.writer.info(**facts)

    def outlive_script(self) -> None:
        """Somebody will close this after everything that the script registered with `atexit`."""
        self._session.journal.writer.stay_open()

    def close(self) -> None:
        """Ends watching: takes every hook off and writes the rest. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        session = self._session
        began = time.perf_counter()
        try:
            self._hooks.remove()
            session.passes.turn_off()
            text = self._write_rest(began)
        finally:  # also where an interrupt came in between
            self._hooks.remove()
            session.passes.turn_off()
            session.journal.guard.alive = False
            try:
                self._send_rest()
            finally:
                session.journal.writer.close()
                self._ended = True
        for live in self._lives:
            live.finish()
        if self._feed is not None:
            self._feed.end()
            text += "".join(f"; {problem}" for problem in self.sink_problems)
        if self.problem is not None:
            text += f"; not all of it could be written ({self.problem})"
        if text and not session.journal.guard.silent:
            _say(text)

    def _send_rest(self) -> None:
        """Has trackers get what is left, while the run can still keep that one of them failed."""
        if self._feed is not None:
            self._session.journal.writer.flush()
            self._feed.drain()
            self.keep(sinks={"names": self._feed.names, "seconds": self._feed.seconds})

    def _write_rest(self, began: float) -> str:
        """Writes what is still open, and looks at all of it; what to say of the run."""
        session = self._session
        others = ""
        finished = False
        try:
            session.schedule.budget.training_ends()
            session.schedule.budget.writer_took(session.journal.writer.seconds)
            if session.journal.guard.alive:
                session.finish()
            others = tell_others(session, self._hooks.owner)
            finished = True
        except Exception as error:
            session.journal.guard.failed("closing", error, None)
        try:
            self._diagnosis.close()
        finally:  # an interrupt may have come: the end is told all the same
            text = self._tell_end(began, others) if finished else ""
        return text

    def _tell_end(self, began: float, others: str) -> str:
        """Keeps what watching has cost, the end included."""
        session = self._session
        try:
            session.schedule.budget.closed(time.perf_counter() - began)
            text = self._summary()
            if others and not session.clock.totals["forwards"]:
                text += f"; {others}"  # nothing was seen, and this is why
            cost = session.schedule.budget.as_dict()
            session.journal.writer.info(overhead=session.schedule.budget.overhead, cost=cost)
            session.journal.writer.event(
                names.CLOSED, max(0, session.clock.step - 1), text, "", cost
            )
        except Exception as error:
            session.journal.guard.failed("closing", error, None)
            return ""
        return text

    def _summary(self) -> str:
        session = self._session
        steps = session.clock.totals["steps"]
        cost = watch_cost({"cost": session.schedule.budget.as_dict()})
        every = session.schedule.budget.every
        thin = "" if every == 1 else f", at the end each quantity once in {every} steps"
        turns = session.optimizers.held.turns
        # The weights of before a step are kept up to a cap: larger models are measured in parts.
        kept = (
            f"{session.journal.options.snapshot_cap / (1 << 20):,.0f} MB of weights kept at a time"
        )
        capped = "" if turns == 1 else f", each update once in {turns} of these ({kept})"
        counted = f"{steps:,} {'step' if steps == 1 else 'steps'}"
        return (
            f"nethook: {counted} of {len(session.journal.catalogue.keys):,} series in "
            f"{line(session.journal.writer.path)}; watching cost {cost}{thin}{capped}"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._session.interruptions.error = kind.__name__
            self.keep(**ending(f"{kind.__name__}: {error}", issubclass(kind, KeyboardInterrupt)))
        self.close()

    def __repr__(self) -> str:
        session: Session = self._session
        state = "closed" if self._closed else ("on" if session.journal.guard.alive else "failed")
        return (
            f"<Watch {str(self.path)!r}: {state}, step {session.clock.step:,}, "
            f"overhead {session.schedule.budget.overhead:.1%}>"
        )


def ending(error: str, interrupted: bool) -> dict[str, object]:
    """The fact that what was watched ended with an error, for `Watch.keep`."""
    first = error.splitlines()[0][:500] if error else ""
    return {"ended": {"error": first, "interrupted": interrupted}}


# Which watch a model has: a notebook cell that is run twice must not watch twice.
_WATCHED: weakref.WeakKeyDictionary[nn.Module, weakref.ref[Watch]] = weakref.WeakKeyDictionary()


def watch_of(model: nn.Module) -> Watch | None:
    """The open watch of a model, of a part of it, or of what it is a part of; None without one."""
    parts = set(model.modules())
    for watched, reference in list(_WATCHED.items()):
        found = reference()
        related = watched in parts or any(part is model for part in watched.modules())
        if related and found is not None and not found.closed:
            return found
    return None


def _feed(sinks: Sequence[str | Sink] | str | Sink, models: Mapping[str, nn.Module]) -> Feed | None:
    """What tells trackers; None where there are none."""
    if sinks == () or sinks == []:
        return None
    from nethook.sinks.feed import Feed
    from nethook.sinks.known import chosen_sinks

    kinds = ", ".join(type(model).__name__ for model in models.values())
    feed = Feed(chosen_sinks(sinks), model=kinds)
    feed.join()
    return feed


def _chosen(option: str, given: Sequence[str], choices: tuple[str, ...]) -> tuple[str, ...]:
    asked = (given,) if isinstance(given, str) else tuple(given)
    for name in asked:
        if name not in choices:
            raise OptionError(
                f"`{option}` must be some of {', '.join(choices)}; got {name!r}. "
                f"Leave `{option}` out to get all that are usual."
            )
    return asked


def _warn_of_strangers(
    models: Mapping[str, nn.Module], optimizers: Sequence[torch.optim.Optimizer]
) -> None:
    """Says that the optimizer trains something else: its steps count, no update is recorded."""
    parameters = [each for model in models.values() for each in model.parameters()]
    # Some may be frozen for a moment only, as those of a GAN's other network are.
    own = {id(each) for each in parameters}
    trains = any(each.requires_grad for each in parameters)
    for optimizer in optimizers:
        held = (id(each) for group in optimizer.param_groups for each in group["params"])
        if trains and not any(each in own for each in held):
            warnings.warn(
                f"`optimizer` must hold parameters of the model; this {type(optimizer).__name__} "
                "holds none of them: its steps are counted, and no update will be recorded. Make "
                "it from model.parameters(), or leave `optimizer` out: nethook finds it.",
                WatchWarning,
                stacklevel=5 if sys.version_info < (3, 13) else 4,  # one is `suggests`
            )


def _check_resume(to: str | Path | None, resume: bool, step: int | None) -> None:
    if resume and (to is None or "{time}" in str(to)):
        raise OptionError(
            "`to` must name the run that `resume=True` continues, as in to='runs/mnist.db'; got "
            f"{'none' if to is None else repr(str(to))}, which is a new file each time."
        )
    if step is None:
        return
    if not resume:
        raise OptionError(f"`step` needs `resume=True`; got step={step!r} without it.")
    if type(step) is not int or step < 0:
        raise OptionError(
            f"`step` must be a number of steps done before; got {step!r}. "
            "Pass a whole number, at least 0."
        )


def _say(line: str) -> None:
    """One line on the standard error stream, where it mixes with no output of the script.

    A notebook shows that stream as an error, so its cells have the line among their outputs.
    """
    in_notebook = type(sys.stderr).__module__.partition(".")[0] == "ipykernel"
    stream = sys.stdout if in_notebook else sys.stderr
    if stream is not None:
        stream.write(line + "\n")
