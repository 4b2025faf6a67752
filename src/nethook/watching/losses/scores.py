"""Scores of evaluations: answers that the script compares with labels, `(out.argmax(1) == y)`.

In a pass without gradient every comparison of two tensors is looked at: where one side is what the
model has just answered (the largest output of each sample, or outputs above zero or a half), the
other side is the labels. No operation is followed; the numbers themselves tell. Answers that are
collected over a pass and compared at its end are known, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any, Final, NamedTuple

import numpy as np
import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.hooks.modes import unrecorded
from nethook.hooks.process.source_line import ScriptLine, line_of_script
from nethook.runs import names
from nethook.stats.shards import is_shared
from nethook.stats.tables import fingerprint
from nethook.stats.transfers import Transfers
from nethook.torch_private import version_of
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.losses.thinning import Thinning
from nethook.watching.recorder import Recorder

LARGEST: Final = 1 << 20
"""Elements of an output beyond which its answers are not followed."""
OUTPUTS: Final = 3
"""Tensors among what a model returns that are followed."""
CONFUSED: Final = 64
"""Classes up to which it is counted which is taken for which."""
COUNTED: Final = 1000
"""Classes up to which answers and labels are counted."""
COLLECTED: Final = 1 << 16
"""Answers of a pass that are kept, to be compared at its end."""
PRINTED: Final = 256
"""Batches of a pass of which labels and inputs are marked, to be known again in the next."""
FEWEST: Final = 8
"""Answers of a pass below which it has no score."""


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
        self._pass = _Pass()
        self._names: dict[tuple[str, int], str] = {}
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
            if _is_followed(tensor):
                under_way.outputs.append((tensor.detach(), version_of(tensor)))
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
        found = _read(left, right, result, under_way)
        if found is None:
            return False
        where = line_of_script()
        line = under_way.lines.get(where[:2])
        if line is None:
            line = under_way.lines[where[:2]] = _Line(where, found.classes, found.shapes)
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
        ended, self._pass = self._pass, _Pass()
        if phase == "eval" and "eval" in self._watching.options.phases:
            for line in ended.lines.values():
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
        self._pass = _Pass()
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

    def add(self, found: _Found, under_way: _Pass) -> None:
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


class _Pass:
    """Answers of the pass that is under way."""

    def __init__(self) -> None:
        self.outputs: list[tuple[torch.Tensor, int]] = []
        self.given: torch.Tensor | None = None
        self.collected: list[torch.Tensor] = []
        self.kept = 0
        self.classes = 0  # of those that are collected
        self.calls = 0
        self.seen = False  # whether the last answers were compared
        self.training = False
        self.thread = 0
        self.lines: dict[tuple[str, int], _Line] = {}

    @property
    def answers(self) -> bool:
        """Whether there are any."""
        return bool(self.outputs or self.collected)

    def turn(self, training: bool) -> None:
        """Another call of a model has ended: answers that nobody compared may be collected."""
        if self.outputs and not self.seen:
            self._collect()
        self.calls += 1
        self.outputs, self.given, self.seen, self.training = [], None, False, training

    def _collect(self) -> None:
        for output, _ in self.outputs[:1]:
            if output.dim() >= 2 and output.shape[1] > 1 and self.kept < COLLECTED:
                answers = _largest(output, 1)
                self.kept += answers.numel()
                self.classes = output.shape[1]
                self.collected.append(answers)


def _is_followed(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.is_floating_point()
        and 0 < tensor.numel() <= LARGEST
        and tensor.layout is torch.strided
        and not (tensor.is_meta or is_shared(tensor))
    )


class _Compared(NamedTuple):
    """Both sides of a comparison, one number a sample."""

    one: torch.Tensor
    other: torch.Tensor
    shapes: tuple[list[int], list[int]]
    each_with_each: bool  # by mistake: (N,) and (N, 1) make N x N


class _Found(NamedTuple):
    """A comparison of answers with labels."""

    numbers: torch.Tensor  # comparisons that fit, rows, hits; then counts of classes
    labels: torch.Tensor
    classes: int
    shapes: tuple[list[int], list[int]]  # of answers, of labels
    each_with_each: bool
    collected: bool = False  # over several calls


@unrecorded
def _read(
    left: torch.Tensor, right: torch.Tensor, result: torch.Tensor, under_way: _Pass
) -> _Found | None:
    sides = _sides(left, right, result)
    if sides is None:
        return None
    one = sides.one
    for output, version in reversed(under_way.outputs):
        if version_of(output) != version or output.device != one.device:
            continue
        for answers, classes in _answers_of(output, left.shape, one.numel()):
            found = _matched(answers, classes, sides)
            if found is not None:
                return found
    return _of_collected(sides, under_way)


def _sides(left: torch.Tensor, right: torch.Tensor, result: torch.Tensor) -> _Compared | None:
    each = left.numel() == right.numel() < result.numel() == left.numel() ** 2
    shapes = list(left.shape), list(right.shape)
    if not each and left.dim() == right.dim() == 2 and _are_ranked(left, right):
        # The largest k of each sample: the first of them is the answer.
        rank = 0 if left.shape[1] == right.shape[1] and not _repeats(left, right, 1) else 1
        left, right = left.select(rank, 0), right.select(rank, 0)
        shapes = list(left.shape), list(right.shape)
    one, other = left.reshape(-1), right.reshape(-1)
    if one.numel() != other.numel() or one.device != other.device:
        return None
    if one.is_complex() or other.is_complex():
        return None
    return _Compared(one, other, shapes, each)


def _of_collected(sides: _Compared, under_way: _Pass) -> _Found | None:
    """Answers of the whole pass, compared at its end."""
    parts = [*under_way.collected]
    if not parts:
        return None
    if under_way.outputs and not under_way.seen:
        parts += [_largest(output, 1) for output, _ in under_way.outputs[:1] if output.dim() >= 2]
    number = sum(part.numel() for part in parts)
    if number != sides.one.numel() or any(part.device != sides.one.device for part in parts):
        return None
    answers = torch.cat([part.reshape(-1) for part in parts])
    found = _matched(answers, under_way.classes, sides)
    return None if found is None else found._replace(collected=True)


def _are_ranked(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether one side is repeated along the ranks of the other."""
    return left.numel() != right.numel() or _repeats(left, right, 0) or _repeats(left, right, 1)


