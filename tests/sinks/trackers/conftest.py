"""Trackers are big, and their pins clash with ours: `make trackers` has an environment for them.

What is not installed is not collected here.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARIES = {
    "wandb": "wandb",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "trackio": "trackio",
    "comet": "comet_ml",
    "clearml": "clearml",
    "swanlab": "swanlab",
}


def _is_installed(library: str) -> bool:
    found = importlib.util.find_spec(library)
    return found is not None and found.origin is not None


collect_ignore = [
    f"test_{name}.py" for name, library in LIBRARIES.items() if not _is_installed(library)
]
if collect_ignore:
    collect_ignore.append("test_all.py")


def pytest_collection_modifyitems(items):
    """Libraries of strangers warn of one another: that is no error of ours."""
    for item in items:  # of the whole session
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(autouse=True)
def _at_home(tmp_path, monkeypatch):
    """No tracker finds an account, or leaves anything outside the test's folder."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
