"""The fact `graph` as rules read it, whatever of it is there."""

from __future__ import annotations

from nethook.doctor.signals.graph import NOTHING, graph_of
from tests.doctor.ill import graph, loose, orphaned
from tests.doctor.synthetic import Made


def test_an_older_run_has_none() -> None:
    assert graph_of(Made().history()) == NOTHING
    made = Made()
    made.info["graph"] = "?"
    assert graph_of(made.history()) == NOTHING


def test_what_is_missing_is_nothing() -> None:
    made = Made()
    made.info["graph"] = {"looks": 4, "others": [{}, None], "optimizers": [{}], "unheld": None}
    known = graph_of(made.history())
    assert known.looks == 4
    assert known.loose == ()
    assert known.stale == ()


def test_only_what_stays_where_it_is_is_loose() -> None:
    others = [loose(), loose(moved=True), loose(looks=2)]
    known = graph_of(graph(Made(), others=others, unheld=[loose(address="a.b")]).history())
    assert [one.where for one in known.loose] == ["a.b", "blocks"]
    assert [one.where for one in known.registered] == ["a.b"]
    assert known.moved


def test_an_optimizer_is_stale_once_it_has_stepped() -> None:
    for steps, count in ((0, 0), (2, 0), (3, 1)):
        known = graph_of(graph(Made(), optimizers=orphaned(steps=steps)).history())
        assert len(known.stale) == count
