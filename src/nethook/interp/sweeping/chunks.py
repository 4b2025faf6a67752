"""Which cells share a run, and how many."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import torch

from nethook.addresses.nested import tensors
from nethook.interp.sweeping.base import BaseRun
from nethook.interp.sweeping.batches import COPIES
from nethook.interp.sweeping.runner import Place

_MOST = 256
_MANY = 12  # cells of a site that are worth runs of their own
_SEVERAL_SITES = 64
_JOINED = 800_000  # bytes of a site's value in a run that others join: larger ones leave the cache
_OVERHEAD = 8  # a run of n copies is worth it while what it costs besides them is above 1/8
_SHARE_OF_MEMORY = 0.25


def chosen_rows(base: BaseRun, cells: int, of_a_site: int, *, joining: bool = False) -> int:
    """How many of so many cells share a run: from what one copy of the base and several took.

    A run takes `fixed + copies * each` seconds; so many copies that what is fixed is small beside
    them, as long as they fit into memory. With `joining`, cells of several sites share a run at no
    other cost.
    """
    if base.mixed:
        return 1
    one, several = base.seconds
    each = (several - one) / (COPIES - 1)
    fixed = max(one - max(each, 0.0), 0.0)
    enough = _MOST if each <= 0 else math.ceil(_OVERHEAD * fixed / each)
    # Where cells of several sites share a run, only what comes before the first is answered: that
    # pays where a site has few.
    useful = of_a_site if of_a_site >= _MANY else _SEVERAL_SITES
    if 2 * enough >= of_a_site:
        enough = max(enough, of_a_site)  # one run for a site, not two of nearly half
        if joining:
            largest = max(site.values[0].nbytes for site in base.sites)
            together = min(_SEVERAL_SITES, _JOINED // max(1, largest))
            enough, useful = max(enough, together), max(useful, together)
    return max(1, min(enough, useful, _fitting(base), _MOST, cells))


def _fitting(base: BaseRun) -> int:
    """How many copies fit into memory, by what the base run kept: at least one."""
    seen: dict[int, int] = {}
    for called in base.recording.calls.values():
        for output in called.outputs:
            for _, tensor in tensors(output):
                if tensor.layout is torch.strided:
                    seen[id(tensor)] = tensor.numel() * tensor.element_size()
    one = max(1, sum(seen.values()))
    device = next(
        (t.device for _, t in tensors((base.inputs.args, dict(base.inputs.kwargs)))), None
    )
    return max(1, int(_SHARE_OF_MEMORY * free_memory(device) / one))


def free_memory(device: torch.device | None) -> int:
    """Bytes that are free on a device."""
    if device is not None and device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system tells
        return 1 << 30


def chunked(places: Sequence[Place], rows: int) -> list[list[Place]]:
    """Cells in groups of at most `rows`, those of a site together as far as they go.

    A group begins at its first site, and everything from there on is computed for all of it: so
    sites with many cells have groups of their own, and only small ones share.
    """
    by_site: dict[int, list[Place]] = {}
    for place in places:
        by_site.setdefault(place.at[0], []).append(place)
    chunks: list[list[Place]] = []
    shared: list[Place] = []
    for group in by_site.values():
        if 2 * len(group) <= rows:
            if len(shared) + len(group) > rows:
                chunks.append(shared)
                shared = []
            shared = [*shared, *group]
            continue
        if shared:
            chunks.append(shared)
            shared = []
        count = math.ceil(len(group) / rows)
        size = math.ceil(len(group) / count)
        chunks += [group[start : start + size] for start in range(0, len(group), size)]
    return [*chunks, shared] if shared else chunks
