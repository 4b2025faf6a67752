"""What was logged, as several ranks have logged it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nethook.runs.names import loss_name
from nethook.runs.reading.merge_ranks import ROOTS
from nethook.runs.reading.rank_file import RankFile
from nethook.runs.reading.results import Scalar

Points = npt.NDArray[np.float64]  # step, time, value


def merged_scalars(files: Sequence[RankFile], *, sharded: bool) -> dict[str, Scalar]:
    """Every name that any rank has, with the points of all ranks that have it.

    Arguments:
        files: of the ranks, the lowest first.
        sharded: whether each rank holds parts of the parameters only.
    """
    by_name: dict[str, list[Points]] = {}
    for file in files:
        for name, (name_id, keep) in file.scalar_names().items():
            if name not in by_name or _is_merged(name, sharded):
                by_name.setdefault(name, []).append(file.scalar(name_id, keep))
    return {name: _scalar(name, points) for name, points in by_name.items()}


def _is_merged(name: str, sharded: bool) -> bool:
    return name.startswith(loss_name("")) or (sharded and name in ROOTS)


def _scalar(name: str, ranks: list[Points]) -> Scalar:
    points = ranks[0] if len(ranks) == 1 else _together(ranks, root=name in ROOTS)
    return Scalar(name, points[:, 0].astype(np.int64), points[:, 1], points[:, 2])


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
