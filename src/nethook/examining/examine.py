"""All experiments on one rehearsal, within limits of time; what each has given.

    results = examine(rehearsal, deadline=Deadline(1.0)).results

An experiment that raises has failed alone. One for which there is no time left says so; whoever
calls may try it again later.
"""

from __future__ import annotations

import pkgutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from nethook.examining.experiment import (
    Experiment,
    NotReplayableError,
    OutOfTimeError,
    Result,
)
from nethook.examining.limits import Deadline
from nethook.examining.rehearsal import Rehearsal
from nethook.hooks.stack import raised_by_signal

FOLDERS: Final = ("inputs", "network", "targets")
_PACKAGE: Final = "nethook.examining.experiments"


@dataclass(frozen=True, slots=True)
class Examined:
    """What came of a step that was examined.

    Attributes:
        results: of each experiment, in order.
        late: experiments for which there was no time.
        reason: why nothing was examined at all; "" where something was.
        seconds: that it took.
    """

    results: tuple[Result, ...]
    late: tuple[Experiment, ...] = ()
    reason: str = ""
    seconds: float = 0.0


@cache
def every_experiment() -> tuple[Experiment, ...]:
    """One of each experiment in `examining/experiments`, in the order of their turns."""
    found: list[Experiment] = []
    for folder in FOLDERS:
        # As an import statement does it, which `nethook run` can tell from the script's.
        room: Any = __import__(f"{_PACKAGE}.{folder}", fromlist=("__path__",))
        for module in sorted(info.name for info in pkgutil.iter_modules(room.__path__)):
            loaded = __import__(f"{_PACKAGE}.{folder}.{module}", fromlist=("*",))
            found += [value() for value in vars(loaded).values() if _is_experiment(value, loaded)]
    return tuple(sorted(found, key=lambda one: (one.turn, type(one).__module__.split(".")[-1])))


def _is_experiment(value: Any, module: Any) -> bool:
    return (
        isinstance(value, type)
        and value.__module__ == module.__name__
        and isinstance(vars(value).get("name"), str)
        and callable(getattr(value, "applies", None))
        and callable(getattr(value, "run", None))
    )


def wants_trained(experiment: Experiment) -> bool:
    """Whether an experiment is for a model that has been trained, at the end of a run."""
    return bool(getattr(experiment, "wants_trained", False))


def examine(
    rehearsal: Rehearsal,
    experiments: Sequence[Experiment] | None = None,
    *,
    deadline: Deadline | None = None,
) -> Examined:
    """Runs experiments on a rehearsal.

    Arguments:
        rehearsal: of a step.
        experiments: None means all that there are.
        deadline: of all of them; None for no limit.
    """
    began = time.perf_counter()
    if experiments is None:
        experiments = every_experiment()
    rehearsal.deadline = deadline
    try:
        rehearsal.check()
    except OutOfTimeError as error:
        return Examined((), tuple(experiments), str(error), time.perf_counter() - began)
    except NotReplayableError as error:
        return Examined((), (), str(error), time.perf_counter() - began)
    results: list[Result] = []
    late: list[Experiment] = []
    for experiment in experiments:
        start = time.perf_counter()
        try:
            result = _one(experiment, rehearsal)
        except OutOfTimeError:
            late.append(experiment)
            result = Result(experiment.name, "not applicable", OUT_OF_TIME)
        results.append(replace(result, seconds=time.perf_counter() - start))
    return Examined(tuple(results), tuple(late), "", time.perf_counter() - began)


OUT_OF_TIME: Final = "there was no time left for it"


def _one(experiment: Experiment, rehearsal: Rehearsal) -> Result:
    try:
        reason = experiment.applies(rehearsal)
        if reason is not None:
            return Result(experiment.name, "not applicable", reason)
        return experiment.run(rehearsal)
    except OutOfTimeError:
        raise
    except NotReplayableError as error:
        return Result(experiment.name, "not applicable", str(error))
    except Exception as error:  # an error in one examination must not end the others
        if raised_by_signal(error):
            raise
        return Result(experiment.name, "failed", f"{type(error).__name__}: {error}")
