"""A torch that is newer than those tested: silent, or one warning."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest
import torch

from nethook.hooks.canaries import newer, registry
from nethook.hooks.canaries.newer import UntestedTorchWarning, warn_if_changed


@pytest.fixture(autouse=True)
def not_asked_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newer, "_asked", [])


def test_a_tested_torch_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newer, "failing", lambda **_: 1 / 0)
    warn_if_changed()


def test_a_newer_one_in_which_all_works_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "9.1.0")
    warn_if_changed()


def test_a_newer_one_that_has_changed_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", "9.1.0")
    monkeypatch.setitem(registry.CANARIES, "torch._lazy_clone", lambda: False)
    with pytest.warns(UntestedTorchWarning, match=r"2\.8 to 2\.15, and torch 9\.1\.0.*memory"):
        warn_if_changed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_changed()


PROGRAM = """
import torch
torch.__version__ = {version!r}
del torch._lazy_clone
import nethook
model = torch.nn.Linear(2, 2)
with nethook.trace(model) as tape:
    model(torch.ones(1, 2))
print(tape[""].output.shape)
"""


@pytest.mark.parametrize(("version", "warned"), [("2.15.0", 0), ("9.1.0", 1)])
def test_a_user_meets_it_on_first_use(version: str, warned: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(version=version)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("UntestedTorchWarning") == warned
    assert "torch.Size([1, 2])" in done.stdout


def test_an_older_torch_is_refused_on_first_use() -> None:
    program = PROGRAM.format(version="2.7.1").replace("del torch._lazy_clone\n", "")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "nethook.errors.OldTorchError: nethook needs torch 2.8 or newer, and torch 2.7.1 is "
        "installed: pip install --upgrade 'torch>=2.8'"
    )
