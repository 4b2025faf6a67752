"""`nethook.ray`: what people import. Ray itself is not imported: its workers have it."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["ray"] = None
import nethook.ray
print(nethook.ray.__all__)
"""


def test_it_is_the_function_of_the_integration() -> None:
    import nethook.ray
    from nethook.integrations.ray import followed

    assert nethook.ray.followed is followed
    assert nethook.ray.__all__ == ["followed"]


def test_the_library_is_not_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['followed']\n"
