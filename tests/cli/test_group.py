"""What is said of a command that does not exist."""

from __future__ import annotations

import pytest

from nethook.cli.main import app
from tests.cli.command import run


def said(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 2
    return " ".join(done.output.replace("│", " ").split())


def test_all_commands_where_none_is_like_it() -> None:
    text = said("frobnicate")
    assert "No such command 'frobnicate'. Choose one of run, diagnose, replay" in text
    assert "check," not in text  # a hidden name
    for command in app.registered_commands:
        assert command.hidden or f"{command.name}" in text


@pytest.mark.parametrize(("typed", "meant"), [("rn", "run"), ("reprot", "report"), ("uii", "ui")])
def test_the_one_that_is_like_it(typed: str, meant: str) -> None:
    assert f"No such command '{typed}'. Did you mean '{meant}'" in said(typed)


def test_a_script_is_run() -> None:
    text = said("train.py", "--epochs", "3")
    assert "No such command 'train.py'. To run a script, type: nethook run train.py" in text


def test_an_option_that_does_not_exist() -> None:
    assert "No such option: --frob" in said("--frob")
