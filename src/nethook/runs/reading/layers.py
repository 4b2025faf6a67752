"""Which modules of a run count as its layers: one answer for terminal, page and report."""

from __future__ import annotations

from collections.abc import Iterable

from nethook.runs.reading.rank_file import Site


def layers_that_ran(sites: Iterable[Site]) -> list[Site]:
    """Modules without modules in them that were called.

    All of them where no call was seen, as in compiled code.
    """
    leaves = [site for site in sites if site.info.get("leaf")]
    return [site for site in leaves if site.info.get("calls")] or leaves
