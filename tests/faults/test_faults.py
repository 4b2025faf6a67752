"""The short form of every kind of fault; `make faults` runs the long one."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.faults import KINDS

CASES = [
    (kind, seed)
    for kind in KINDS
    for seed in range(importlib.import_module(f"tests.faults.{kind}").SHORT)
]


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_survives(kind: str, seed: int, tmp_path: Path) -> None:
    importlib.import_module(f"tests.faults.{kind}").attempt(seed, tmp_path)


def test_every_file_is_listed() -> None:
    here = Path(__file__).parent
    files = {path.stem for path in here.glob("*.py")} - {"__init__", "__main__", "test_faults"}
    assert files == set(KINDS)
