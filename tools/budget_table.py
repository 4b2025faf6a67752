"""Simulates watched trainings with the real budget, and writes the table of docs/watch.md.

    python -m tools.budget_table

No time passes: the clock of the budget is a number that the simulation turns. What nethook's work
takes is in `Machine`; which step measures what is decided by `nethook.watching.budget`, which is
asked as a session asks it. tests/watching/test_budget_simulation.py holds what is promised.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nethook.watching.budget import (
    LOOKS,
    LOOKS_LEAST,
    MOST,
    OTHER,
    QUANTITIES,
    Budget,
    next_sampled,
)
from nethook.watching.diagnosis import DEAREST, FIRST, GROWTH

PAGE = Path(__file__).resolve().parent.parent / "docs" / "watch.md"
BEGIN = "<!-- budget: written by tools/budget_table.py -->"
END = "<!-- end of budget -->"
STEP_TIMES = (0.2e-3, 0.5e-3, 1e-3, 2.6e-3, 10e-3, 60e-3, 0.3, 1.0, 10.0)
"""Seconds that a step takes by itself."""


@dataclass(frozen=True)
class Machine:
    """What nethook's work takes, in seconds.

    Attributes:
        quiet: a step in which nothing is looked at.
        looking: a step that looks at gradients and the batch.
        least: all quantities of a step, for a small network (an MLP of five layers) ...
        part: ... and for a large one, as a part of its step.
        parts: of that, by quantity.
        window: what the writer's thread takes for one window.
        diagnosis: one look of the doctor's.
    """

    quiet: float = 80e-6
    looking: float = 160e-6
    least: float = 0.4e-3
    part: float = 0.05
    parts: tuple[float, ...] = (0.2, 0.1, 0.2, 0.5)
    window: float = 0.3e-3
    diagnosis: float = 0.05


@dataclass(frozen=True)
class Training:
    """What is watched, and with which budget.

    Attributes:
        step: seconds that a step takes by itself.
        steps: how many there are.
        change: the factor by which steps are longer in the second half.
        disk: the factor by which the writer is slower.
        share: the budget.
        jitter: standard deviation of the time of a step and of each cost, as a part of it.
    """

    step: float
    steps: int
    change: float = 1.0
    disk: float = 1.0
    share: float | None = 0.03
    jitter: float = 0.15
    machine: Machine = Machine()

    @property
    def everything(self) -> float:
        """Seconds that it takes to measure every quantity of a step."""
        return max(self.machine.least, self.machine.part * self.step)

    @property
    def least(self) -> float:
        """Seconds per step that no budget can save: `MOST`, and what is looked at in any case."""
        machine = self.machine
        whole = self.everything + machine.looking + machine.window * self.disk
        return machine.quiet + machine.looking * LOOKS / LOOKS_LEAST + whole / MOST


class Clock:
    """A clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@dataclass(frozen=True)
class Outcome:
    """What became of a training that was watched.

    Attributes:
        training: what was simulated.
        budget: as it is at the end.
        measured: for each quantity the steps that measured it.
        halves: what watching has cost relative to training, in each half of the run.
    """

    training: Training
    budget: Budget
    measured: tuple[list[int], ...] = field(repr=False)
    halves: tuple[float, ...]

    @property
    def whole(self) -> list[int]:
        """The steps in which everything was measured."""
        return sorted(set.intersection(*map(set, self.measured)))

    @property
    def coverage(self) -> float:
        """In which part of the steps a quantity was measured, as a mean over quantities."""
        return sum(map(len, self.measured)) / (len(self.measured) * self.training.steps)

    @property
    def largest_gap(self) -> int:
        """Steps from one measurement of a quantity to its next, at most."""
        ends = [[-1, *steps, self.training.steps] for steps in self.measured]
        return max(after - at for steps in ends for at, after in itertools.pairwise(steps))

    @property
    def excess(self) -> float:
        """Seconds above the budget, opening included."""
        costs = self.budget.costs
        return costs.steps - (self.training.share or 0.0) * costs.training


def simulate(training: Training, seed: int = 0) -> Outcome:
    """Trains, and watches."""
    machine, clock, noise = training.machine, Clock(), random.Random(seed)
    budget = Budget(training.share, now=clock)
    measured: tuple[list[int], ...] = tuple([] for _ in QUANTITIES)
    marks = [(0.0, 0.0)]  # what watching had cost, and training had taken, at the end of each half
    writer, look, wait = 0.0, clock.now + FIRST, FIRST
    half = training.steps // 2
    quiet_until = passed = 0

    def vary(seconds: float) -> float:
        slow = 3.0 if noise.random() < 0.005 else 1.0  # somebody else has the processor
        return seconds * slow * max(0.3, noise.gauss(1.0, training.jitter))

    def spend(at: int, seconds: float) -> None:
        budget.spent[at] += seconds
        clock.now += seconds

    for step in range(training.steps):
        clock.now += vary(training.step * (training.change if step >= half else 1.0))
        samples = step == 0 or next_sampled(step - 1) == step
        quiet = not (budget.looks or samples)
        spend(OTHER, vary(machine.quiet if quiet else machine.looking))
        for quantity, due in enumerate(budget.due):
            if due:
                spend(quantity, vary(machine.parts[quantity] * training.everything))
                measured[quantity].append(step)
        if any(budget.due) and budget.may_write():
            writer += machine.window * training.disk
        if clock.now >= look:
            budget.doctor_took(machine.diagnosis)
            wait = max(GROWTH * wait, DEAREST * machine.diagnosis)
            look = clock.now + wait
        # Quiet steps in a row are told together, as the session's fast path does.
        if quiet and step >= quiet_until:
            quiet_until = step + budget.still() + 1
        if quiet and step + 1 < quiet_until and next_sampled(step) != step + 1:
            passed += 1
        else:
            if passed:
                budget.passed(passed)
            budget.writer_took(writer)
            budget.step_ended()
            quiet_until = passed = 0
        if step + 1 in (half, training.steps):
            marks.append((budget.costs.steps, budget.costs.training))
    halves = (
        (cost - cost_then) / (took - took_then)
        for (cost_then, took_then), (cost, took) in itertools.pairwise(marks)
    )
    return Outcome(training, budget, measured, tuple(halves))


def section() -> str:
    """The table."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "| a step takes | cost per step | opening | each quantity measured in | largest gap |"
    yield "| --- | --- | --- | --- | --- |"
    for seconds in STEP_TIMES:
        short, long = (simulate(Training(seconds, steps)) for steps in (1_000, 20_000))
        costs = long.budget.costs
        yield (
            f"| {_time(seconds)} | {costs.steady_overhead:.1%} | {costs.opening:.1f} s | "
            f"{short.coverage:.0%} of 1,000 steps, {long.coverage:.0%} of 20,000 | "
            f"{long.largest_gap} steps |"
        ).replace("%", " %")


def _time(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 0.3 else f"{1e3 * seconds:g} ms"


def page() -> str:
    """The page with the table brought up to date."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{section()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
