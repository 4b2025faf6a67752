"""`nethook.keras`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["keras"] = None
try:
    import nethook.keras
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.filterwarnings("ignore")  # of Keras's own imports
def test_it_is_the_class_of_the_integration() -> None:
    pytest.importorskip("keras", reason="Keras is in the environment of `make trainers`.")
    import nethook.keras
    from nethook.integrations.keras import NethookCallback

    assert nethook.keras.NethookCallback is NethookCallback
    assert nethook.keras.__all__ == ["NethookCallback"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.keras needs Keras")
    assert "pip install keras" in done.stdout
