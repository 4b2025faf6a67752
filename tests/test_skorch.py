"""`nethook.skorch`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["skorch"] = None
try:
    import nethook.skorch
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.filterwarnings("ignore")  # of skorch's own imports
def test_it_is_the_class_of_the_integration() -> None:
    pytest.importorskip("skorch", reason="skorch is in the environment of `make trainers`.")
    import nethook.skorch
    from nethook.integrations.skorch import NethookCallback

    assert nethook.skorch.NethookCallback is NethookCallback
    assert nethook.skorch.__all__ == ["NethookCallback"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.skorch needs skorch")
    assert "pip install skorch" in done.stdout
