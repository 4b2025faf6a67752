"""What a rule is."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from nethook.doctor.rule import Cause, Rule
from nethook.errors import OptionError


@dataclass(frozen=True)
class Limits:
    share: float = 0.5
    steps: float = 10


def rule(defaults: object = None) -> Rule:
    return Rule("my-rule", Cause.DATA, lambda history, limit: [], ("info.x",), defaults)


def test_thresholds_are_the_defaults_until_they_are_changed() -> None:
    limits = Limits()
    assert rule(limits).thresholds({}) is limits
    assert rule(limits).thresholds({"share": 0.1}) == Limits(0.1, 10)
    assert limits == Limits()


def test_a_threshold_that_does_not_exist() -> None:
    words = r"`thresholds` must name thresholds of my-rule \(share, steps\); got 'shares'\."
    with pytest.raises(OptionError, match=words):
        rule(Limits()).thresholds({"shares": 0.1})
    with pytest.raises(OptionError, match=r"my-rule \(none\)"):
        rule().thresholds({"share": 0.1})


def test_what_explains_what() -> None:
    assert [cause.name for cause in sorted(Cause)] == [
        "LOOP", "LOSS", "DATA", "START", "SETTINGS", "SYMPTOM", "REST",
    ]  # fmt: skip
