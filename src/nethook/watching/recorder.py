"""What a recorder is: something that is told what happens in a training loop, and keeps part of it.

A new quantity is a new recorder in a file of its own: it overrides the methods that concern it, and
`attach` adds it to the session. Nothing else has to know it.

    class BatchTime(Recorder):
        def end_step(self, step: int) -> None:
            self._journal.log("batch_time", ..., step)

Everything is called on the training thread, inside `fail_open`: an exception costs that part of
watching, never the script. None of it may wait for a device, draw random numbers, or keep a tensor
of a graph alive (the flight recorder's ring holds inputs alone).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from nethook.watching.fail_open import FailsAlone


class Recorder:
    """Is told what happens; every method does nothing unless a recorder overrides it."""

    rests: tuple[str, ...] = ()
    """Methods of its own that have nothing to do in a training step in which nothing is due
    (`Schedule.quiet`), and are not called there: short steps should cost little."""

    def first_call(self) -> None:
        """A watched model is about to be called for the first time."""

    def call_begins(
        self, model: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """An outermost call of a watched model begins, with gradients or without."""

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """It has returned."""

    def before_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """A backward pass from these is about to begin, and its graph is whole."""

    def pass_ended(self, phase: str) -> None:
        """A pass without gradient has ended: now it is known whether it was `eval` or `aux`."""

    def before_step(self, parameters: Sequence[Any]) -> None:
        """An optimizer is about to use the gradients of these, as they are now.

        Arguments:
            parameters: `ParameterFacts` of each that it holds.
        """

    def end_step(self, step: int) -> None:
        """A step has ended. After an interrupt this is called again for the same step."""

    def end_window(self) -> None:
        """A window ends: devices are waited for anyway, so whatever is there is fetched now."""

    def close(self) -> None:
        """Watching ends."""


class Calls:
    """For each method of recorders, those that are called."""

    def __init__(self) -> None:
        self.first_call: list[Callable[[], None]] = []
        self.call_begins: list[Callable[..., None]] = []
        self.call_ends: list[Callable[..., None]] = []
        self.before_backward: list[Callable[[Sequence[torch.Tensor]], None]] = []
        self.pass_ended: list[Callable[[str], None]] = []
        self.before_step: list[Callable[[Sequence[Any]], None]] = []
        self.end_step: list[Callable[[int], None]] = []
        self.end_window: list[Callable[[], None]] = []
        self.close: list[Callable[[], None]] = []


class Recorders(Calls):
    """All recorders of a watch, and for each method those that override it."""

    def __init__(self) -> None:
        super().__init__()
        self._all: list[Recorder] = []
        self.quiet = Calls()
        """Those that are called in steps in which nothing is due."""

    def add(self, recorder: Recorder) -> None:
        """One more, which is told after all others."""
        self._all.append(recorder)
        for name in _METHODS:
            if getattr(type(recorder), name) is not getattr(Recorder, name):
                getattr(self, name).append(getattr(recorder, name))
                if name not in recorder.rests:
                    getattr(self.quiet, name).append(getattr(recorder, name))

    def window_ends(self) -> None:
        """A window ends: whoever wants to know is told."""
        for told in self.end_window:
            told()

    def failed(self, told: Callable[..., None], error: Exception) -> None:
        """A method of a recorder has raised this: it is told nothing any more, if it may fail."""
        recorder = told.__self__  # type: ignore[attr-defined]
        if not isinstance(recorder, FailsAlone):
            raise error
        recorder.failed(error)
        self.rest(recorder)

    def rest(self, recorder: object, names: Sequence[str] | None = None) -> None:
        """A recorder is not told these any more; None: nothing at all."""
        for calls in (self, self.quiet):
            for name in _METHODS if names is None else names:
                others = [other for other in getattr(calls, name) if other.__self__ is not recorder]
                setattr(calls, name, others)

    def wake(self, recorder: Recorder, names: Sequence[str]) -> None:
        """A recorder is told these again."""
        self.rest(recorder, names)
        for name in names:
            for calls in (self, self.quiet):
                # Another list: somebody may be going through this one.
                setattr(calls, name, [*getattr(calls, name), getattr(recorder, name)])

    def __iter__(self) -> Any:
        return iter(self._all)


_METHODS = (
    "first_call", "call_begins", "call_ends", "before_backward", "pass_ended", "before_step",
    "end_step", "end_window", "close",
)  # fmt: skip
