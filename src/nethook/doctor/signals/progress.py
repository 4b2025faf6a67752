"""Whether a run is doing its job: does its loss fall, beyond its own noise?

A healthy loss curve outweighs an odd profile. Rules about symptoms ask here before they speak.

Where the loss is one for which it is known what the best constant answer would score (the entropy
of the targets, their variance), a run that stays there has learnt nothing, however its first steps
fell; one that gets well below does its job.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from nethook.doctor.history import Curve, Floats, History, LossFacts
from nethook.doctor.signals.quantiles import median, running_medians

_ROWS: Final = 8
"""Targets of a batch that are all different: fewer may be so by chance."""
ENOUGH: Final = 12
"""With fewer windows there is no verdict on a trend."""

PROGRESS_READS: Final = (
    "loss.broadcast",
    "loss.class_counts",
    "loss.factor",
    "loss.floored",
    "loss.kind",
    "loss.options",
    "loss.reduction",
    "loss.target",
    "loss.terms",
    "series.@loss.loss.mean",
)
"""The fields that `progress` reads."""


class Progress(NamedTuple):
    """How a loss went."""

    start: float  # the first value, or the median of the first three if that is less
    end: float  # median of the last tenth, at least five windows
    best: float  # least median of any such stretch
    noise: float  # spread of the loss around its own trend
    error: float  # how well the difference between start and end is known
    fell: float  # from start to end, in units of the loss's own scale
    finite: bool
    late: float  # how much it fell from the first tenth to the last, in units of what is known
    still: float = 0.0  # the same, from the middle of the run on
    constant: float | None = None  # what the best constant answer would score
    early: float = float("nan")  # the greatest of the first ten values

    @property
    def improves(self) -> bool:
        """It fell by more than its noise explains, and by more than a fiftieth of its scale."""
        if not self.finite or self.learnt_nothing:
            return False
        # By start and end where they differ by three errors; by the whole of the first and last
        # tenth for a slow fall that no single value shows.
        clear = self.start - self.end > 3 * self.error or self.late > 4
        return clear and self.fell > 0.02

    @property
    def learnt_nothing(self) -> bool:
        """It ends where an answer that is the same for all inputs would be, or above.

        One that is still falling is on its way: it says nothing yet.
        """
        if self.constant is None or self.still > 4:
            return False
        return not self.end < 0.97 * self.constant

    @property
    def does_its_job(self) -> bool:
        """It fell by a good part, and did not come back up."""
        if not self.improves or self.end - self.best > 0.5 * (self.start - self.best):
            return False
        if self.constant is not None:
            return self.end < 0.8 * self.constant
        return self.fell > 0.15

    @property
    def does_well(self) -> bool:
        """It fell by half or more: what is needed to outweigh evidence that is beyond doubt."""
        if not self.does_its_job:
            return False
        return self.end < 0.5 * self.constant if self.constant is not None else self.fell > 0.5

    @property
    def diverges(self) -> bool:
        """It ends above its start, beyond its noise, or is not finite."""
        rise = self.end - self.start
        return not self.finite or rise > max(3 * self.error, self.noise, 0.05 * abs(self.start))


def progress_of(curve: Curve, constant: float | None = None) -> Progress | None:
    """How a loss went; None where there is too little of it."""
    if len(curve) < ENOUGH:
        return None
    value = curve.value
    finite = np.isfinite(value)
    kept = value[finite]
    if len(kept) < 3:
        nan = float("nan")
        first = float(kept[0]) if len(kept) else nan
        return Progress(first, nan, nan, nan, nan, 0.0, finite=False, late=0.0)
    width = min(len(kept), max(5, len(kept) // 10))
    smooth = medians(kept, width)
    start, end, best = _start(kept), float(smooth[-1]), float(smooth.min())
    # The median deviation, which a few outliers do not move; 1.4826 of it is the standard
    # deviation of normal noise.
    noise = median(np.abs(kept - _trend(kept, width))) * 1.4826
    # Of a median of n values the error is 1.25 of their spread by the root of n.
    error = 1.25 * noise * math.sqrt(1 / 2 + 1 / width)
    late = (float(smooth[0]) - end) / max(1.25 * noise * math.sqrt(2 / width), 1e-30)
    middle = median(kept[len(kept) // 2 : len(kept) // 2 + width])
    still = (middle - end) / max(1.25 * noise * math.sqrt(2 / width), 0.01 * abs(end), 1e-30)
    scale = max(abs(start), noise, 1e-30)
    ends_finite = bool(finite[-width:].all()) and len(kept) >= ENOUGH // 2
    return Progress(
        start, end, best, noise, error, (start - end) / scale, ends_finite, late, still, constant,
        early=float(kept[:10].max()),
    )  # fmt: skip


def _start(values: Floats) -> float:
    """Where a loss began. One step that is too large may ruin the second value already."""
    return float(min(values[0], median(values[:3])))


def progress(history: History) -> Progress | None:
    """How the run's training loss went; None where that is unknown.

    Losses that play against each other (a GAN's) have no common direction, so none is judged; of
    those that come one after the other (a warm-up by itself), the longest is.
    """
    return history.once("progress", _progress)


def longest_loss(history: History) -> tuple[str, Curve] | None:
    """The name and curve of the run's training loss, the longest of several phases.

    None where there are too few values, and where several losses are trained at once: they may play
    against each other.
    """
    curves = [(name, curve) for name, curve in history.named_losses() if len(curve) >= ENOUGH]
    curves.sort(key=lambda named: int(named[1].step[0]))
    apart = all(a.step[-1] < b.step[0] for (_, a), (_, b) in itertools.pairwise(curves))
    if not curves or not apart:
        return None
    return max(curves, key=lambda named: len(named[1]))


def _progress(history: History) -> Progress | None:
    named = longest_loss(history)
    if named is None:
        return None
    name, curve = named
    went = progress_of(curve, constant_score(history, name))
    if went is None or went.improves or _has_a_meaning(history, name, went):
        return went
    return None


def _has_a_meaning(history: History, name: str, went: Progress) -> bool:
    """Whether a loss that does not fall says something.

    That of a policy gradient does not: it has no floor, and goes up and down around zero.
    """
    if all(record.fact("floored") for record in history.records("train", name)):
        return True
    if not went.finite:
        return True
    return min(went.start, went.end) > 0 and went.noise < 0.3 * max(went.start, went.end)


def is_of_a_policy(history: History) -> bool:
    """Whether a summand of a loss is the surrogate of PPO: the lesser of two of its own values.

    Such a loss falls and rises with the rewards that the policy meets, and so does the error of a
    critic beside it: that it stays high says little.
    """
    return any(
        term.get("chain") in (["Minimum"], ["Maximum"]) and term.get("kind") == "other"
        for record in history.records("train")
        for term in record.fact("terms") or ()
    )


def constant_score(history: History, name: str | None = None) -> float | None:
    """What the best answer that is the same for all inputs would score; None where not known."""
    return constant_of_targets(
        [record for record in history.records("train", name) if _is_one_mean(record)]
    )


def constant_of_targets(records: Sequence[LossFacts]) -> float | None:
    """The same of records, whatever else is part of the loss."""
    records = list(records)
    if not records or len({record.fact("kind") for record in records}) != 1:
        return None
    if records[0].fact("kind") in ("cross_entropy", "nll"):
        return _entropy(records)
    if records[0].fact("kind") in ("mse", "rmse"):
        variance = _variance(records)
        rooted = records[0].fact("kind") == "rmse" and variance is not None
        return math.sqrt(variance) if rooted and variance is not None else variance
    if records[0].fact("kind") in ("bce", "bce_with_logits"):
        return _binary_entropy(records)
    return None


def _is_one_mean(record: LossFacts) -> bool:
    """One mean, of one loss, unweighted."""
    options: dict[str, Any] = record.fact("options") or {}
    return (
        record.fact("reduction") == "mean"
        and record.fact("factor") == 1.0
        and not record.fact("terms")
        and not options.get("weight")
        and not options.get("pos_weight")
        and not record.fact("broadcast")
    )


def _entropy(records: list[LossFacts]) -> float | None:
    """The entropy of the classes of all targets that were sampled.

    Not known where each target of a batch is another one: samples are told apart, not classes.
    Nor where a target is of several classes at once.
    """
    counts: dict[int, float] = {}
    if all(_is_of_rows(record) for record in records) or any(map(several_classes, records)):
        return None
    for record in records:
        for label, count in _counts(record.fact("class_counts")):
            counts[label] = counts.get(label, 0.0) + count
    total = sum(counts.values())
    shares = [count / total for count in counts.values() if count > 0]
    if total < max(64, 10 * len(shares)) or len(shares) < 2:
        return None
    entropy = -sum(share * math.log(share) for share in shares)
    # A sample shows less than there is: the correction of Miller and Madow.
    return entropy + (len(shares) - 1) / (2 * total)


def several_classes(record: LossFacts) -> list[float] | None:
    """The least and the most ones in a row of targets that have several; None of any others."""
    target = record.fact("target") or {}
    sums = target.get("row_sums")
    if record.fact("kind") != "cross_entropy" or not isinstance(sums, list) or len(sums) != 2:
        return None
    if (target.get("min"), target.get("max")) != (0.0, 1.0) or sums[1] < 2:
        return None
    return sums if all(total == round(total) for total in sums) else None


def _binary_entropy(records: list[LossFacts]) -> float | None:
    """The entropy of yes and no, where each target is one of them."""
    shares: list[float] = []
    seen = 0
    for record in records:
        target = record.fact("target") or {}
        share, shape = target.get("positive_share"), target.get("shape") or []
        if share is None or target.get("binary_share") != 1.0 or math.prod(shape[1:]) != 1:
            return None
        shares.append(float(share))
        seen += int(math.prod(shape))
    share = float(np.mean(shares))
    if seen < 64 or not 0 < share < 1:
        return None
    entropy = -(share * math.log(share) + (1 - share) * math.log(1 - share))
    return entropy + 1 / (2 * seen)


def _is_of_rows(record: LossFacts) -> bool:
    """Whether no class has more than one target in a batch of many."""
    counts = [count for _, count in _counts(record.fact("class_counts"))]
    return sum(counts) >= _ROWS and max(counts) <= 1


def _counts(counts: Any) -> Iterator[tuple[int, float]]:
    if isinstance(counts, dict):
        yield from ((int(label), float(count)) for label, count in counts.items())
    elif isinstance(counts, list | tuple):
        yield from ((label, float(count)) for label, count in enumerate(counts))


def _variance(records: list[LossFacts]) -> float | None:
    """The variance of all targets that were sampled, where each is one number.

    Of several numbers, the variance of each between the samples of a batch, where that is known.
    """
    means, variances, within = [], [], []
    for record in records:
        target = record.fact("target") or {}
        shape = target.get("shape") or []
        if math.prod(shape[1:]) != 1:
            within.append(_between(target))
            continue
        if target.get("std") is None or target.get("mean") is None:
            return None
        means.append(float(target["mean"]))
        variances.append(float(target["std"]) ** 2)
    if within:
        known = len(within) >= 3 and not means and all(map(math.isfinite, within))
        return float(np.mean(within)) if known else None
    if len(means) < 3:
        return None
    return float(np.mean(variances) + np.var(means))


def _between(target: dict[str, Any]) -> float:
    """The variance between the samples of a batch; NaN where it is not known, or next to none."""
    between, mean, std = (target.get(name) for name in ("between", "mean", "std"))
    if between is None or mean is None or std is None:
        return math.nan
    return float(between) if between > 1e-6 * (mean**2 + std**2) else math.nan


def medians(values: Floats, width: int) -> Floats:
    """The median of each stretch of `width` values, the last one full."""
    return medians_at(values, width)[1]


def medians_at(values: Floats, width: int) -> tuple[list[int], Floats]:
    """The same, and the place in the middle of each stretch."""
    starts = [*range(0, max(1, len(values) - width + 1), max(1, width // 2))]
    starts[-1] = max(0, len(values) - width)
    smooth = [median(values[begin : begin + width]) for begin in starts]
    return [min(begin + width // 2, len(values) - 1) for begin in starts], np.asarray(smooth)


def _trend(values: Floats, width: int) -> Floats:
    """A running median, as long as the values."""
    padded = np.concatenate((values[: width // 2][::-1], values, values[-(width // 2) :][::-1]))
    return running_medians(padded, width)[: len(values)]
