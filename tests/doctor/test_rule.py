"""What a rule is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pytest

from nethook.doctor.rule import Cause, Rule
from nethook.errors import OptionError


class Limits(NamedTuple):
    share: float = 0.5
    steps: float = 10


@dataclass(frozen=True)
class LimitsOfAnother:  # as rules of other packages may have them
    share: float = 0.5
    steps: float = 10


both = pytest.mark.parametrize("made", [Limits, LimitsOfAnother])


def rule(defaults: object = None) -> Rule:
    return Rule("my-rule", Cause.DATA, lambda history, limit: [], ("info.x",), defaults)


@both
def test_thresholds_are_the_defaults_until_they_are_changed(made: type[Limits]) -> None:
    limits = made()
    assert rule(limits).threshold_names == ("share", "steps")
    assert rule(limits).thresholds({}) is limits
    assert rule(limits).thresholds({"share": 0.1}) == made(0.1, 10)
    assert limits == made()


@both
def test_a_threshold_that_does_not_exist(made: type[Limits]) -> None:
    words = r"`thresholds` must name thresholds of my-rule \(share, steps\); got 'shares'\."
    with pytest.raises(OptionError, match=words):
        rule(made()).thresholds({"shares": 0.1})
    with pytest.raises(OptionError, match=r"my-rule \(none\)"):
        rule().thresholds({"share": 0.1})


def test_what_explains_what() -> None:
    assert [cause.name for cause in sorted(Cause)] == [
        "LOOP", "LOSS", "DATA", "START", "SETTINGS", "SYMPTOM", "REST",
    ]  # fmt: skip
