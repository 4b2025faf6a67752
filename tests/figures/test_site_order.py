"""Sites in the order in which they ran, and as a tree."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nethook.figures.site_order import order_of, shape_text, tree_rows


def run(**sites: dict[str, Any]) -> Any:
    """A run with these sites; `_` in a name stands for a dot."""
    return SimpleNamespace(
        sites=[
            SimpleNamespace(
                address=name.replace("_", "."), kind=info.get("kind", "Linear"), info=info
            )
            for name, info in sites.items()
        ]
    )


def test_modules_stand_by_their_first_call_and_what_never_ran_stands_last() -> None:
    order = order_of(
        run(
            never={"order": 0},
            second={"order": 1, "first_call": 7},
            first={"order": 2, "first_call": 3},
        )
    )
    assert order.sorted(["unknown", "never", "second", "first", "first"]) == [
        "first", "second", "never", "unknown",
    ]  # fmt: skip


def test_without_a_word_on_calls_sites_stand_as_they_were_recorded() -> None:
    order = order_of(run(b={}, a={"first_call": "soon"}, c={"first_call": True}))
    assert order.sorted(["a", "b", "c"]) == ["b", "a", "c"]


def test_parameters_stand_with_their_first_owner() -> None:
    tied = {"kind": "Parameter", "owners": ["late", "early", "gone", 3]}
    order = order_of(
        run(
            late={"order": 0, "first_call": 9},
            early={"order": 1, "first_call": 1},
            middle={"order": 2, "first_call": 5},
            tied=tied,
        )
    )
    assert order.sorted(["late", "middle", "tied", "early"]) == ["early", "tied", "middle", "late"]


def test_what_a_run_says_of_a_site() -> None:
    order = order_of(run(fc={"kind": "Linear", "parameters": ["fc.weight"]}, odd={"parameters": 3}))
    assert (order.kind("fc"), order.parameters("fc")) == ("Linear", ["fc.weight"])
    assert (order.kind("none"), order.info("none"), order.parameters("none")) == ("", {}, [])
    assert order.parameters("odd") == []


def test_a_tree_has_parents_before_children_and_sums_their_parameters() -> None:
    weight = {"kind": "Parameter", "elements": 6}
    rows = tree_rows(
        order_of(
            run(
                block_b={"order": 0, "first_call": 2, "parameters": ["block.b.weight"]},
                block_a={"order": 1, "first_call": 1, "calls": {"train": 0}},
                head={"order": 2, "first_call": 3, "shape": [8, 2], "parameters": ["head.weight"]},
                block_b_weight={**weight, "owners": ["block.b"]},
                head_weight={**weight, "elements": 1 << 60},
            )
        )
    )
    assert [row.address for row in rows] == ["block", "block.a", "block.b", "head"]
    assert [row.depth for row in rows] == [0, 1, 1, 0]
    assert [row.parameters for row in rows] == [6, 0, 6, 0]  # a number past 2**53 is not believed
    assert [row.note for row in rows] == ["", "never called", "", ""]
    assert rows[-1].shape == "8 × 2"


@pytest.mark.parametrize(
    ("shape", "text"), [([64, 20], "64 × 20"), ([], "scalar"), (None, ""), (["x"], ""), ("64", "")]
)
def test_a_shape_in_words(shape: Any, text: str) -> None:
    assert shape_text(shape) == text
