"""The build backend: scikit-build-core, and a pure wheel where the native kernel cannot be built.

scikit-build-core can do this by itself where compiling fails (`if.failed`), but not where CMake is
missing or broken; and it then compiles twice, once for the metadata alone. An install without any
build tool must succeed: tests/test_packaging.py holds that promise.
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
    prepare_metadata_for_build_editable,
)
from scikit_build_core.errors import CMakeNotFoundError

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

PURE = {"wheel.cmake": "false", "wheel.py-api": "py3"}
Settings = dict[str, Any] | None


def build_wheel(
    wheel_directory: str,
    config_settings: Settings = None,
    metadata_directory: str | None = None,  # noqa: ARG001 - its tag is that of a pure wheel
) -> str:
    """Build the wheel, pure where the native kernel cannot be built."""
    try:
        return skbuild.build_wheel(wheel_directory, config_settings)
    except (CMakeNotFoundError, SystemExit):  # SystemExit: CMake or the compiler failed
        return skbuild.build_wheel(wheel_directory, {**(config_settings or {}), **PURE})


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Write the metadata, which are the same for both wheels, without looking for CMake."""
    pure = {**(config_settings or {}), **PURE}
    return skbuild.prepare_metadata_for_build_wheel(metadata_directory, pure)
