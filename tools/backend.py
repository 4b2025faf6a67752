"""The build backend: scikit-build-core, with one more way to succeed.

scikit-build-core builds a pure wheel where compiling fails (see pyproject.toml), but not where
CMake itself is missing or broken. Here it does: an install without any build tool must succeed.
"""

from __future__ import annotations

from typing import Any

from scikit_build_core import build as skbuild
from scikit_build_core.build import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)
from scikit_build_core.errors import CMakeNotFoundError

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]

PURE = {"wheel.cmake": "false", "wheel.py-api": "py3"}
Settings = dict[str, Any] | None


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel, pure where there is no CMake."""
    try:
        return skbuild.build_wheel(wheel_directory, config_settings, metadata_directory)
    except CMakeNotFoundError:
        pure = {**(config_settings or {}), **PURE}
        return skbuild.build_wheel(wheel_directory, pure, metadata_directory)
