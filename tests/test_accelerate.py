"""`nethook.accelerate`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

MISSING = """
import sys
sys.modules["accelerate"] = None
try:
    import nethook.accelerate
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_it_is_the_class_of_the_integration() -> None:
    import nethook.accelerate
    from nethook.integrations.accelerate import NethookTracker

    assert nethook.accelerate.NethookTracker is NethookTracker
    assert nethook.accelerate.__all__ == ["NethookTracker"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.accelerate needs accelerate")
    assert "pip install accelerate" in done.stdout
