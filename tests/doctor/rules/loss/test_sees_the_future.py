"""The rule `sees-the-future`: when it reports, and when it asks."""

from __future__ import annotations

from tests.doctor.synthetic import Made


def test_what_it_says() -> None:
    whole = Made().examined("no look ahead", shift=1, reach=-1, tried=4, lines=["lm.py:9"])
    (finding,) = whole.found("sees-the-future")
    assert finding.severity == "error"
    assert "it sees all of the sequence" in finding.message
    assert finding.lines == ("lm.py:9",)
    near = Made().examined("no look ahead", shift=1, reach=2, tried=4)
    assert "it sees up to 2 steps ahead" in near.found("sees-the-future")[0].message


def test_it_asks_where_the_whole_may_be_read_on_purpose() -> None:
    made = Made().examined("no look ahead", "question", "an encoder may", shift=1, tried=4)
    (finding,) = made.found("sees-the-future")
    assert finding.severity == "info"
    assert finding.message.endswith("Is that meant? An encoder may.")


def test_one_position_is_not_enough() -> None:
    made = Made().examined("no look ahead", shift=1, tried=1)
    assert not made.found("sees-the-future")
    assert made.found("sees-the-future", tried=1)
