"""`nethook.lightning`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["lightning"] = sys.modules["pytorch_lightning"] = None
try:
    import nethook.lightning
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.filterwarnings("ignore")  # of Lightning's own imports
def test_it_is_the_class_of_the_integration() -> None:
    import nethook.lightning
    from nethook.integrations.lightning import NethookCallback

    assert nethook.lightning.NethookCallback is NethookCallback
    assert nethook.lightning.__all__ == ["NethookCallback"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.lightning needs Lightning")
    assert "pip install lightning" in done.stdout
