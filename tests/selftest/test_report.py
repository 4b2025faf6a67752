"""The page of the self-test."""

from __future__ import annotations

import json

import pytest
import torch

from nethook.errors import OptionError
from nethook.selftest import report
from nethook.selftest.checks import Check, NotAskedError

CPU = torch.device("cpu")


def test_a_failure_keeps_no_other_check_from_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: torch.device) -> tuple[str, dict[str, object]]:
        raise AssertionError("bits differ")

    def skips(_: torch.device) -> tuple[str, dict[str, object]]:
        raise NotAskedError("no device")

    asked = (
        Check("a", fails),
        Check("b", skips),
        Check("c", lambda _: ("well", {"ratio": 1.5})),
    )
    monkeypatch.setattr(report, "CHECKS", asked)
    given = list(report.answers(CPU))
    assert [answer.state for answer in given] == ["failed", "not asked", "passed"]
    assert [str(answer)[0] for answer in given] == ["✗", "–", "✓"]
    assert given[0].text == "bits differ"
    data = json.loads(json.dumps(report.as_data(CPU, given)))
    assert data["about"]["device"] == "cpu"
    assert data["answers"][2]["numbers"] == {"ratio": 1.5}


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:77"])
def test_a_device_that_is_not_there(name: str) -> None:
    with pytest.raises(OptionError, match="`--device` must be a device"):
        report.usable(name)
