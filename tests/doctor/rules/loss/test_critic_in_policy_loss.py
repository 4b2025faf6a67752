"""The rule `critic-in-policy-loss`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import graph, well


def test_three_graphs() -> None:
    (finding,) = graph(well(), critics={"train.py:9": 3}).found("critic-in-policy-loss")
    assert finding.severity == "warning"
    assert finding.lines == ("train.py:9",)
    assert ".detach()" in finding.fix
    assert not graph(well(), critics={"train.py:9": 2}).found("critic-in-policy-loss")
    assert not graph(well(), critics={}).found("critic-in-policy-loss")
    assert not graph(well()).found("critic-in-policy-loss")  # an older run
