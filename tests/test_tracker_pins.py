"""The pins of `make trackers`."""

from __future__ import annotations

import tomllib

from tools.tracker_pins import OTHERWISE, ROOT, pins

CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")


def test_only_what_is_listed_differs() -> None:
    lines = set(pins(CONSTRAINTS).splitlines()) - set(CONSTRAINTS.splitlines())
    assert lines == {f"{name}=={version}" for name, version in OTHERWISE.items()}
    assert len(pins(CONSTRAINTS).splitlines()) == len(CONSTRAINTS.splitlines())


def test_every_tracker_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {line.partition("==")[0] for line in CONSTRAINTS.splitlines()}
    for asked in project["optional-dependencies"]["trackers"]:
        assert asked.partition(">=")[0] in pinned
