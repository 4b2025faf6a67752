"""Linear layers in a row."""

from __future__ import annotations

from typing import Any

import pytest

from nethook.doctor.signals.linear import Pair, linear_pairs
from tests.doctor.synthetic import Made


def run(*ops: tuple[str, str, list[int]], **shapes: list[int]) -> list[tuple[str, str]]:
    """The pairs of `found`, without what stands between them."""
    return [(pair.first, pair.second) for pair in found(*ops, **shapes)]


def found(*ops: tuple[str, str, list[int]], **shapes: list[int]) -> list[Pair]:
    """Operations (site, op, sources); weights of 16 by 16 where no other shape is given."""
    made = Made()
    linear = ("linear", "conv2d", "add", "view", "mul")
    made.info["ops"] = [
        {"site": site, "op": op, "linear": op in linear, "from": sources}
        for site, op, sources in ops
    ]
    for site in dict.fromkeys(site for site, op, _ in ops if op in ("linear", "conv2d")):
        made.parameter(f"{site}.weight", shape=shapes.get(site, [16, 16]))
    return list(linear_pairs(made.history()))


def test_two_layers_with_linear_operations_between() -> None:
    assert run(("a", "linear", []), ("", "view", [0]), ("b", "linear", [1])) == [("a", "b")]
    assert not run(("a", "linear", []), ("", "relu", [0]), ("b", "linear", [1]))


def test_three_in_a_row_are_two_pairs() -> None:
    ops = [("a", "linear", []), ("b", "linear", [0]), ("c", "linear", [1])]
    assert run(*ops) == [("a", "b"), ("b", "c")]


def test_a_sum_of_two_ways_is_more_than_one_layer() -> None:
    ops = [("a", "linear", []), ("b", "linear", []), ("", "add", [0, 1]), ("c", "linear", [2])]
    assert not run(*ops)


def test_one_layer_called_twice_is_no_pair() -> None:
    assert not run(("a", "linear", []), ("a", "linear", [0]))


@pytest.mark.parametrize(("between", "meant"), [(4, True), (16, False), (64, False)])
def test_a_narrow_space_between_is_meant(between: int, meant: bool) -> None:
    pairs = run(("a", "linear", []), ("b", "linear", [0]), a=[between, 16], b=[16, between])
    assert (not pairs) is meant


def test_depthwise_convolutions_are_left_out() -> None:
    ops: Any = [("a", "conv2d", []), ("b", "conv2d", [0])]
    assert run(*ops, a=[16, 16, 3, 3], b=[16, 16, 1, 1]) == [("a", "b")]
    assert not run(*ops, a=[16, 1, 3, 3], b=[16, 16, 1, 1])


def test_batch_norms_are_passed_and_noted() -> None:
    normed = ("bn", "batch_norm", [0])
    assert found(("a", "linear", []), normed, ("b", "linear", [1])) == [Pair("a", "b", True)]
    assert not found(("a", "linear", []), ("ln", "layer_norm", [0]), ("b", "linear", [1]))
    assert not found(("a", "linear", []), normed, ("", "relu", [1]), ("b", "linear", [2]))


def test_a_file_without_operations() -> None:
    assert not list(linear_pairs(Made().history()))
