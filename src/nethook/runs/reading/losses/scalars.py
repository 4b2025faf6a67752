"""What was logged, as several ranks have logged it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nethook.runs.format.points import BUCKET
from nethook.runs.names import OLDER, loss_of_scalar, older_name
from nethook.runs.reading.losses.curve import curve_of, merged_buckets
from nethook.runs.reading.merge_ranks import ROOTS
from nethook.runs.reading.rank_file import RankFile
from nethook.runs.reading.results import Buckets, Scalar, buckets_from

Points = npt.NDArray[np.float64]  # step, time, value


def merged_scalars(files: Sequence[RankFile], *, sharded: bool) -> dict[str, Scalar]:
    """Every name that any rank has, with the points of all ranks that have it.

    Arguments:
        files: of the ranks, the lowest first.
        sharded: whether each rank holds parts of the parameters only.
    """
    by_name: dict[str, list[Points]] = {}
    older: dict[str, list[Buckets]] = {}
    for file in files:
        there = file.scalar_names()
        for name, (name_id, keep) in there.items():
            if name.startswith(OLDER):
                continue
            if name not in by_name or _is_merged(name, sharded):
                of_older = there.get(older_name(name))
                # What is more than is to be kept is not in a bucket yet.
                points = file.scalar(name_id, 0 if older_name(name) else keep)
                by_name.setdefault(name, []).append(points)
                if of_older is not None:
                    table = file.scalar(of_older[0], 0)
                    if table.shape[1] == len(BUCKET):
                        older.setdefault(name, []).append(buckets_from(table))
    return {name: _scalar(name, points, older.get(name)) for name, points in by_name.items()}


def file_scalars(file: RankFile, prefix: str) -> dict[str, Scalar]:
    """What one rank logged under names that begin with `prefix`."""
    return {
        name: _scalar(name, [file.scalar(name_id, keep)], None)
        for name, (name_id, keep) in file.scalar_names().items()
        if name.startswith(prefix)
    }


def _is_merged(name: str, sharded: bool) -> bool:
    return loss_of_scalar(name) is not None or (sharded and name in ROOTS)


def _scalar(name: str, ranks: list[Points], older: list[Buckets] | None) -> Scalar:
    buckets = merged_buckets(older or [])
    loss = loss_of_scalar(name)
    if loss is not None:
        return curve_of(name, *loss, ranks, buckets)
    points = ranks[0] if len(ranks) == 1 else _together(ranks, root=name in ROOTS)
    return Scalar(name, points[:, 0].astype(np.int64), points[:, 1], points[:, 2], buckets)


def _together(ranks: list[Points], *, root: bool) -> Points:
    """The mean of each step over the ranks that have it; of roots, where all have it."""
    every = np.concatenate(ranks)
    steps, where = np.unique(every[:, 0], return_inverse=True)
    count = np.bincount(where)
    values = every[:, 2] ** 2 if root else every[:, 2]
    mean = np.bincount(where, weights=values) / count
    time = np.full(len(steps), np.inf)
    np.minimum.at(time, where, every[:, 1])
    points = np.column_stack([steps, time, np.sqrt(mean) if root else mean])
    return points[count == len(ranks)] if root else points


def rate_name(
    scalar: str, scalars: Iterable[str], optimizers: Mapping[str, str] | None = None
) -> str:
    """What to call the learning rate `lr:OPTIMIZER.GROUP`: no more than tells it from the others.

    Arguments:
        scalar: its name in the run.
        scalars: the names of all scalars there are.
        optimizers: the class of each optimizer, by name.
    """
    rates = [name.removeprefix("lr:") for name in scalars if name.startswith("lr:")]
    if len(rates) < 2:
        return "learning rate"
    optimizer, _, group = scalar.removeprefix("lr:").rpartition(".")
    several = len({rate.rpartition(".")[0] for rate in rates}) > 1
    kind = str((optimizers or {}).get(optimizer, "")) or f"optimizer {optimizer}"
    words = [kind] if several else []
    if sum(rate.rpartition(".")[0] == optimizer for rate in rates) > 1:
        words.append(f"group {group}")
    return f"learning rate, {' '.join(words)}"
