"""Parts of sentences."""

from __future__ import annotations

import math

import pytest

from nethook.doctor.phrases import (
    backward_line,
    call_lines,
    one_or_many,
    optimizer_lines,
    rate_in_words,
    scheduler_lines,
    some,
    source_line,
)
from tests.doctor.synthetic import Made


@pytest.mark.parametrize(
    ("sites", "words"),
    [
        (["a"], "`a`"),
        (["a", "b"], "`a` and `b`"),
        (["a", "b", "c"], "`a`, `b` and `c`"),
        (["a", "b", "c", "d"], "4 layers (`a`, `b`, `c`, …)"),
    ],
)
def test_some_sites(sites: list[str], words: str) -> None:
    assert some(sites, "layer") == words


def test_one_or_many() -> None:
    assert one_or_many(["a"], "gets", "get") == "gets"
    assert one_or_many(["a", "b"], "gets", "get") == "get"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("/home/me/train.py:42", " (train.py:42)"),
        ("C:\\me\\train.py:42", " (train.py:42)"),
        ("train.py:42", " (train.py:42)"),
        (None, ""),
        ("", ""),
    ],
)
def test_a_line_of_the_users_code(source: str | None, text: str) -> None:
    assert source_line(source) == text


def test_a_learning_rate_that_is_not_known_is_not_told() -> None:
    assert rate_in_words(0.003) == " The learning rate is 0.003."
    assert rate_in_words(math.nan) == ""


def test_the_line_of_the_first_backward_pass() -> None:
    made = Made().record(0, source="a.py:1").record(1, source="b.py:2")
    assert backward_line(made.history()) == " (a.py:1)"
    assert backward_line(Made().history()) == ""


def test_the_line_of_a_call() -> None:
    made = Made().event("order", 0, calls=["clip"]).event("order", 1, lines={"clip": "train.py:9"})
    assert call_lines(made.history(), "clip") == ("train.py:9",)
    assert call_lines(made.history(), "zero_grad") == ()


def test_lines_of_optimizers_and_schedulers() -> None:
    made = Made().event("groups", optimizer="0", line="train.py:5", schedulers=["train.py:6"])
    made.event("groups", 9, optimizer="0", line="train.py:5", schedulers=["train.py:6", "a.py:1"])
    made.event("groups", optimizer="1", line="", groups=[])  # not seen when it was made
    assert optimizer_lines(made.history()) == ("train.py:5",)
    assert scheduler_lines(made.history(), "0") == ("train.py:6", "a.py:1")
    assert scheduler_lines(made.history(), "1") == ()
