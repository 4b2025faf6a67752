"""The wheel: pure, built without a compiler, with every module and every room's README in it."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"


def copy_project(to: Path) -> Path:
    """What building needs, apart from the working folder: a build must leave nothing there."""
    to.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, to)
    shutil.copytree(SOURCES, to / "src", ignore=shutil.ignore_patterns("__pycache__"))
    return to


def without_compiler(folder: Path) -> dict[str, str]:
    """An environment in which every compiler and build tool fails, and pip has no index."""
    folder.mkdir()
    for name in ("cc", "gcc", "clang", "c++", "g++", "clang++", "cmake", "cmake3", "ninja", "make"):
        tool = folder / name
        tool.write_text("#!/bin/sh\necho 'there is no compiler here' >&2\nexit 1\n")
        tool.chmod(0o755)
    broken = {"CC": str(folder / "cc"), "CXX": str(folder / "c++"), "PIP_NO_INDEX": "1"}
    return {**os.environ, **broken, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--wheel-dir", str(place / "out"), str(copy_project(place / "project"))]
    done = subprocess.run(
        command,
        env=without_compiler(place / "bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (place / "out").iterdir()
    return built


def project_files() -> set[str]:
    found = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*") if path.is_file()}
    return {name for name in found if "__pycache__" not in name}


def test_the_wheel_is_pure(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_wheel_holds_every_file_and_no_other(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == project_files()
    assert "nethook/py.typed" in names
    assert "nethook/cli/README.md" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_the_core_dependencies_are_five(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    fields = email.message_from_bytes(archive.read(metadata))
    required = fields.get_all("Requires-Dist") or []
    core = {entry for entry in required if "extra ==" not in entry}
    assert core == {"torch>=2.13", "numpy", "safetensors", "typer", "rich"}
    assert fields["License-Expression"] == "MIT"


def test_the_wheel_runs_where_it_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = "import nethook; print(nethook.__version__); print(nethook.__file__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],  # -S: not the nethook that is installed here
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    version, file = done.stdout.splitlines()
    assert version == wheel.name.split("-")[1]
    assert Path(file) == tmp_path / "nethook" / "__init__.py"


def test_a_source_archive_holds_the_sources(tmp_path: Path) -> None:
    program = f"from scikit_build_core.build import build_sdist; build_sdist({str(tmp_path)!r})"
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=copy_project(tmp_path / "project"),
        env=without_compiler(tmp_path / "bin"),
        capture_output=True,
        check=True,
    )
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    assert {f"src/{name}" for name in project_files()} | {"pyproject.toml", "LICENSE"} <= names
