"""`shapley`: the mean contribution of each part over orders in which parts are put there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.errors import OptionError
from nethook.interp.attributions.baselines import baseline_of
from nethook.interp.attributions.occlusion import covered
from nethook.interp.attributions.subject import subject
from nethook.interp.attributions.targets import Given
from nethook.interp.attributions.windows import Size, Windows
from nethook.interp.results.attribution import Attribution

Parts = frozenset[int]


def shapley(
    model: nn.Module,
    x: object,
    target: Given = None,
    at: Pattern | None = None,
    *,
    window: Size = None,
    baseline: Any = None,
    samples: int = 32,
    seed: int = 0,
    rows: int | None = None,
    to: str | Path | None = None,
    spread: bool = False,
    progress: bool | None = None,
) -> Attribution:
    """Shapley values: what each part adds to a target, averaged over orders of the parts.

        a = interp.shapley(model, x, target=1, baseline=data.mean(0));  a.values, a.errors

    The values of a row add up to `score − start`. Every order is drawn with its reverse (antithetic
    sampling), so effects of single parts and of pairs have no error from sampling. Where all sets
    of parts are not more work than what was asked for, the values are exact.

    Arguments:
        model, x, target, at: as in `interp.saliency`.
        window: the size of a part, as in `interp.occlusion`.
        baseline: what stands where a part is not; as in `interp.integrated_gradients`.
        samples: how many orders are drawn, half of them the reverse of the others.
        seed: of the orders; all rows use the same.
        rows, to, spread, progress: as in `interp.sweep`.

    Returns:
        An `Attribution` with standard errors, zero where it is exact, and `delta`. The value of a
        part is shared equally by its places. Cost: up to `samples × parts` forwards, several per
        run.
    """
    if type(samples) is not int or samples < 2:
        raise OptionError(f"`samples` must be a number of at least 2; got {samples!r}.")
    with subject(model, x, target, at) as study:
        base, words = baseline_of(study, baseline)
        windows = Windows(study.value.shape[1:], study.kind, window)
        count = len(windows.all())
        orders = _orders(count, samples, seed)
        exact = 2**count - 1 <= len(orders) * max(count - 1, 1) if count < 24 else False
        wanted = _all_sets(count) if exact else _sets_of(orders)
        absent = {there: [n for n in range(count) if n not in there] for there in wanted}
        result = covered(
            study, at, base, [windows.mask(absent[there]) for there in wanted], rows=rows, to=to,
            spread=spread, progress=progress,
        )  # fmt: skip
        scores = dict(zip(wanted, result.values[0].double(), strict=True))
        scores[frozenset(range(count))] = result.base.double()
        if exact:
            values, errors = _exact(count, scores), torch.zeros(count, study.rows)
        else:
            values, errors = _sampled(orders, scores)
        start = scores[frozenset()]
        delta = values.sum(0) - (result.base.double() - start)
        how = "exact" if exact else f"{len(orders)} orders"
        return study.result(
            "Shapley values", windows.spread(values, divided=True),
            errors=windows.spread(errors.double(), divided=True), score=result.base,
            start=start.to(result.base), delta=delta, baseline=words,
            notes=(f"{count} parts, {how}", *result.notes),
        )  # fmt: skip


def _orders(count: int, samples: int, seed: int) -> list[list[int]]:
    """Orders of the parts, each followed by its reverse."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [torch.randperm(count, generator=generator).tolist() for _ in range(-(-samples // 2))]
    return [order for one in drawn for order in (one, one[::-1])]


def _sets_of(orders: Sequence[Sequence[int]]) -> list[Parts]:
    """Every set of parts that is met while parts are put there in these orders, but for all."""
    met = {frozenset[int](): None}
    for order in orders:
        for length in range(1, len(order)):
            met[frozenset(order[:length])] = None
    return list(met)


def _all_sets(count: int) -> list[Parts]:
    parts = range(count)
    return [frozenset(each) for size in range(count) for each in combinations(parts, size)]


def _exact(count: int, scores: dict[Parts, torch.Tensor]) -> torch.Tensor:
    """The sum over all sets, (parts, rows)."""
    rows = len(next(iter(scores.values())))
    values = torch.zeros(count, rows, dtype=torch.float64)
    for there, score in scores.items():
        for part in range(count):
            if part in there:
                weight = 1 / (count * math.comb(count - 1, len(there) - 1))
                values[part] += weight * score
            else:
                weight = 1 / (count * math.comb(count - 1, len(there)))
                values[part] -= weight * score
    return values


def _sampled(
    orders: Sequence[Sequence[int]], scores: dict[Parts, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Means over orders and their standard errors, from pairs of an order and its reverse."""
    found = []
    for order in orders:
        one = torch.zeros(len(order), len(scores[frozenset()]), dtype=torch.float64)
        before = scores[frozenset()]
        for length, part in enumerate(order, 1):
            after = scores[frozenset(order[:length])]
            one[part] = after - before
            before = after
        found.append(one)
    pairs = torch.stack(found).unflatten(0, (-1, 2)).mean(1)
    if len(pairs) == 1:
        return pairs[0], torch.full_like(pairs[0], torch.nan)
    return pairs.mean(0), pairs.std(0) / math.sqrt(len(pairs))
