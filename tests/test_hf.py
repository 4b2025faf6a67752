"""`nethook.hf`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

MISSING = """
import sys
sys.modules["transformers"] = None
try:
    import nethook.hf
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_it_is_the_class_of_the_integration() -> None:
    import nethook.hf
    from nethook.integrations.hf import NethookCallback

    assert nethook.hf.NethookCallback is NethookCallback
    assert nethook.hf.__all__ == ["NethookCallback"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.hf needs transformers")
    assert "pip install transformers" in done.stdout