def _repeats(left: torch.Tensor, right: torch.Tensor, dim: int) -> bool:
    return any(side.stride(dim) == 0 and side.shape[dim] > 1 for side in (left, right))


def _largest(output: torch.Tensor, dim: int) -> torch.Tensor:
    return output.argmax(dim)


def _answers_of(
    output: torch.Tensor, shape: Sequence[int], number: int
) -> list[tuple[torch.Tensor, int]]:
    """What a model may have answered, as so many numbers, and of how many classes."""
    found: list[tuple[torch.Tensor, int]] = []
    sizes = output.shape
    if output.dim() >= 2:
        last = output.dim() - 1
        fits = [
            dim for dim in {1, last} if sizes[dim] > 1 and output.numel() // sizes[dim] == number
        ]
        alike = [dim for dim in fits if list(shape) == [*sizes[:dim], *sizes[dim + 1 :]]]
        found = [(_largest(output, dim), sizes[dim]) for dim in (alike or sorted(fits))]
    elif output.dim() == 1 and number == 1 and len(output) > 1:
        found = [(_largest(output, 0), len(output))]
    if output.numel() == number:
        found += [((output > 0).long(), 2), ((output > 0.5).long(), 2)]
    return found


def _matched(answers: torch.Tensor, classes: int, sides: _Compared) -> _Found | None:
    """A comparison, where one of its sides has these answers.

    On a device nothing is asked of it: whether they fit is one of the numbers.
    """
    one, other, answers = sides.one, sides.other, answers.reshape(-1)
    fits = [(side == answers).all() for side in (one, other)]
    if answers.is_cpu:
        if not any(fits):
            return None
        first = bool(fits[0])
        labels = other if first else one
    elif one.is_floating_point() or other.is_floating_point() or len(answers) < FEWEST:
        return None
    else:
        first, labels = True, torch.where(fits[0], other, one)
    valid = (fits[0] | fits[1]).float().reshape(1)
    rows = torch.full_like(valid, float(len(answers)))
    hits = (labels == answers).sum().float().reshape(1)
    parts = [valid, rows, hits]
    if 2 <= classes <= COUNTED and len(answers) * classes <= LARGEST:
        every = torch.arange(classes, device=answers.device)
        said = (answers[:, None] == every).float()
        wanted = (labels[:, None] == every).float()
        if classes <= CONFUSED:
            parts.append((said.T @ wanted).reshape(-1))
        else:
            parts += [said.sum(0), wanted.sum(0)]
    shapes = sides.shapes if first else sides.shapes[::-1]
    return _Found(torch.cat(parts).double(), labels, classes, shapes, sides.each_with_each)


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
