"""The runs of the demo; tests/cli/commands/test_demo.py runs them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from nethook.running.demo import digits
from nethook.running.demo.demo import FORGOTTEN, RUNS, DemoRun, script_of, train
from nethook.runs.reading.run import open_run


def test_one_script_is_as_it_is_and_the_other_lacks_one_line(tmp_path: Path) -> None:
    whole = Path(digits.__file__).read_text().splitlines()
    faulty, fixed = (script_of(run, tmp_path / "new").read_text().splitlines() for run in RUNS)
    assert fixed == whole
    assert len(faulty) == len(whole) - 1
    assert [*filter(lambda line: line not in faulty, whole)] == [FORGOTTEN.rstrip()]


def test_a_run_leaves_a_file_and_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gc.collect()  # models of other tests would be followed as well
    run_of_one = DemoRun("short", arguments=("--epochs", "1"))
    script = script_of(run_of_one, tmp_path / "new")
    path, text = train(run_of_one, script)
    assert path.parent == tmp_path / "new"
    assert path.name.startswith("short-20")
    with open_run(path) as run:
        assert run.info["name"] == "short"
        assert run.info["totals"]["steps"] == 32
        assert run.info["watch"]["budget"] == 0.03
        assert run.ranks[0].state == "finished"
    assert "Net, 10 layers, 32 steps" in text
    assert text.endswith(f"{path}\n")
    assert capsys.readouterr().out.startswith("epoch 1  loss ")
