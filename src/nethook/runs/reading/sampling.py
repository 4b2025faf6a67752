"""Which ranks speak for all, where there are many: their layers are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from nethook.errors import OptionError

SAMPLED: Final = 16
"""Ranks whose layers are read, unless others are asked for."""

Ranks = Literal["sample", "all"] | Sequence[int]


def sampled(ranks: Sequence[int]) -> list[int]:
    """Up to `SAMPLED` ranks all of them; of more the first, the last, and some between them."""
    ordered = sorted(ranks)
    if len(ordered) <= SAMPLED:
        return ordered
    places = [round(k * (len(ordered) - 1) / (SAMPLED - 1)) for k in range(SAMPLED)]
    return [ordered[place] for place in places]


def chosen_ranks(wanted: Ranks, present: Sequence[int]) -> list[int]:
    """Those of the ranks that are present whose layers are to be read."""
    if wanted == "sample":
        return sampled(present)
    if wanted == "all":
        return sorted(present)
    given: object = wanted  # may be any word, whatever its type says
    if isinstance(given, str) or not all(isinstance(rank, int) for rank in wanted):
        raise OptionError(
            f"`ranks` must be 'sample', 'all' or numbers of ranks; got {wanted!r}. For the run as "
            "one rank saw it, type run.rank(0)."
        )
    missing = sorted(set(wanted) - set(present))
    if missing or not wanted:
        raise OptionError(
            f"`ranks` must be ranks that the run has a file of; got {list(wanted)!r}. See "
            "`run.ranks`."
        )
    return sorted(set(wanted))
