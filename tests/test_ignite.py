"""`nethook.ignite`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["ignite"] = None
try:
    import nethook.ignite
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.filterwarnings("ignore")  # of Ignite's own imports
def test_it_is_the_class_of_the_integration() -> None:
    pytest.importorskip("ignite", reason="Ignite is in the environment of `make trainers`.")
    import nethook.ignite
    from nethook.integrations.ignite import NethookHandler

    assert nethook.ignite.NethookHandler is NethookHandler
    assert nethook.ignite.__all__ == ["NethookHandler"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.ignite needs Ignite")
    assert "pip install pytorch-ignite" in done.stdout
