"""Programs in the idiom of each trainer, under `nethook run` and as they are.

Where all trainers are installed (`make trainers`) every program runs; elsewhere (`make test`) the
short ones whose package is there, and the others are not collected.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trainers.measuring import (
    Program,
    Result,
    chosen,
    is_same,
    lines_of,
    numbers_of,
    run_plain,
    run_watched,
)
from zoo.measure import Workers


@pytest.fixture(scope="module", params=chosen(), ids=lambda program: program.name)
def program(request: pytest.FixtureRequest) -> Program:
    return request.param


@pytest.fixture(scope="module")
def result(program: Program, worker: Workers, tmp_path_factory: pytest.TempPathFactory) -> Result:
    return run_watched(program, tmp_path_factory.mktemp("watched") / program.name, worker)


def test_the_verdict(program: Program, result: Result) -> None:
    assert result.code == 0, result.said[-3000:]
    serious = [finding for finding in result.findings if finding.at_least("warning")]
    if program.healthy:
        alarms = [finding for finding in serious if finding.code not in program.codes]
        assert not alarms, alarms
    else:
        assert serious, [str(finding) for finding in result.findings]
        assert serious[0].code in program.codes, serious


def test_a_training_is_one_run(program: Program, result: Result) -> None:
    assert len(result.paths) == 1
    assert result.states == ["finished"] * program.processes
    assert len(result.curves["train"]) == program.losses


def test_losses_are_those_of_the_trainer(program: Program, result: Result) -> None:
    if not program.healthy:
        pytest.skip("The loss of a broken training may be anything.")
    for phase in ("train", "eval"):
        logged = result.logged.get(phase)
        if logged is not None:
            found = numbers_of(result, phase)
            assert any(is_same(number, logged) for number in found), (phase, logged, found)


def test_output_is_what_it_is_without_nethook(
    program: Program, result: Result, worker: Workers, tmp_path: Path
) -> None:
    if not program.healthy:
        pytest.skip("Healthy programs show it; a broken one prints what it happens to.")
    code, said = run_plain(program, tmp_path / program.name, worker)
    assert code == 0, said[-3000:]
    watched = result.said.replace(f"{result.paths[0]}\n", "")  # all that --quiet says
    assert lines_of(said) == lines_of(watched)
    plain = Result(code, said, [])
    assert plain.logged == result.logged  # to the last digit
