"""An older torch is refused in one sentence, and nothing is imported to find out."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest

from nethook.errors import OldTorchError
from nethook.torch_versions import OLDEST, refuse_old_torch, torch_version

ROOT = Path(__file__).parents[1]
OLD = ["1.13.1", "2.0.0", "2.7.1", "2.7.1+cpu", "2.7.0.dev20250101", "2.7.0a0+git1234567"]
NEW = ["2.8.0", "2.8.0+cpu", "2.8.0a0+git1234567", "2.10.0", "2.16.0.dev20261116", "3.0.0", "mine"]


def loaded(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """As if a torch of this version had been imported."""
    torch = ModuleType("torch")
    torch.__version__ = version  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)


def installed(monkeypatch: pytest.MonkeyPatch, site: Path, version: str) -> None:
    """As if a torch of this version were installed, and not yet imported."""
    folder = site / f"torch-{version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    monkeypatch.delitem(sys.modules, "torch", raising=False)


@pytest.mark.parametrize("version", OLD)
def test_an_old_torch_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(monkeypatch, version)
    with pytest.raises(OldTorchError) as refused:
        refuse_old_torch()
    assert str(refused.value) == (
        f"nethook needs torch 2.8 or newer, and torch {version} is installed: "
        "pip install --upgrade 'torch>=2.8'"
    )


@pytest.mark.parametrize("version", NEW)
def test_a_newer_one_is_not(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(monkeypatch, version)
    refuse_old_torch()


def test_one_that_is_not_imported_yet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch, tmp_path, "2.6.0")
    with pytest.raises(OldTorchError, match=r"torch 2\.6\.0 is installed"):
        refuse_old_torch()
    assert "torch" not in sys.modules


def test_while_torch_is_being_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed(monkeypatch, tmp_path, "2.6.0")
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    with pytest.raises(OldTorchError, match=r"torch 2\.6\.0 is installed"):
        refuse_old_torch()


def test_without_a_torch_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert torch_version() is None
    refuse_old_torch()


def test_nothing_is_imported_for_it() -> None:
    program = (
        "import sys; from nethook.torch_versions import refuse_old_torch, torch_version;"
        "refuse_old_torch(); print(torch_version());"
        "assert not sys.modules.keys() & {'torch', 'numpy', 'packaging'}"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [metadata.version("torch")]


def test_the_dependency_says_the_same() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    assert f"torch>={OLDEST[0]}.{OLDEST[1]}" in needed
