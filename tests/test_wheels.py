"""`make wheels`: which wheel a Python takes, and an environment without a compiler."""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tools.wheels import OWN, ROOT, bare_path, need, wheel_of

NAMES = [
    "nethook-0.2.0-cp311-cp311-linux_x86_64.whl",
    "nethook-0.2.0-cp312-abi3-linux_x86_64.whl",
    "nethook-0.2.0.tar.gz",
]


@pytest.mark.parametrize(
    ("python", "wheel"),
    [("3.11", NAMES[0]), ("3.12", NAMES[1]), ("3.13", NAMES[1]), ("3.14", NAMES[1])],
)
def test_every_python_takes_one_wheel(python: str, wheel: str) -> None:
    assert wheel_of(python, NAMES) == wheel


def test_a_wheel_that_was_not_built_is_an_error() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        wheel_of("3.12", NAMES[:1])


def test_the_wheels_are_those_of_a_release() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    own = {f"cp{python.replace('.', '')}-*" for python in OWN}
    assert set(settings["cibuildwheel"]["build"]) == own
    assert OWN["3.12"].startswith(settings["scikit-build"]["wheel"]["py-api"])
    assert settings["cibuildwheel"]["environment"] == {"NETHOOK_REQUIRE_NATIVE": "1"}


def test_no_compiler_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "c++"
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", str(tool))
    assert shutil.which("c++") == str(tool)
    bare = bare_path(tmp_path / "env")
    assert shutil.which("c++", path=bare["PATH"]) is None
    assert "CXX" not in bare


def test_a_command_that_fails_ends_it() -> None:
    with pytest.raises(SystemExit, match="broken here"):
        need(sys.executable, "-c", "import sys; sys.exit('broken here')")
    assert need(sys.executable, "-c", "print(3)") == "3\n"
