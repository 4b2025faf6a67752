"""From a run to what came of its fixes."""

from __future__ import annotations

from pathlib import Path

import pytest

from nethook.running.program import Program
from nethook.running.trying.change import Change
from nethook.running.trying.process import TrialEnd
from nethook.running.trying.try_fixes import Trials, _unusable, environment_of, prepared
from nethook.runs.reading.run import open_run
from tests.running.both import under
from tests.running.trying.trials import everything, program, with_fault
from tests.runs.made import write_run

HIGH = with_fault(("lr=0.1", "lr=30.0"), ("in range(10)", "in range(6)"))


def test_a_fix_that_helped_is_shown_with_its_numbers(tmp_path: Path) -> None:
    work = tmp_path / "work"
    program(work, HIGH)
    before = everything(work)
    done = under(
        *("script.py",),
        ours=("--try-fix", "--try-steps", "30", "--to", str(tmp_path / "run.db")),
        cwd=work,
    )
    assert done.code == 0
    assert "trial 1 of 2, the script as it is" in done.err
    said = " ".join(done.closing.split())
    assert "tried: learning rate 30 → " in said
    assert "training loss after 30 steps" in said
    assert "It helped." in said
    assert everything(work) == before
    with open_run(tmp_path / "run.db") as run:
        tried = run.info["tried"]
    assert [entry["helped"] for entry in tried] == [True]
    assert tried[0]["code"] in [found["code"] for found in run.findings]


def test_nothing_is_recommended_from_a_trial_that_was_stopped(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "log.txt"
    program(work, HIGH.replace("for epoch", f"open({str(out)!r}, 'a').write('x')\nfor epoch"))
    done = under("script.py", ours=("--try-fix", "--to", str(tmp_path / "run.db")), cwd=work)
    said = "".join(done.closing.split())  # a long path may be broken, too
    why = f"not judged: the trial was stopped because the script writes {out}"
    assert "".join(why.split()) in said
    assert "Ithelped" not in said
    assert out.read_text(encoding="utf-8") == "x"  # of the run itself


def test_a_run_without_findings_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nethook.running.trying.try_fixes.run_trial", None)
    path = tmp_path / "run.db"
    write_run(path)
    Trials(Program("script.py")).try_fixes(path, print)
    with open_run(path) as run:
        assert "tried" not in run.info


@pytest.mark.parametrize(
    ("trials", "ranks", "why"),
    [
        (Trials(Program("-")), 1, "the script came from the standard input"),
        (Trials(Program("a.py")), 2, "the script runs in several processes"),
        (Trials(Program("a.py"), environment={"WORLD_SIZE": "2"}), 1, "the script runs in several"),
        (Trials(Program("a.py"), environment={}), 1, ""),
    ],
)
def test_some_scripts_cannot_be_tried(trials: Trials, ranks: int, why: str) -> None:
    said = trials._why_not(ranks)
    assert said.startswith(why)
    assert bool(said) is bool(why)


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (TrialEnd("refused", 3, "forks"), "the trial was stopped because the script forks"),
        (TrialEnd("lost", 3), "the trial failed"),
        (TrialEnd("script", 0, "EOFError"), "the script ended with EOFError before its first step"),
        (TrialEnd("killed", 0), "no step was made within 30 s (--try-seconds gives it more)"),
        (TrialEnd("script", 0), "no optimizer stepped"),
        (TrialEnd("steps", 9), "it could not be applied from outside"),
        (TrialEnd("steps", 9, changed=1), ""),
        (TrialEnd("killed", 9, changed=1), ""),
    ],
)
def test_what_a_trial_says_nothing_about(end: TrialEnd, why: str) -> None:
    assert _unusable(end, Change("clipping"), 30) == why


def test_a_script_by_its_whole_path_is_one_of_the_view(tmp_path: Path) -> None:
    program(tmp_path / "else", "pass")
    trials = Trials(
        Program(str(tmp_path / "else" / "script.py")), folder=str(tmp_path), environment={"A": "b"}
    )
    plan, inside = prepared(trials, tmp_path / "scratch", Change())
    assert plan.name == f"{plan.view}{tmp_path}/else/script.py"
    assert inside == f"{plan.view}{tmp_path}"
    environment = environment_of(trials, tmp_path / "scratch", inside)
    assert environment["A"] == "b"
    assert environment["TMPDIR"].startswith(str(tmp_path / "scratch"))
