"""The rule `symmetric-init`: when it reports, and when it does not."""

from __future__ import annotations

from tests.doctor.ill import cut
from tests.doctor.synthetic import Made


def rows(weights: int, gradients: int, count: int = 16) -> Made:
    return cut(rows=count, distinct_rows={"0": weights}, distinct_grad_rows={"0": gradients})


def test_rows_that_are_all_equal() -> None:
    (finding,) = rows(1, 1).found("symmetric-init")
    assert finding.sites == ("a.weight",)
    assert finding.message.startswith("the units of `a.weight` start with the same weights")
    assert not rows(2, 1).found("symmetric-init")


def test_gradients_that_differ_tell_the_units_apart() -> None:
    assert not rows(1, 2).found("symmetric-init")


def test_a_tenth_of_many_rows() -> None:
    assert rows(4, 4, 40).found("symmetric-init")
    assert not rows(5, 4, 40).found("symmetric-init")


def test_a_layer_with_one_unit() -> None:
    assert not rows(1, 1, 1).found("symmetric-init")


def columns(weights: int, gradients: int, shape: tuple[int, int] = (2, 48)) -> Made:
    facts = {"distinct_columns": {"0": weights}, "distinct_grad_columns": {"0": gradients}}
    rows = {"distinct_rows": {"0": shape[0]}, "distinct_grad_rows": {"0": shape[0]}}
    return cut(shape=list(shape), rows=shape[0], **rows, **facts)


def test_a_layer_that_has_its_units_in_columns() -> None:
    assert columns(1, 1).found("symmetric-init")
    assert not columns(48, 48).found("symmetric-init")
    assert not columns(1, 48).found("symmetric-init")
    assert not columns(1, 1, (48, 1)).found("symmetric-init")
