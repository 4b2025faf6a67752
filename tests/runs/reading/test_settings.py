"""How a run was configured."""

from __future__ import annotations

import pytest

from nethook.runs.reading.settings import (
    command_settings,
    is_seed,
    script_of,
    settings_of,
    without_seed,
)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        (["python", "train.py", "--lr", "0.1"], "train.py"),
        (["python", "/home/me/train.py"], "train.py"),
        (["python", "-m", "package.train", "--lr=1"], "package.train"),
        (["python"], ""),
        (["python", "-m"], ""),
        ("python train.py", ""),
        (None, ""),
        ([1, 2], ""),
    ],
)
def test_the_script_of_a_command(command: object, script: str) -> None:
    assert script_of(command) == script


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--lr", "0.1", "--seed=3"], {"lr": "0.1", "seed": "3"}),
        (["--amp", "--no-compile", "-b", "64"], {"amp": "on", "no_compile": "on", "b": "64"}),
        (["--shift", "-0.5"], {"shift": "-0.5"}),
        (["model.width=64", "data.csv"], {"model.width": "64"}),
        (["--key", "***"], {"key": "***"}),
        (["--", "x"], {}),
        (["--name="], {"name": ""}),
    ],
)
def test_options_of_a_command(words: list[str], found: dict[str, str]) -> None:
    assert command_settings(["python", "train.py", *words]) == found


@pytest.mark.parametrize("command", [None, "python train.py", [1, 2], [], ["python"]])
def test_what_is_no_command_has_none(command: object) -> None:
    assert command_settings(command) == {}


def test_optimizers_and_the_commit_are_settings() -> None:
    info = {"optimizers": {"0": "AdamW", "1": "SGD"}, "git": {"commit": "0123456789abcdef"}}
    assert settings_of(info) == {"optimizer": "AdamW, SGD", "commit": "0123456789"}
    assert settings_of({"optimizers": 5, "git": "x"}) == {}


def test_seeds_and_places_are_not_what_tells_configurations_apart() -> None:
    names = ("seed", "random_seed", "data.seed", "seeds", "lr")
    assert [name for name in names if is_seed(name)] == ["seed", "random_seed", "data.seed"]
    one = without_seed({"lr": "0.1", "seed": "1", "output_dir": "a"})
    assert one == without_seed({"output_dir": "b", "seed": "2", "lr": "0.1"}) == (("lr", "0.1"),)
