"""Which modules count as layers."""

from __future__ import annotations

from nethook.runs.reading.layers import layers_that_ran
from nethook.runs.reading.rank_file import Site


def site(address: str, **info: object) -> Site:
    return Site(address, "Linear", info)


def test_modules_that_were_called_and_have_none_in_them() -> None:
    sites = [
        site("", calls={"train": 3}),
        site("a", leaf=True, calls={"train": 3}),
        site("b", leaf=True, calls={}),
        site("c", leaf=True, calls={"eval": 1}),
    ]
    assert [layer.address for layer in layers_that_ran(sites)] == ["a", "c"]


def test_all_of_them_where_no_call_was_seen() -> None:
    sites = [site("a", leaf=True, calls={}), site("b", leaf=True), site("c", leaf=False)]
    assert [layer.address for layer in layers_that_ran(sites)] == ["a", "b"]
    assert layers_that_ran([]) == []
