"""`make bench-peers`: what its questions answer, for hooks written by hand and for nethook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tools.peers_page import ROOT


def asked(part: str, way: str, *questions: str) -> list[Any]:
    """The answers of the process of one way, the first of which says that it is ready."""
    done = subprocess.run(
        [sys.executable, "-m", "peers", "--serve", part, way],
        input="\n".join(questions),
        env={
            **os.environ,
            "BAUKIT": "",
            "PYTHONPATH": str(ROOT / "benchmarks"),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("way", "twice", "overwritten", "compiled"),
    [
        ("nethook", "both calls", "right", "right"),
        (
            "hooks by hand",
            "only the last, without a word",
            "wrong, without a word: the ReLU's values",
            "nothing is captured, without a word",
        ),
    ],
)
def test_capture(way: str, twice: str, overwritten: str, compiled: str) -> None:
    ready, time, checks = asked("capture", way, "time", "check")
    assert ready == {}
    assert 0 < time["seconds"] < 10
    assert checks == {
        "values": "bit-identical",
        "output": "bit-identical",
        "left": "nothing",
        "twice": twice,
        "overwritten": overwritten,
        "compiled": compiled,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from Linux")
def test_watching() -> None:
    ready, megabytes, checks = asked("watching", "the notes' hooks", "memory", "check")
    assert ready == {}
    assert 0 <= megabytes < 1000
    assert checks["training"] == "bit-identical"
    assert checks["left"] == "5 hooks"
    assert checks["nan"] == "no report of its own"


def test_watching_with_nethook() -> None:
    ready, checks = asked("watching", "nethook", "check")
    assert ready == {}
    assert checks["training"] == "bit-identical"
    assert checks["left"] == "nothing"
    assert checks["nan"] == "reported: non-finite"


def test_a_way_that_cannot_be_measured_says_why() -> None:
    (said,) = asked("capture", "baukit")
    assert "on no registry" in said["left_out"]
