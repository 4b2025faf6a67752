"""`direction`: the line along which two kinds of examples differ."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn

from nethook.errors import OptionError
from nethook.interp.directions.direction import Direction
from nethook.interp.directions.logistic import fit_logistic
from nethook.interp.directions.samples import Samples
from nethook.interp.directions.values import At, Pooling, check_at, check_pooling, site_values

Method = Literal["mean", "pca", "logistic"]


def direction(
    model: nn.Module | None,
    positive: Any,
    negative: Any,
    at: At | None = None,
    *,
    pool: Pooling = "last",
    method: Method = "mean",
    progress: bool | None = None,
) -> Direction:
    """The direction at a site along which positive examples differ from negative ones.

        v = interp.direction(model, positive, negative, at="transformer.h.5")
        with nethook.edit(model, outputs={"transformer.h.5": v.steer(4.0, phase="decode")}):
            model.generate(...)

    Arguments:
        model: any `nn.Module`; None where `positive` and `negative` are features already,
            (samples, features), such as `nethook.load_features(...).tensor(site)`.
        positive, negative: inputs, or loaders of batches.
        at: the site, one address; `{address: path}` for a part of a nested output.
        pool: which tokens count: "last", "mean", or positions (a number, a list, a slice), of
            which the mean is taken. Positions count real tokens, as in edits; padding never counts.
        method: "mean", the difference of the means; "pca", the first principal component of the
            differences between pairs (row i of either), towards where most of them point;
            "logistic", the weights of a logistic regression.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `Direction`: a unit vector, and the standard deviation of the projections of all
        examples, in which strengths are given.

    Cost: a forward of all examples, up to the site.
    """
    if method not in ("mean", "pca", "logistic"):
        raise OptionError(f'`method` must be "mean", "pca" or "logistic"; got {method!r}.')
    site = path = ""
    if model is None:
        if at is not None:
            raise OptionError(f"`at` must be left out where model is None; got {at!r:.60}.")
        here, there = (
            _features(data, name) for data, name in ((positive, "positive"), (negative, "negative"))
        )
    else:
        check_pooling(pool)
        site, path = check_at(at)
        here, there = (
            site_values(model, data, at, pool, name=name, progress=progress)  # type: ignore[arg-type]
            for data, name in ((positive, "positive"), (negative, "negative"))
        )
    vector = _found(here, there, method)
    both = torch.cat([here, there]) @ vector
    std = float(both.std(correction=1)) if len(both) > 1 else 0.0
    if not std > 0:
        raise OptionError(
            "`positive` and `negative` must differ along the direction; got projections that are "
            "all equal."
        )
    return Direction(
        vector=vector, std=std, positive=here @ vector, negative=there @ vector, site=site,
        path=path, method=method,
    )  # fmt: skip


def _features(data: Any, name: str) -> torch.Tensor:
    if not isinstance(data, torch.Tensor) or data.ndim != 2 or not len(data):
        got = tuple(data.shape) if isinstance(data, torch.Tensor) else type(data).__name__
        raise OptionError(
            f"`{name}` must be features, (samples, features), where model is None; got {got}."
        )
    return data.detach().double().cpu()


def _found(here: torch.Tensor, there: torch.Tensor, method: str) -> torch.Tensor:
    if here.shape[1] != there.shape[1]:
        raise OptionError(
            "`positive` and `negative` must have as many features as each other; got "
            f"{here.shape[1]} and {there.shape[1]}."
        )
    if not (here.isfinite().all() and there.isfinite().all()):
        raise OptionError("values at the site must be finite; got NaN or an infinity.")
    if method == "mean":
        vector = here.mean(0) - there.mean(0)
    elif method == "pca":
        if here.shape != there.shape:
            raise OptionError(
                '`positive` and `negative` must be pairs for method="pca"; got '
                f"{len(here)} and {len(there)} rows."
            )
        apart = here - there
        # Not centred: what all pairs have in common is what is looked for.
        vector = torch.linalg.svd(apart, full_matrices=False).Vh[0]
        along = apart @ vector
        ahead, behind = int((along > 0).sum()), int((along < 0).sum())
        if ahead < behind or (ahead == behind and float(along.sum()) < 0):
            vector = -vector
    else:
        both = torch.cat([here, there])
        labels = torch.cat([torch.ones(len(here)), torch.zeros(len(there))]).long()
        spread = float(both.var(0, correction=0).mean())
        penalty = 1e-2 * len(both) * spread
        vector = fit_logistic(Samples(both), labels, 2, penalty).weights[0]
    length = float(vector.norm())
    if not length > 0:
        raise OptionError(
            "`positive` and `negative` must differ; got the same mean for both. There is no "
            "direction between them."
        )
    return vector / length
