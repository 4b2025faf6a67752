"""The command `nethook`: help, version, and what it does not know."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import nethook
from nethook import torch_private  # noqa: F401 - it fills the list
from nethook.private_names import NAMES
from tests.cli.command import run as called

SCRIPT = [str(Path(sys.executable).with_name("nethook"))]
MODULE = [sys.executable, "-m", "nethook"]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["nethook", "python -m nethook"])
def test_help_and_the_bare_command_print_the_same(command: list[str]) -> None:
    bare, asked = run(*command), run(*command, "--help")
    assert bare.returncode == asked.returncode == 0
    assert bare.stderr == asked.stderr == ""
    assert bare.stdout.strip() == asked.stdout.strip()
    assert "Usage: nethook [OPTIONS]" in asked.stdout
    assert "--version" in asked.stdout


@pytest.mark.parametrize("command", [SCRIPT, MODULE], ids=["nethook", "python -m nethook"])
def test_version(command: list[str]) -> None:
    done = run(*command, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    first, torchs, names = done.stdout.splitlines()
    assert first == f"nethook {nethook.__version__}"
    assert torchs == f"torch {version('torch')} (tested with 2.8 to 2.15)"
    assert names == f"all {len(NAMES)} private names of torch that nethook uses work"


def test_an_unknown_command_is_an_error_that_names_it() -> None:
    done = run(*SCRIPT, "no-such-command")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "no-such-command" in done.stderr


def test_help_names_the_commands():
    shown = called("--help").stdout
    for name in ("report", "diff", "export"):
        assert name in shown
        assert called(name, "--help").exit_code == 0
