"""`nethook.fastai`: what people import, and what it says without its library."""

from __future__ import annotations

import subprocess
import sys

import pytest

MISSING = """
import sys
sys.modules["fastai"] = None
try:
    import nethook.fastai
except ImportError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.filterwarnings("ignore")  # of fastai's own imports
def test_it_is_the_class_of_the_integration() -> None:
    pytest.importorskip("fastai", reason="fastai is in an environment of an older torch.")
    import nethook.fastai
    from nethook.integrations.fastai import NethookCallback

    assert nethook.fastai.NethookCallback is NethookCallback
    assert nethook.fastai.__all__ == ["NethookCallback"]


def test_without_the_library_it_says_what_to_install() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("MissingLibraryError nethook.fastai needs fastai")
    assert "pip install fastai" in done.stdout
