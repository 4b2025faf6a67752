"""`probe`: how much a linear readout finds in features, measured honestly.

Each fold is scored by weights that were fitted to the others, with a penalty that was chosen inside
those. The same is done with shuffled labels: what a probe finds there it has learnt by heart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch

from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.interp.directions.folds import control_labels, make_folds, numbered_groups
from nethook.interp.directions.logistic import Linear, fit_logistic
from nethook.interp.directions.moments import Moments, moments
from nethook.interp.directions.probe import Probe, Probes
from nethook.interp.directions.ridge import fit_ridge
from nethook.interp.directions.samples import Samples, classes_of, sites_of
from nethook.interp.sweeping.ranks import Ranks

_PENALTIES = (1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4)  # times the sum of a feature's squares


def probe(
    X: Any,  # noqa: N803  as everywhere in the field
    labels: Any,
    groups: Any = None,
    *,
    kind: Literal["ridge", "logistic"] = "logistic",
    penalties: Sequence[float] | None = None,
    folds: int = 5,
    seed: int = 0,
    spread: bool = False,
    progress: bool | None = None,
) -> Any:
    """Fits a linear readout of labels from features, and scores it on rows it has not seen.

        p = interp.probe(stored.tensor("layer3"), labels, groups=stored.ids)
        p.score, p.control, p.selectivity, p.baseline, p.direction

    Arguments:
        X: features, (samples, features): a tensor, `nethook.load_features(...)`, or a mapping from
            sites to tensors, which gives a probe each.
        labels: one per row: classes (whole numbers, texts, booleans), or numbers (floats), for
            which the score is R².
        groups: one per row: rows of a group are never on both sides of a split. Give the speaker,
            the document, the subject: whatever rows have in common.
        kind: "logistic", or "ridge" (least squares; for classes, on -1 and 1).
        penalties: which to choose from; None: seven powers of ten around the features' own scale.
            They are scikit-learn's `alpha` for ridge and `1 / C` for logistic.
        folds: of the cross-validation; a fold more is left out inside each to choose the penalty.
        seed: of the folds and of the control's labels.
        spread: over the ranks of torchrun: to be called on each, and each gets the result.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `Probe`, or `Probes` by site.

    Cost: for ridge, two passes over the data and a decomposition per fold; for logistic, about
    `folds × 8` fits, twice. Chunks are read in float64, whatever the length of the data.
    """
    if kind not in ("ridge", "logistic"):
        raise OptionError(f'`kind` must be "ridge" or "logistic"; got {kind!r}.')
    if type(folds) is not int or folds < 3:
        raise OptionError(f"`folds` must be a number from 3 on; got {folds!r}.")
    ranks = Ranks(spread=spread)
    values = sites_of(X)
    by_site = values if isinstance(values, dict) else {"": values}
    found = {}
    bar = Bar(2 * len(by_site) * folds, 0, shown=progress, label="probing", unit="folds")
    with bar:
        for site, each in by_site.items():
            study = _Study(Samples(each, ranks), labels, groups, kind, penalties, folds, seed)
            found[site] = study.probe(site, bar)
    return Probes(found) if isinstance(values, dict) else found[""]


class _Study:
    """One probe, from its arguments to its result."""

    def __init__(
        self, samples: Samples, labels: Any, groups: Any, kind: str,
        penalties: Sequence[float] | None, folds: int, seed: int,
    ) -> None:  # fmt: skip
        self._samples = samples
        self._labels, self._classes = classes_of(labels, samples.count)
        if not self._classes and (kind != "ridge" or self._labels.ndim != 1):
            raise OptionError(
                '`labels` must be classes for kind="logistic", and (samples,) numbers for '
                f'kind="ridge"; got floats of the shape {tuple(self._labels.shape)}.'
            )
        self._groups = numbered_groups(groups, samples.count)
        self._kind = kind
        self._count = folds
        self._seed = seed
        self._folds = make_folds(self._labels, self._groups, folds, seed)
        given = penalties if penalties is not None else self._own_penalties()
        self._penalties = sorted((float(each) for each in given), reverse=True)
        if not self._penalties or self._penalties[-1] < 0:
            raise OptionError(f"`penalties` must be positive numbers; got {penalties!r:.60}.")

    def _own_penalties(self) -> list[float]:
        sums = torch.zeros(3, dtype=torch.double)
        mean = torch.zeros(self._samples.width, dtype=torch.double)
        for _, chunk in self._samples.chunks():
            sums[0] += len(chunk)
            sums[1] += chunk.square().sum()
            mean += chunk.sum(0)
        sums, mean = self._samples.total(sums), self._samples.total(mean)
        squares = float(sums[1] - mean.square().sum() / sums[0]) / self._samples.width
        return [each * max(squares, 1e-30) for each in _PENALTIES]

    def probe(self, site: str, bar: Bar) -> Probe:
        """The result."""
        outputs, chosen = self._held_out(self._labels, bar)
        shuffled = control_labels(self._labels, self._groups, self._seed)
        control, _ = self._held_out(shuffled, bar)
        parts = self._parts(outputs, self._labels)
        whole = self._fit(self._labels, torch.ones(self._samples.count, dtype=torch.bool), [chosen])
        return Probe(
            score=self._score(outputs, self._labels), parts=parts,
            control=self._score(control, shuffled), baseline=self._baseline(),
            weights=whole[0].weights, bias=whole[0].bias, projections=self._outputs(whole[0]),
            labels=self._labels, classes=self._classes, penalty=chosen, kind=self._kind,
            folds=self._count, site=site,
        )  # fmt: skip

    def _held_out(self, labels: torch.Tensor, bar: Bar) -> tuple[torch.Tensor, float]:
        """Outputs for each row by weights fitted to other folds, and the penalty for all rows."""
        sums = self._sums(labels) if self._kind == "ridge" else []
        found = torch.zeros(0)
        losses = torch.zeros(len(self._penalties), dtype=torch.double)
        for fold in range(self._count):
            inner = (fold + 1) % self._count
            test, choose = self._folds == fold, self._folds == inner
            tried = self._fit(labels, ~test & ~choose, self._penalties, sums)
            lost = torch.stack([self._loss(each, labels, choose) for each in tried])
            losses += lost
            best = self._penalties[int(lost.argmin())]
            (fitted,) = self._fit(labels, ~test, [best], sums)
            outputs = self._outputs(fitted)
            found = outputs.clone() if not found.numel() else found
            found[test] = outputs[test]
            bar.advance(1)
        return found, self._penalties[int(losses.argmin())]

    def _targets(self, labels: torch.Tensor) -> torch.Tensor:
        if not self._classes:
            return labels[:, None]
        if len(self._classes) == 2:
            return 2.0 * labels.double()[:, None] - 1
        return 2.0 * torch.nn.functional.one_hot(labels, len(self._classes)).double() - 1

    def _sums(self, labels: torch.Tensor) -> list[Moments]:
        return moments(self._samples, self._targets(labels), self._folds, self._count)

    def _fit(
        self, labels: torch.Tensor, rows: torch.Tensor, penalties: list[float],
        sums: list[Moments] | None = None,
    ) -> list[Linear]:  # fmt: skip
        """A fit to these rows, whole folds, for each penalty; the largest first."""
        if self._kind == "ridge":
            sums = sums or self._sums(labels)
            there = [fold for fold in range(self._count) if bool(rows[self._folds == fold].any())]
            total = sums[there[0]]
            for fold in there[1:]:
                total = total + sums[fold]
            return fit_ridge(total, penalties)
        found: list[Linear] = []
        for penalty in penalties:
            start = found[-1] if found else None
            classes = len(self._classes)
            found.append(fit_logistic(self._samples, labels, classes, penalty, rows, start))
        return found

    def _outputs(self, fitted: Linear) -> torch.Tensor:
        found = torch.zeros(self._samples.count, len(fitted.bias), dtype=torch.double)
        for rows, chunk in self._samples.chunks():
            found[rows] = fitted(chunk)
        return self._samples.total(found)

    def _loss(self, fitted: Linear, labels: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        outputs = self._outputs(fitted)[rows]
        if self._kind == "ridge":
            return (outputs - self._targets(labels)[rows]).square().sum()
        if outputs.shape[1] == 1:
            return torch.nn.functional.binary_cross_entropy_with_logits(
                outputs[:, 0], labels[rows].double(), reduction="sum"
            )
        return torch.nn.functional.cross_entropy(outputs, labels[rows], reduction="sum")

    def _right(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        said = (outputs[:, 0] > 0).long() if outputs.shape[1] == 1 else outputs.argmax(1)
        return (said == labels).double()

    def _score(self, outputs: torch.Tensor, labels: torch.Tensor) -> float:
        if self._classes:
            return float(self._right(outputs, labels).mean())
        return float(_r2(outputs[:, 0], labels))

    def _parts(self, outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if not self._classes:
            folds = [self._folds == fold for fold in range(self._count)]
            return torch.stack([_r2(outputs[fold, 0], labels[fold]) for fold in folds])
        right = self._right(outputs, labels)
        if self._groups is None:
            return right
        number = int(self._groups.max()) + 1
        sums = torch.zeros(number, dtype=torch.double).index_add_(0, self._groups, right)
        return sums / torch.bincount(self._groups, minlength=number)

    def _baseline(self) -> float:
        if not self._classes:
            return 0.0
        return float(torch.bincount(self._labels).max()) / len(self._labels)


def _r2(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return 1 - (outputs - labels).square().sum() / (labels - labels.mean()).square().sum()
