"""Training scripts as the public writes them, bare and under `nethook run`: the same, and followed.

The scripts are in tests/scripts. They print their losses and a checksum of their weights, so the
same output means the same training, bit for bit.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from nethook.doctor.diagnose import diagnose
from nethook.runs import names
from nethook.runs.reading.run import Run, open_run
from tests.running.both import Done, Warm, bare, same, under
from tests.running.scripts import BOTH, CASES, SCRIPTS, Case


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.stop()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command.split(".py")[0])
def test_a_training_script_is_the_same_and_is_followed(
    case: Case, tmp_path: Path, warm: Warm
) -> None:
    words, ours = case.command.split(), ("--to", str(tmp_path / "run.db"))
    done: list[Done] = []
    for number in BOTH:
        # Each in a copy: a script may write files, and must find the same ones.
        folder = tmp_path / str(number) / "project"
        ignored = shutil.ignore_patterns("__pycache__", "outputs")
        shutil.copytree(SCRIPTS, folder, ignore=ignored)
        if number in case.cold:
            done.append(
                under(*words, ours=ours, cwd=folder) if number else bare(*words, cwd=folder)
            )
        else:
            before = ("-m", "nethook", "run", *ours) if number else ()
            done.append(warm.run(*before, *words, cwd=folder))
    plain, watched = done
    same(_at_home(watched, "1"), _at_home(plain, "0"))
    assert watched.code == case.code
    assert watched.closing.splitlines()[-1] == str(tmp_path / "run.db")
    _check_runs(case, tmp_path, plain)
    assert "could not" not in watched.closing
    assert "of watching failed" not in watched.closing


def _at_home(done: Done, number: str) -> Done:
    """Without the one part of a path that differs between the two copies."""
    here = f"/{number}/project"
    return Done(done.code, done.out.replace(here, ""), done.err.replace(here, ""))


def _check_runs(case: Case, folder: Path, plain: Done) -> None:
    files = [folder / "run.db", *(folder / f"run-{n}.db" for n in range(2, len(case.steps) + 1))]
    main = [file for file in folder.glob("run*.db") if ".rank" not in file.name]
    assert sorted(main) == sorted(files)
    wanted = _epochs(plain) if case.steps == (0,) else case.steps
    for file, steps in zip(files, wanted, strict=True):
        with open_run(file) as run:
            assert run.info["totals"]["steps"] == steps
            _check_run(run)
            _check_findings(run, case)
    with open_run(files[0]) as joined:
        run = joined.rank(0) if len(joined.ranks) > 1 else joined  # a rank prints its own losses
        assert {name: about["type"] for name, about in run.info["models"].items()} == case.models
        losses = [s for name, s in run.scalars.items() if name.startswith(names.loss_name(""))]
        recorded = {f"{value:.6f}" for scalar in losses for value in scalar.value.tolist()}
        assert sum(value in plain.out for value in recorded) >= case.printed


def _check_run(run: Run) -> None:
    """Model and loss were found, and every layer that was called has outputs."""
    assert run.losses[0].step == 0
    assert any(name.startswith(names.loss_name("")) for name in run.scalars)
    assert any(info.quantity == names.PARAMS for info in run.catalogue)
    outputs = {info.address for info in run.catalogue if info.quantity == names.OUTPUTS}
    leaves = [site for site in run.sites if site.info.get("leaf")]
    called = {site.address for site in leaves if (site.info.get("calls") or {}).get("train")}
    assert called
    assert called <= outputs
    assert {rank.state for rank in run.ranks} == {"finished"}


def _check_findings(run: Run, case: Case) -> None:
    """A run that is healthy has no findings; what was found live is found in the file, too."""
    found = diagnose(run)
    told = tuple(each.code for each in found if each.at_least("warning"))
    assert told == case.ill, "\n".join(map(str, found))
    if {rank.rank for rank in run.ranks} == {0}:  # live, the first rank speaks for itself
        assert [each["code"] for each in run.findings] == [each.code for each in found]


def _epochs(plain: Done) -> tuple[int, ...]:
    """Early stopping decides for itself: three batches an epoch."""
    return (3 * plain.out.count("validation"),)


def test_every_script_is_run() -> None:
    named = {case.command.split()[0] for case in CASES}
    scripts = {path.name for path in SCRIPTS.glob("*.py")} - {"utils.py"}
    assert scripts <= named
    assert len(CASES) >= 24
