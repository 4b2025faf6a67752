"""Scores of evaluations: answers that the script compares with labels, `(out.argmax(1) == y)`.

In a pass without gradient every comparison of two tensors is looked at: where one side is what the
model has just answered (the largest output of each sample, or outputs above zero or a half), the
other side is the labels. No operation is followed; the numbers themselves tell. Answers that are
collected over a pass and compared at its end are known, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any, Final

import numpy as np
import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.process.source_line import ScriptLine, line_of_script
from nethook.runs import names
from nethook.stats.tables import fingerprint
from nethook.stats.transfers import Transfers
from nethook.watching.evaluations.answers import FEWEST, Found, Pass, is_followed, read, written
from nethook.watching.evaluations.thinning import Thinning
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.recorder import Recorder

OUTPUTS: Final = 3
"""Tensors among what a model returns that are followed."""
PRINTED: Final = 256
"""Batches of a pass of which labels and inputs are marked, to be known again in the next."""


class Scores(FailsAlone, Recorder):
    """Knows the answers of the pass that is under way, and what they are compared with.

    Arguments:
        journal: where records and scores go.
        name_of: names a line of the script.

    Cost: nothing in training steps; about 50 µs for a batch of an evaluation that is compared.
    """

    part = "the scores of evaluations"
    rests = ("call_ends",)

    def __init__(self, journal: Journal, name_of: Callable[[ScriptLine], str]) -> None:
        self._watching: Journal = journal
        self._name_of = name_of
        self.off = False
        self._pass = Pass()
        self._lines: dict[tuple[str, int], _Line] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._others: set[tuple[str, int]] = set()
        """Lines that compare other things, too: where all are right, labels look like answers."""
        self._thinned: dict[str, Thinning] = {}
        self._last: dict[str, tuple[list[float], list[float]]] = {}
        self._transfers = Transfers()

    def call_ends(self, model: str, module: nn.Module, args: Any, output: Any) -> None:
        """What a model has returned without gradient are its answers."""
        calls = self._watching.clock.calls
        if not (calls.training or calls.in_backward or self.off):
            self._answered(module, args, output)

    @contained
    def _answered(self, module: nn.Module, args: Any, output: Any) -> None:
        under_way = self._pass
        under_way.thread = get_ident()
        under_way.turn(module.training)
        for _, tensor in tensors(output)[:OUTPUTS]:
            if is_followed(tensor):
                under_way.outputs.append((tensor.detach(), written(tensor)))
        if under_way.outputs:
            under_way.given = next(
                (tensor for _, tensor in tensors(args or ())[:1] if type(tensor) is torch.Tensor),
                None,
            )

    @contained
    def compared(self, left: torch.Tensor, right: torch.Tensor, result: torch.Tensor) -> bool:
        """Two tensors were compared; whether they are answers and labels of an evaluation."""
        under_way, clock = self._pass, self._watching.clock
        if not under_way.answers or clock.calls.depth or not clock.no_grad.open:
            return False
        if get_ident() != under_way.thread or not (left.numel() and right.numel()):
            return False
        found = read(left, right, result, under_way)
        where = line_of_script()
        if found is None:
            self._others.add(where[:2])
            return False
        line = self._lines.get(where[:2])
        if line is None:
            line = self._lines[where[:2]] = _Line(where, found.classes, found.shapes)
        elif line.classes != found.classes:
            return False
        line.add(found, under_way)
        under_way.seen = True
        return len(found.labels) >= FEWEST or line.comparisons >= FEWEST

    def pass_ended(self, phase: str) -> None:
        """What each line has compared comes to a score."""
        if self._pass.outputs or self._pass.answers:
            self._end(phase)

    @contained
    def _end(self, phase: str) -> None:
        ended, self._pass = self._pass, Pass()
        lines, self._lines = self._lines, {}
        if phase == "eval" and "eval" in self._watching.options.phases:
            for key, line in lines.items():
                if key in self._others:
                    continue
                # Single numbers are equal by chance now and then: all of them have to be answers.
                if line.numbers is not None and (line.many or line.comparisons == ended.calls):
                    told = functools.partial(self._tell, line, self._watching.step)
                    self._transfers.put(line.numbers, told)

    @contained
    def _tell(self, line: _Line, step: int, numbers: list[float]) -> None:
        """The numbers of a line are known."""
        known = _data(line, numbers)
        if known is None:
            return
        key = line.where[:2]
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = self._name_of(line.where)
            self._thinned[name] = Thinning()
        journal = self._watching
        journal.writer.log(names.score_name(name), known["accuracy"], step, keep=names.KEPT_STEPS)
        before, now = self._last.get(name), line.prints
        self._last[name] = now
        if before is not None and now[0] and len(before[0]) == len(now[0]):
            known["same_labels"] = before[0] == now[0]
            if len(now[1]) == len(now[0]) == len(before[1]):
                known["same_inputs"] = before[1] == now[1]
        if self._thinned[name].takes():
            journal.writer.loss(name, step, known, "eval")

    def end_window(self) -> None:
        """A window ends, and devices are waited for anyway."""
        if len(self._transfers):
            self._fetch()

    @contained
    def _fetch(self) -> None:
        self._transfers.fetch()

    @contained
    def close(self) -> None:
        """Watching ends."""
        self._transfers.flush()

    def turn_off(self) -> None:
        """After an error: no score is recorded any more, and nothing is held."""
        self.off = True
        self._pass = Pass()
        self._lines = {}
        self._transfers = Transfers()


@dataclass
class _Line:
    """What one line of the script has compared in a pass."""

    where: ScriptLine
    classes: int
    shapes: tuple[list[int], list[int]]
    comparisons: int = 0
    many: bool = True  # whether each comparison was of several answers
    each_with_each: bool = False
    numbers: torch.Tensor | None = None
    training: list[bool] = field(default_factory=list)
    prints: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def add(self, found: Found, under_way: Pass) -> None:
        """One comparison."""
        self.comparisons += 1
        self.many = self.many and len(found.labels) > 1
        self.each_with_each = self.each_with_each or found.each_with_each
        self.numbers = found.numbers if self.numbers is None else self.numbers + found.numbers
        if under_way.training not in self.training:
            self.training.append(under_way.training)
        if len(self.prints[0]) < PRINTED and found.labels.is_cpu:
            given = None if found.collected else under_way.given
            for marks, tensor in zip(self.prints, (found.labels, given), strict=True):
                mark = None if tensor is None else fingerprint(tensor.contiguous())
                if mark is not None:
                    marks.append(mark)


def _data(line: _Line, numbers: list[float]) -> dict[str, Any] | None:
    """The record of a pass; None where it was no comparison of answers with labels."""
    fitting, rows, hits = numbers[:3]
    if fitting < line.comparisons or rows < FEWEST:
        return None
    where, classes, rest = line.where, line.classes, np.asarray(numbers[3:])
    data: dict[str, Any] = {
        "kind": names.EQUAL,
        "source": f"{where.file}:{where.line}",
        "function": where.function,
        "accuracy": hits / rows,
        "rows": int(rows),
        "comparisons": line.comparisons,
        "training": line.training,
        "prediction": {"shape": line.shapes[0]},
        "target": {"shape": line.shapes[1]},
        "broadcast": line.each_with_each,
    }
    if len(rest) == classes * classes:
        confused = rest.reshape(classes, classes)
        data |= _counts(confused.sum(1), confused.sum(0))
        data |= _renamed(confused, rows)
    elif len(rest) == 2 * classes:
        data |= _counts(rest[:classes], rest[classes:])
    return data


def _counts(said: Any, wanted: Any) -> dict[str, Any]:
    return {
        "argmax_counts": [int(count) for count in said],
        "class_counts": [int(count) for count in wanted],
    }


def _renamed(confused: Any, rows: float) -> dict[str, Any]:
    """What the score would be if each class that is answered stood for another one.

    Only where it is one to one: as many classes as are answered.
    """
    named = confused.argmax(1)
    answered = confused.sum(1) > 0
    if len({*named[answered].tolist()}) != int(answered.sum()):
        return {}
    pairs = {int(said): int(named[said]) for said in np.flatnonzero(answered)}
    return {
        "renamed": float(confused.max(1).sum() / rows),
        "renaming": [[said, meant] for said, meant in pairs.items() if said != meant],
    }
