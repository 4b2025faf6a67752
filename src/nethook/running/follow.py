"""`nethook.watch` as a session uses it.

Models that are there at the first call are one run. A model that comes later begins a run of its
own, in a file beside the first: a script that trains one model after the other has trained twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING

from nethook.errors import RunExistsError
from nethook.running.options import RunOptions
from nethook.running.session import Watcher

if TYPE_CHECKING:
    from torch import nn

    from nethook.watching.watch import Watch


def start_watching(options: RunOptions, models: Mapping[str, nn.Module]) -> Watcher:
    """Begins to follow models."""
    return Watches(options, models)


class Watches:
    """The watches of one process, in the order in which they began."""

    def __init__(self, options: RunOptions, models: Mapping[str, nn.Module]) -> None:
        self._options = options
        self._open: list[tuple[Watch, frozenset[int]]] = []
        self._paths: list[Path] = []
        self._problems: list[str] = []
        self.add(models)

    @property
    def paths(self) -> list[Path]:
        """The files of all runs, the first one first."""
        return list(self._paths)

    @property
    def problems(self) -> list[str]:
        """What could not be written of the runs that have ended, and why."""
        return list(self._problems)

    def add(self, models: Mapping[str, nn.Module]) -> None:
        """Begins another run."""
        parameters = frozenset(id(each) for model in models.values() for each in model.parameters())
        watch = _watch(self._options, models)
        self._open.append((watch, parameters))
        self._paths.append(watch.path)

    def settle(self, trained: AbstractSet[int]) -> None:
        """Ends the runs of models that no optimizer holds any more.

        A watch sees every backward pass; what comes after such a model is not about it. It also
        keeps its model alive, which the script may have let go.
        """
        over = [watch for watch, parameters in self._open if not parameters & trained]
        self._open = [each for each in self._open if each[0] not in over]
        for watch in over:
            watch.close()
            if watch.problem is not None:
                self._problems.append(f"Not all of the run could be written: {watch.problem}.")

    def close(self) -> None:
        """Ends all runs."""
        self.settle(frozenset())

    def abandon(self) -> None:
        """Nothing: a watch turns itself off in a forked process."""


def _watch(options: RunOptions, models: Mapping[str, nn.Module]) -> Watch:
    from nethook.hooks.loss_functions import list_functions
    from nethook.watching.watch import watch

    list_functions()  # before the script has shown a warning, as a rule
    [*several] = models.values()
    for path in _free_paths(Path(options.to)):
        try:
            begun = watch(
                several[0] if len(several) == 1 else dict(models),
                to=path,
                include=list(options.include) or None,
                exclude=list(options.exclude) or None,
                budget=options.budget,
                batches=options.batches,
            )
        except RunExistsError:  # another process, or the run before
            continue
        begun.be_silent()  # it is all said at the end of the run
        begun.keep(name=options.name)
        # A writer that nobody has closed ends before what was registered with `atexit` earlier.
        # This one is closed there, after all that the script has to do.
        begun.outlive_script()
        return begun
    raise AssertionError  # there is always a free path


def _free_paths(path: Path) -> Iterator[Path]:
    """The path, then with -2, -3 and so on behind its name."""
    yield path
    count = 1
    while True:
        count += 1
        yield path.with_name(f"{path.stem}-{count}{path.suffix}")
