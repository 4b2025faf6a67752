"""Sequences whose target is the sequence itself: by how many steps, and what each prediction sees.

    told = followed(rehearsal)
    told.shift      # the target of row t is what the input has at t + shift
    told.reach      # row t moves with the input up to t + reach: 0 in a model that looks back only
    told.ahead      # shift - reach: 1 where a model predicts the next thing that it does not see

Only rows that the loss scores count: a prefix, or padding, may see whatever it likes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.examining.experiment import NotReplayableError
from nethook.examining.probes.batch_axis import is_whole, tensors_of, with_tensors
from nethook.examining.probes.graph import gradients
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated, once, with_graph
from nethook.examining.probes.origins import prediction_row, rows_that
from nethook.examining.rehearsal import Ran, Rehearsal

SHIFTS: Final = (-2, -1, 0, 1, 2, 3)
SAME: Final = 0.98
"""Share of scored targets that must be the input, shifted."""
OTHER: Final = 0.9
"""With any other shift there must be fewer: constant and periodic sequences tell nothing."""
FEWEST_STEPS: Final = 5


@dataclass(frozen=True, slots=True)
class Layout:
    """How an input lies, and the target with it: (samples, steps, …) unless said otherwise.

    Attributes:
        input: its number among the inputs.
        samples, time: its dimensions of samples and of steps: 1 and 0 where time comes first, 0 and
            2 where channels do.
        steps: rows of the prediction per sample, which may be fewer than steps of the input.
    """

    input: int
    samples: int = 0
    time: int = 1
    steps: int = 0

    def sequence(self, given: torch.Tensor) -> torch.Tensor:
        """The input as (samples, steps, whatever else)."""
        moved = given.movedim((self.samples, self.time), (0, 1))
        return moved.reshape(*moved.shape[:2], -1)

    def rows(self, laid: torch.Tensor, samples: int) -> torch.Tensor | None:
        """What is laid out as the target is, as (samples, steps, …); None where it is not so."""
        if laid.dim() > max(self.samples, self.time):
            moved = laid.movedim((self.samples, self.time), (0, 1))
            if moved.shape[:2] == (samples, self.steps):
                return moved.reshape(samples, self.steps, -1)
        if not laid.dim() or laid.size(0) != samples * self.steps or self.time == 2:
            return None
        if self.time == 0:
            return laid.reshape(self.steps, samples, -1).transpose(0, 1)
        return laid.reshape(samples, self.steps, -1)

    def at(self, sample: int, position: int) -> tuple[Any, ...]:
        """The index of one step of one sample in the input."""
        index: list[Any] = [slice(None)] * (max(self.samples, self.time) + 1)
        index[self.samples], index[self.time] = sample, position
        return tuple(index)


@dataclass(frozen=True, slots=True)
class Followed:
    """What the rows of a prediction see of an input that is their target.

    Attributes:
        layout: which input, and how targets lie along it.
        shift: the target of row t is the input at t + shift.
        reach: row t moves with the input up to t + reach; None where rows see all of it.
        offset: row t is made of the output at t + offset; None where that is not known.
        sees_itself: whether rows move with the very thing that is their target.
        sees_back: whether rows move with something before the last thing that they see.
        tried: positions that were changed.
        itself: of these, how many moved the row that they are the target of.
        chosen: whether the loss scores some positions among others that hold something, too.
    """

    layout: Layout
    shift: int
    reach: int | None
    offset: int | None
    sees_itself: bool
    sees_back: bool
    tried: int
    itself: int = 0
    chosen: bool = False

    @property
    def ahead(self) -> int | None:
        """Steps from the last thing that is seen to the target."""
        return None if self.reach is None else self.shift - self.reach

    @property
    def shift_of_output(self) -> int:
        """The shift, counted from the position of the output; of the row where that is unknown."""
        return self.shift - (self.offset or 0)


def followed(rehearsal: Rehearsal) -> list[Followed]:
    """Every input that the target is, with what rows see of it. Empty where there is none."""
    return once(rehearsal, "followed", lambda: _followed(rehearsal))


def _followed(rehearsal: Rehearsal) -> list[Followed]:
    found = _aligned(rehearsal)
    if not found:
        return []
    base = evaluated(rehearsal)
    scored = scored_rows(rehearsal)
    best: dict[int, Followed] = {}
    for layout, shift in found:
        told = _reach(rehearsal, base, layout, shift, scored)
        if told is None:
            continue
        # A square of numbers may be read along either side: time is where rows see others.
        if layout.input not in best or (told.sees_back and not best[layout.input].sees_back):
            best[layout.input] = told
    return list(best.values())


def scored_rows(rehearsal: Rehearsal) -> torch.Tensor:
    """Of each place of the target, whether the loss depends on the prediction beside it."""
    ran = with_graph(rehearsal)
    call = ran.main
    if call is None or call.target is None or ran.prediction is None or ran.loss is None:
        raise NotReplayableError("no target is known that predictions are compared with")
    (gradient,) = gradients(ran.loss, ran.prediction)
    everywhere = torch.ones(call.target.shape, dtype=torch.bool)
    if gradient is None:
        return everywhere
    rows = rows_that(gradient != 0, call)
    return everywhere if rows is None or not bool(rows.any()) else rows.cpu()


def aligned_inputs(rehearsal: Rehearsal) -> bool:
    """Whether some input is the target, shifted or not."""
    return bool(_aligned(rehearsal))


def _aligned(rehearsal: Rehearsal) -> list[tuple[Layout, int]]:
    return once(rehearsal, "aligned", lambda: list(_each_aligned(rehearsal)))


def _each_aligned(rehearsal: Rehearsal) -> Iterator[tuple[Layout, int]]:
    call = rehearsal.recorded.main
    if call is None or call.target is None or call.prediction is None:
        return
    target = call.target.detach().cpu()
    ignored = call.options.get("ignore_index", -100)
    for number, (_, tensor) in enumerate(tensors_of(rehearsal.inputs)):
        if tensor.dim() < 2 or tensor.layout is not torch.strided or tensor.dtype is torch.bool:
            continue
        if is_whole(tensor) != is_whole(target) or tensor.is_complex():
            continue
        if is_whole(tensor) and tensor.dim() != 2:
            continue
        for layout, shift in _matches(tensor.detach().cpu(), target, ignored):
            yield replace(layout, input=number), shift


def _layouts(given: torch.Tensor) -> Iterator[Layout]:
    """The ways in which a tensor may be a sequence."""
    yield Layout(0)
    if is_whole(given) or given.dim() > 2:
        yield Layout(0, samples=1, time=0)
    if given.dim() == 3 and not is_whole(given):
        yield Layout(0, samples=0, time=2)


def _matches(
    given: torch.Tensor, target: torch.Tensor, ignored: object
) -> Iterator[tuple[Layout, int]]:
    """The layouts, and the one shift of each, at which target and input agree."""
    for layout in _layouts(given):
        sequence = layout.sequence(given)
        samples, steps = sequence.shape[:2]
        if steps < FEWEST_STEPS or samples < 2:
            continue
        for rows in range(steps, max(FEWEST_STEPS - 2, steps - 4), -1):
            own = replace(layout, steps=rows)
            laid = own.rows(target, samples)
            if laid is None or laid.size(2) != sequence.size(2):
                continue
            shares = {
                shift: share
                for shift in SHIFTS
                if (share := _agreement(sequence, laid, shift, ignored)) is not None
            }
            if not shares:
                continue
            shift = max(shares, key=lambda key: shares[key])
            rest = [share for key, share in shares.items() if key != shift]
            if shares[shift] >= SAME and max(rest, default=0.0) < OTHER:
                yield own, shift
                break


def _agreement(
    sequence: torch.Tensor, target: torch.Tensor, shift: int, ignored: object
) -> float | None:
    steps, rows = sequence.size(1), target.size(1)
    first, last = max(0, -shift), min(rows, steps - shift)
    if last - first < 3:
        return None
    mine, theirs = target[:, first:last], sequence[:, first + shift : last + shift]
    counted = torch.ones_like(mine, dtype=torch.bool)
    if is_whole(mine) and isinstance(ignored, int):
        counted = mine.ne(ignored)
    if int(counted.sum()) < 4 or len(mine[counted].unique()) < 3:
        return None
    return float((mine == theirs)[counted].float().mean())


def _reach(
    rehearsal: Rehearsal, base: Ran, layout: Layout, shift: int, scored: torch.Tensor
) -> Followed | None:
    """Changes one thing at a time, and looks which rows move."""
    call = base.main
    given = tensors_of(rehearsal.inputs)[layout.input][1]
    samples, steps = given.size(layout.samples), given.size(layout.time)
    if call is None or base.prediction is None or call.target is None:
        return None
    sample = samples // 2
    laid = layout.rows(scored, samples)
    if laid is None:
        return None
    counts = laid.any(-1)[sample]
    if not bool(counts.any()):
        return None
    reaches: list[int] = []
    sees_back = False
    tried, whole = 0, 0
    chosen = _is_chosen(given, layout, laid.any(-1))
    positions = {steps // 4, steps // 2, (3 * steps) // 4, steps - 2}
    if chosen:  # only what is scored can move its own row
        places = (counts.nonzero().reshape(-1) + shift).tolist()
        inside = [place for place in places if 0 <= place < steps]
        positions = set(inside[:: max(1, len(inside) // 4)][:4]) or positions
    itself = 0
    for position in sorted(positions):
        changed = _changed(rehearsal, layout, sample, position)
        if changed is None:
            continue
        now = rehearsal.run(changed, training=False).prediction
        if now is None or not comparable(base.prediction, now):
            return None
        rows = rows_that(change(base.prediction, now) > 0, call)
        laid = None if rows is None else layout.rows(rows.cpu(), samples)
        if laid is None:
            return None
        moved = laid.any(-1)[sample] & counts
        at = moved.nonzero().reshape(-1).tolist()
        if not at:
            continue
        tried += 1
        reaches.append(position - at[0])
        whole += at[0] == int(counts.nonzero()[0])
        sees_back = sees_back or len(at) > 1
        own = position - shift
        itself += 0 <= own < layout.steps and bool(moved[own])
    if tried < 2:
        return None
    # A reach that grows with the position is no reach: those rows see everything.
    everything = whole == tried and max(reaches) > max(2, steps // 3)
    reach = None if everything else max(reaches)
    offset = _offset(rehearsal, layout, sample, samples)
    return Followed(layout, shift, reach, offset, itself > 0, sees_back, tried, itself, chosen)


def _is_chosen(given: torch.Tensor, layout: Layout, scored: torch.Tensor) -> bool:
    """Whether positions are scored here and there, and others hold words as well: masked ones."""
    sequence = layout.sequence(given.detach().cpu())
    if scored.shape != sequence.shape[:2] or not is_whole(given):
        return False
    later = scored.flip(1).cummax(1).values.flip(1)
    earlier = scored.cummax(1).values
    between = ~scored & later & earlier  # neither a prefix nor padding
    share = float(scored.float().mean())
    return share < 0.6 and len(sequence[between].unique()) >= 3


def _changed(rehearsal: Rehearsal, layout: Layout, sample: int, position: int) -> Inputs | None:
    """The inputs with one thing replaced by what stands there in another sample."""
    sequence = layout.sequence(tensors_of(rehearsal.inputs)[layout.input][1])
    now = sequence[sample, position]
    candidates = torch.cat([sequence[:, position], sequence.reshape(-1, now.numel())[:4096]])
    others = [row for row in candidates if not torch.equal(row, now)]
    if not others:
        return None

    def change_one(number: int, tensor: torch.Tensor) -> torch.Tensor:
        if number != layout.input:
            return tensor
        own = tensor.detach().clone()
        place = own[layout.at(sample, position)]
        own[layout.at(sample, position)] = others[0].reshape(place.shape)
        return own

    return with_tensors(rehearsal.inputs, change_one)


def _offset(rehearsal: Rehearsal, layout: Layout, sample: int, samples: int) -> int | None:
    """By how much the rows of the prediction are shifted against the output they are made of."""
    ran = with_graph(rehearsal)
    call, prediction = ran.main, ran.prediction
    if call is None or call.target is None or prediction is None or not prediction.requires_grad:
        return None
    places = layout.rows(torch.arange(call.target.numel()).reshape(call.target.shape), samples)
    if places is None:
        return None
    row = layout.steps // 2
    place = int(places[sample, row].reshape(-1)[0])
    with torch.enable_grad():
        chosen = prediction_row(prediction, call, place)
        if chosen is None:
            return None
        total = chosen.sum() * 1.5 + chosen.reshape(-1)[0]
    given = tensors_of(rehearsal.inputs)[layout.input][1]
    steps = given.size(layout.time)
    for _, output in tensors(ran.output):
        if not output.requires_grad or list(output.shape).count(steps) != 1:
            continue
        (gradient,) = gradients(total, output)
        if gradient is None:
            continue
        dim = list(output.shape).index(steps)
        others = [other for other in range(output.dim()) if other != dim]
        made = gradient.abs().sum(others).nonzero().reshape(-1).tolist()
        if len(made) == 1:
            return int(made[0]) - row
    return None
