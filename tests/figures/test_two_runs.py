"""Runs in one figure, against the numbers of each."""

from __future__ import annotations

import numpy as np
import pytest

from nethook.figures.reading import Reading
from nethook.figures.two_runs import curves_of, ratio_of_two
from tests.figures.shared import changed, training

NAMES = ("first", "second")


@pytest.fixture(scope="module")
def both() -> tuple[Reading, Reading]:
    return Reading(training()), Reading(changed())


def test_every_curve_has_the_name_of_its_run_and_one_colour_per_run(
    both: tuple[Reading, Reading],
) -> None:
    spec = curves_of(both, NAMES, [])
    named = {trace["name"]: trace for trace in spec["data"] if trace.get("name")}
    for name in NAMES:
        for line in ("training", "evaluation", "as used", "before clipping"):
            assert f"{name}, {line}" in named
    assert named["first, evaluation"]["line"]["dash"] == "dash"
    assert named["first, before clipping"]["line"]["dash"] == "dot"
    colours = {
        name: {trace["line"]["color"] for text, trace in named.items() if text.startswith(name)}
        for name in NAMES
    }
    assert [len(colour) for colour in colours.values()] == [1, 1]
    assert colours["first"] != colours["second"]


def test_a_title_only_where_asked(both: tuple[Reading, Reading]) -> None:
    assert "first and second" in str(curves_of(both, NAMES, [])["layout"].get("title"))
    assert "first and second" not in str(
        curves_of(both, NAMES, [], titled=False)["layout"].get("title")
    )


def test_a_ratio_is_in_doublings_and_zero_where_both_are_equal(
    both: tuple[Reading, Reading],
) -> None:
    one, two = (reading.needed_grid("spread") for reading in both)
    expected = np.log2(two.last / one.last)
    assert np.all(expected[:, one.last_step < 61] == 0)
    assert np.any(expected[:, one.last_step >= 61] != 0)
    spec = ratio_of_two(*both, "spread", NAMES, [])
    assert spec is not None
    assert "compared" in str(spec["layout"])
    same = ratio_of_two(both[0], both[0], "spread", NAMES, [])
    assert same is not None


def test_what_one_of_them_lacks_has_no_ratio(both: tuple[Reading, Reading], tmp_path) -> None:
    from nethook.runs.writing.writer import RunWriter

    with RunWriter(tmp_path / "a.db"):
        pass
    assert ratio_of_two(both[0], Reading(tmp_path / "a.db"), "spread", NAMES, []) is None
