"""Two runs, trained once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.runs import train


@pytest.fixture(scope="session")
def ill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose gradients are wiped."""
    return train(tmp_path_factory.mktemp("ill") / "ill.db", wipe=True)


@pytest.fixture(scope="session")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that learns."""
    return train(tmp_path_factory.mktemp("well") / "well.db", steps=80)
