"""`nethook.sb3`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["stable_baselines3"] = None
try:
    import nethook.sb3
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.filterwarnings("ignore")  # of Stable-Baselines3's own imports
def test_it_is_the_class_of_the_integration() -> None:
    pytest.importorskip(
        "stable_baselines3", reason="Stable-Baselines3 is in the environment of `make trainers`."
    )
    import nethook.sb3
    from nethook.integrations.sb3 import NethookCallback

    assert nethook.sb3.NethookCallback is NethookCallback
    assert nethook.sb3.__all__ == ["NethookCallback"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.sb3 needs Stable-Baselines3")
    assert "pip install stable-baselines3" in done.stdout
