"""The plugin, in suites of its own: inert without being asked, and what it fails with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

TRAIN = """
import torch
from torch import nn

def made():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.SGD(model.parameters(), 0.1)

def train(model, optimizer, wipe=False, steps=30):
    x = torch.randn(64, 4)
    y = (x.sum(1) > 0).long()
    for step in range(steps):
        rows = torch.randint(64, (16,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        if wipe:
            optimizer.zero_grad()
        optimizer.step()
"""

ASKS = """
import pytest
from train import made, train

def test_fine(nethook_watch):
    model, optimizer = made()
    watch = nethook_watch(model, optimizer)
    train(model, optimizer)
    assert watch.step == 30

def test_ill(nethook_watch):
    model, optimizer = made()
    nethook_watch(model, optimizer)
    train(model, optimizer, wipe=True)

@pytest.mark.nethook(ignore=["gradient-wiped", "not-learning"])
def test_ignored(nethook_watch):
    model, optimizer = made()
    nethook_watch(model, optimizer)
    train(model, optimizer, wipe=True)
"""

ASKS_NOTHING = """
from train import made, train

def test_ill():
    train(*made(), wipe=True)

def test_without_training():
    assert True
"""

CHECKS = """
import torch
from torch import nn
from train import made

def batch():
    x = torch.randn(32, 4)
    return x, (x.sum(1) > 0).long()

def test_fine(nethook_checkup):
    model, optimizer = made()
    assert nethook_checkup(model, batch(), nn.CrossEntropyLoss(), optimizer).ok

def test_ill(nethook_checkup):
    model = nn.Sequential(made()[0], nn.Softmax(1))
    nethook_checkup(model, batch(), nn.CrossEntropyLoss())
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(train=TRAIN)
    return pytester


# In processes of their own: in this one pytester would unload torch after each.


def test_fixtures_fail_with_what_is_wrong(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_asks=ASKS, test_checks=CHECKS, test_plain=ASKS_NOTHING)
    result = suite.runpytest_subprocess("--strict-markers", "-p", "no:xdist")
    # A run is judged when its test is over. What asks for nothing is not watched.
    result.assert_outcomes(passed=6, failed=1, errors=1)
    result.stdout.no_fnmatch_line("nethook: trainings are watched*")
    result.stdout.fnmatch_lines(
        [
            "nethook: 1 finding in *",
            "gradient-wiped (error), since step *",
            "  fix: Call optimizer.zero_grad() before loss.backward()*",
        ]
    )
    result.stdout.fnmatch_lines(["*softmax-before-cross-entropy (error)*"])
    result.stdout.fnmatch_lines(
        ["*= nethook =*", "test_asks.py::test_ill: gradient-wiped (error)*"]
    )


def test_the_option_watches_what_any_test_trains(suite: pytest.Pytester, tmp_path: Path) -> None:
    suite.makepyfile(test_one=ASKS_NOTHING, test_two=ASKS_NOTHING)
    runs = tmp_path / "kept"
    result = suite.runpytest_subprocess("--nethook", f"--nethook-dir={runs}", "-n2")
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(["*= nethook =*", "*::test_ill: gradient-wiped (error)*"])
    # Each worker writes files of its own.
    assert len(list(runs.glob("gw*/test_ill*.db"))) == 2


def test_the_ini_file(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_plain=ASKS_NOTHING)
    suite.makeini("[pytest]\nnethook_ignore = gradient-wiped not-learning\n")
    result = suite.runpytest_subprocess("--nethook", "-p", "no:xdist")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["nethook: trainings are watched; findings from error on fail*"])


def test_a_severity_that_does_not_exist(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_plain="def test_fine(): pass")
    suite.makeini("[pytest]\nnethook_fail_on = shout\n")
    result = suite.runpytest_subprocess("--nethook", "-p", "no:xdist")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*must be one of info, warning, error; got 'shout'.*"])


def test_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, nethook.integrations.pytest_plugin\n"
        "print([name for name in ('torch', 'numpy', 'typer', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
