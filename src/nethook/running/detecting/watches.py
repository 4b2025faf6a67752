"""`nethook.watch` as a session uses it.

Models that are there at the first call are one run. A model that comes later begins a run of its
own, in a file beside the first: a script that trains one model after the other has trained twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from nethook.errors import OtherModelError, RunExistsError, RunInUseError
from nethook.running.detecting.following import Watcher
from nethook.running.detecting.untouched import Untouched
from nethook.running.options import RunOptions

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from nethook.watching.watch import Watch


def start_watching(
    options: RunOptions, models: Mapping[str, nn.Module], optimizers: Sequence[Optimizer] = ()
) -> Watcher:
    """Begins to follow models; `optimizers` are those that are alive."""
    return Watches(options, models, optimizers)


class Watches:
    """The watches of one process, in the order in which they began."""

    def __init__(
        self,
        options: RunOptions,
        models: Mapping[str, nn.Module],
        optimizers: Sequence[Optimizer] = (),
    ) -> None:
        self._options = options
        self._open: list[tuple[Watch, frozenset[int]]] = []
        self._paths: list[Path] = []
        self._untouched: dict[Path, Untouched] = {}
        self.notes: list[str] = []
        """What a person should know of runs that were gone on with."""
        self.left_alone: list[Path] = []
        """Runs of other models, or of other processes, that were not gone on with."""
        self._problems: list[str] = []
        self.add(models, optimizers)

    @property
    def paths(self) -> list[Path]:
        """The files of all runs, the first one first."""
        return list(self._paths)

    @property
    def problems(self) -> list[str]:
        """What could not be written of the runs that have ended, and why."""
        return list(self._problems)

    def add(
        self, models: Mapping[str, nn.Module], optimizers: Sequence[Optimizer] = ()
    ) -> None:  # fmt: skip
        """Begins another run."""
        from nethook.running.detecting.discover import parameters_of

        parameters = frozenset(
            id(parameter) for model in models.values() for parameter in model.parameters()
        )
        # A watch that is told of no optimizer looks for them among all objects, as was just done.
        theirs = [
            optimizer
            for optimizer in optimizers
            if any(id(parameter) in parameters for parameter in parameters_of(optimizer))
        ]
        watch = self._begin(models, theirs)
        if not watch.resumed:
            self._untouched[watch.path] = Untouched(models)
        self._open.append((watch, parameters))
        self._paths.append(watch.path)

    def _begin(self, models: Mapping[str, nn.Module], optimizers: list[Optimizer]) -> Watch:
        """A watch of these models, in the first file that is free, or that is their run."""
        from nethook.hooks.process.loss_functions import list_functions
        from nethook.watching.watch import watch

        list_functions()  # before the script has shown a warning, as a rule
        options = self._options
        [*several] = models.values()
        refused = ""
        for path in _free_paths(Path(options.to)):
            # A run of this process has ended when the next begins: it is not gone on with.
            resume = options.resume and path not in self._paths
            try:
                begun = watch(
                    several[0] if len(several) == 1 else dict(models),
                    optimizers or None,
                    to=path,
                    resume=resume,
                    step=options.step if resume and not self._paths else None,
                    include=list(options.include) or None,
                    exclude=list(options.exclude) or None,
                    budget=options.budget,
                    batches=options.batches,
                    keep_args=options.keep_args,
                    examine=options.examine,
                    sinks=options.sinks,
                )
            except RunExistsError:  # another process, or the run before
                continue
            except (OtherModelError, RunInUseError) as error:
                refused = refused or (_refusal(path, error) if options.resume else "")
                self.left_alone.append(path)
                continue
            break
        if begun.resumed:
            self.notes.append(_resumed(path, begun.step, begun.dropped, options.step))
        elif refused:
            self.notes.append(f"{refused} This run is in {path.name}.")
        begun.be_silent()  # it is all said at the end of the run
        begun.keep(name=options.name)
        # A writer that nobody has closed ends before what was registered with `atexit` earlier.
        # This one is closed there, after all that the script has to do.
        begun.outlive_script()
        return begun

    def settle(self, trained: AbstractSet[int]) -> None:
        """Ends the runs of models that no optimizer holds any more.

        A watch sees every backward pass; what comes after such a model is not about it. It also
        keeps its model alive, which the script may have let go.
        """
        over = [watch for watch, parameters in self._open if not parameters & trained]
        self._open = [pair for pair in self._open if pair[0] not in over]
        for watch in over:
            watch.close()
            self._problems += [
                f"{problem[:1].upper()}{problem[1:]}." for problem in watch.sink_problems
            ]
            if watch.problem is not None:
                what = "Not all" if watch.path.exists() else "Nothing"
                self._problems.append(f"{what} of the run could be written: {watch.problem}.")
            # Something else is trained, or was: there is a run to be looked at.
            if trained or len(self._paths) > 1:
                self._forget_untrained(watch)

    def _forget_untrained(self, watch: Watch) -> None:
        """Takes a run away in which nothing was trained but other models."""
        from nethook.runs.writing.connection import remove_run

        start, stepped = self._untouched.get(watch.path), watch.stepped
        if start is not None and not stepped and start.still():
            remove_run(watch.path)
            self._paths.remove(watch.path)

    def keep(self, **facts: object) -> None:
        """Keeps facts in the runs that are open."""
        for watch, _ in self._open:
            watch.keep(**facts)

    def ended_with(self, error: str, *, interrupted: bool) -> None:
        """Keeps what the script has ended with in the runs that are open."""
        from nethook.watching.watch import ending

        for watch, _ in self._open:
            watch.keep(**ending(error, interrupted))

    def close(self) -> None:
        """Ends all runs."""
        self.settle(frozenset())

    def abandon(self) -> None:
        """Nothing: a watch turns itself off in a forked process."""


def _resumed(path: Path, step: int, dropped: tuple[int, int] | None, asked: int | None) -> str:
    """What a person should know of a run that was gone on with."""
    said = f"Resumed {path.name} at step {step:,}"
    if dropped is not None:
        first, last = dropped
        what = f"step {first:,}" if first == last else f"steps {first:,} to {last:,}"
        return f"{said}; the earlier record of {what} was dropped."
    if asked is None:
        return f"{said}, after its last one. Was the checkpoint of another step? Type --step."
    return f"{said}."


def _refusal(path: Path, error: OtherModelError | RunInUseError) -> str:
    """Why a run was left alone, without what a caller of `watch` would have to type."""
    if isinstance(error, OtherModelError) and error.differences:
        return (
            f"{path.name} was left as it is: it is the run of another model ({error.differences})."
        )
    return str(error)


def _free_paths(path: Path) -> Iterator[Path]:
    """The path, then with -2, -3 and so on behind its name."""
    yield path
    count = 1
    while True:
        count += 1
        yield path.with_name(f"{path.stem}-{count}{path.suffix}")
