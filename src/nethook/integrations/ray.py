"""nethook in the workers of Ray Train.

from nethook.ray import followed

trainer = TorchTrainer(followed(train, to="runs/mnist.db"), scaling_config=ScalingConfig(2))

Ray starts its workers itself, so `nethook run` does not reach them; and it kills them when they
have done their work, so a run that a hook of the worker's process begins would never be closed.
The training function is what begins and ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

from nethook.hooks.imports import when_imported
from nethook.running.detecting.following import Session
from nethook.running.detecting.watches import start_watching
from nethook.running.options import RunOptions
from nethook.running.paths import run_file
from nethook.running.tracebacks import one_line

P = ParamSpec("P")
T = TypeVar("T")


def followed(
    train: Callable[P, T],
    to: str | None = None,
    *,
    budget: float | None = 0.03,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    batches: int = 3,
    examine: bool = False,
    sinks: Sequence[str] = (),
) -> Callable[P, T]:
    """A training function for `TorchTrainer`, with which each worker records what it trains.

    All workers write one run, with a file per rank. The folder must be one that every node sees.
    Nothing is printed by the workers: `nethook diagnose` reads the run.

    Arguments:
        train: the function that Ray calls in each worker.
        to: the run file; None means `runs/NAME-TIME.db`, below the folder that the driver is in.
        budget, include, exclude, batches, examine, sinks: those of `nethook.watch`; sinks by name.
    """
    name = getattr(train, "__name__", "train")
    options = RunOptions(
        run_file(to, name), name, budget, tuple(include), tuple(exclude), batches,
        examine=examine, sinks=tuple(sinks),
    )  # fmt: skip

    @wraps(train)  # Ray looks at what a training function takes
    def recorded(*args: P.args, **kwargs: P.kwargs) -> T:
        session = Session(options, start_watching)
        when_imported("torch", session.begin)
        try:
            result = train(*args, **kwargs)
        except BaseException as error:
            session.end(one_line(error), interrupted=isinstance(error, KeyboardInterrupt))
            raise
        session.end()
        return result

    return recorded
