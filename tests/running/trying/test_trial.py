"""What runs in the process of a trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.running.trying.change import Change
from nethook.running.trying.trial import TrialPlan
from tests.running.trying.trials import both, trial, with_fault


def test_a_plan_is_the_same_after_a_journey() -> None:
    plan = TrialPlan("a.py", ("--x", "1"), False, "/s", "/s/v", "/s/t.db", 3, 9, 1.5, "{}")
    assert TrialPlan.from_json(plan.to_json()) == plan


def test_a_trial_ends_after_its_steps(tmp_path: Path) -> None:
    made = trial(tmp_path, with_fault(), steps=15)
    assert (made.end.how, made.end.step) == ("steps", 15)
    [course] = made.losses.train.values()
    assert course.steps == 15


def test_two_trials_of_a_script_without_seeds_are_the_same(tmp_path: Path) -> None:
    seeded = "torch.manual_seed(0)"
    script = with_fault(
        (seeded, "import random, numpy"),
        (".manual_seed(1)", ""),
        ("x = torch.randn(256, 8, generator=generator)",
         "x = torch.randn(256, 8) + random.random()"),
        ("y = (x @ torch.randn(8, 1, generator=generator)).tanh()",
         "y = x[:, :1] * float(numpy.random.rand())"),
    )  # fmt: skip
    one, other = both(tmp_path, script, Change(), steps=5)
    [before], [after] = one.losses.train.values(), other.losses.train.values()
    assert before.value.tolist() == after.value.tolist()


@pytest.mark.parametrize(
    ("script", "how", "error"),
    [
        ("pass", "script", ""),
        ("raise SystemExit", "script", ""),
        ("import sys; sys.exit(3)", "script", "sys.exit(3)"),
        ("raise ValueError('no data')", "script", "ValueError: no data"),
        ("input('which? ')", "script", "EOFError"),
        ("import argparse as a; a.ArgumentParser().parse_args(['-x'])", "script", "sys.exit(2)"),
        ("import os; os._exit(0)", "lost", ""),
    ],
)
def test_a_trial_says_how_the_script_ended(
    tmp_path: Path, script: str, how: str, error: str
) -> None:
    end = trial(tmp_path, script).end
    assert end.how == how
    assert end.error.startswith(error)
    assert bool(end.error) is bool(error)


def test_the_script_is_main_and_gets_its_arguments(tmp_path: Path) -> None:
    script = """
        import argparse, os, sys
        import beside
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        if __name__ == "__main__":
            assert parser.parse_args().lr == 0.5
            assert beside.VALUE == 3 and sys.argv[0] == "script.py"
            open("ran", "w").write("yes")
    """
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "beside.py").write_text("VALUE = 3", encoding="utf-8")
    made = trial(tmp_path, script, "--lr", "0.5")
    assert (made.end.how, made.end.error) == ("script", "")
    assert (made.inside / "ran").read_text(encoding="utf-8") == "yes"
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["beside.py", "script.py"]
