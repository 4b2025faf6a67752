"""The build backend: scikit-build-core, and a pure wheel where the native kernel cannot be built.

scikit-build-core can do this by itself where compiling fails (`if.failed`), but not where CMake is
missing or broken; and it then compiles twice, once for the metadata alone. An install without any
build tool must succeed: tests/test_packaging.py holds that promise.

A release must not ship a pure wheel by accident: with NETHOOK_REQUIRE_NATIVE=1 a kernel that cannot
be built ends the build.
"""

from __future__ import annotations

import os
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
    """Build the wheel, pure where the native kernel cannot be built (unless it must be)."""
    try:
        return skbuild.build_wheel(wheel_directory, config_settings)
    except (CMakeNotFoundError, SystemExit):  # SystemExit: CMake or the compiler failed
        if os.environ.get("NETHOOK_REQUIRE_NATIVE", "") not in ("", "0"):
            raise
        return skbuild.build_wheel(wheel_directory, {**(config_settings or {}), **PURE})


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Settings = None
) -> str:
    """Write the metadata, which are the same for both wheels, without looking for CMake."""
    pure = {**(config_settings or {}), **PURE}
    return skbuild.prepare_metadata_for_build_wheel(metadata_directory, pure)
