"""The examples, under `nethook run`: those that train have nothing wrong with them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nethook.doctor.diagnose import diagnose
from tests.running.both import Warm

EXAMPLES = Path(__file__).parents[2] / "examples"
SOURCES = {path.stem: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.py")}
TRAINING = sorted(name for name, text in SOURCES.items() if ".backward(" in text)
OPTIONS = {"mnist": ("--epochs", "1", "--seed", "1")}
# What some are there to show: a rate that kills units, and a head that cannot tell points apart.
ILL = {"dead_units": {"learning-rate-too-high"}, "features": {"not-learning"}}


def test_the_others_train_nothing() -> None:
    others = set(SOURCES) - set(TRAINING)
    assert len(TRAINING) >= 8
    assert not [name for name in others if "optimizer.step(" in SOURCES[name]]


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.stop()


@pytest.mark.parametrize("name", TRAINING)
def test_an_example_is_healthy(name: str, tmp_path: Path, warm: Warm) -> None:
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    to = tmp_path / "run.db"
    words = ("-m", "nethook", "run", "--quiet", "--to", str(to))
    done = warm.run(*words, f"{name}.py", *OPTIONS.get(name, ()), cwd=folder)
    assert done.code == 0, done.err
    found = [each for path in sorted(tmp_path.glob("run*.db")) for each in diagnose(path)]
    told = {each.code for each in found if each.at_least("warning")}
    assert told == ILL.get(name, set()), "\n".join(map(str, found))
