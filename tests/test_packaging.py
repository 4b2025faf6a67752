"""The wheel: with the native kernel, or pure where there is no compiler; every file is in it."""

from __future__ import annotations

import email
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"


def copy_project(to: Path) -> Path:
    """What building needs, apart from the working folder: a build must leave nothing there."""
    to.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "CMakeLists.txt"):
        shutil.copy(ROOT / name, to)
    shutil.copytree(SOURCES, to / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (to / "tools").mkdir()
    shutil.copy(ROOT / "tools/backend.py", to / "tools")
    # As an editable install leaves one.
    (to / "src/nethook/stats/native/_native.left-over.so").touch()
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


def with_hasty_compiler(folder: Path) -> dict[str, str]:
    """An environment whose compiler does not optimise: `make` has shown that it can."""
    folder.mkdir()
    tool = folder / "c++"
    tool.write_text(f'#!/bin/sh\nexec {shutil.which("c++")} "$@" -O0\n')
    tool.chmod(0o755)
    return {**os.environ, "CXX": str(tool)}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    return build(place, without_compiler(place / "bin"))


def build(place: Path, environment: dict[str, str]) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--wheel-dir", str(place / "out"), str(copy_project(place / "project"))]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = (place / "out").iterdir()
    return built


def project_files() -> set[str]:
    found = {path.relative_to(SOURCES).as_posix() for path in SOURCES.rglob("*") if path.is_file()}
    return {name for name in found if "__pycache__" not in name and "/_native." not in name}


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
    assert core == {"torch>=2.8", "numpy", "safetensors", "typer", "rich"}
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


SUMMARISE = """
import warnings
import torch
from nethook.stats.native.binding import instruction_set
from nethook.stats.summary import summarise
print(instruction_set())
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    print(summarise(torch.arange(4.0)), summarise(torch.arange(4.0)).count)
print(*[each.category.__name__ for each in said if "native kernel" in str(each.message)])
"""
SUMMARY = "Summary(4 elements, mean 1.5, std 1.118, min 0, max 3, median 1.09, 25.0% zero) 4"


def summarise_with(wheel: Path, folder: Path) -> list[str]:
    """What a program prints that summarises with the nethook of a wheel."""
    zipfile.ZipFile(wheel).extractall(folder)
    path = [str(folder), *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}]
    done = subprocess.run(
        [sys.executable, "-S", "-c", SUMMARISE],  # -S: not the nethook that is installed here
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_a_compiler_the_torch_kernel_serves_and_says_so_once(
    wheel: Path, tmp_path: Path
) -> None:
    assert summarise_with(wheel, tmp_path) == ["None", SUMMARY, "NoNativeKernelWarning"]


def test_a_compiler_that_fails_gives_the_pure_wheel(tmp_path: Path) -> None:
    # CMake works here, and the compiler does not.
    environment = without_compiler(tmp_path / "bin")
    for name in ("cmake", "cmake3", "ninja", "make"):
        (tmp_path / "bin" / name).unlink()
    wheel = build(tmp_path, environment)
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.skipif(
    not (shutil.which("cmake") and (shutil.which("c++") or shutil.which("cl"))),
    reason="there is no compiler here",
)
def test_a_release_without_the_kernel_is_none(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    command += ["--wheel-dir", str(tmp_path / "out"), str(copy_project(tmp_path / "project"))]
    environment = {**without_compiler(tmp_path / "bin"), "NETHOOK_REQUIRE_NATIVE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").glob("*.whl"))


def test_with_a_compiler_the_wheel_has_the_native_kernel(tmp_path: Path) -> None:
    environment = with_hasty_compiler(tmp_path / "bin") if os.name == "posix" else dict(os.environ)
    wheel = build(tmp_path, environment)
    assert not wheel.name.endswith("-any.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    (kernel,) = names - project_files()
    assert kernel.startswith("nethook/stats/native/_native.")
    assert "left-over" not in kernel
    used, summary, *said = summarise_with(wheel, tmp_path / "unpacked")
    assert used in {"avx512", "avx2", "baseline"}
    assert summary == SUMMARY
    assert said == [""]


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
    assert {"CMakeLists.txt", "tools/backend.py"} <= names
    assert not any(name.endswith(".so") for name in names)
