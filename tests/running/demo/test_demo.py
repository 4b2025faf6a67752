"""The runs of the demo; tests/cli/test_demo.py runs them."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from nethook.running.demo import digits
from nethook.running.demo.demo import RUNS, DemoRun, train
from nethook.runs.reading.run import open_run


def test_one_run_is_as_the_script_is_and_the_others_have_a_fault() -> None:
    assert [run.arguments for run in RUNS if not run.arguments] == [()]
    assert len({run.name for run in RUNS}) == len(RUNS) == 2


def test_a_run_leaves_a_file_a_verdict_and_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gc.collect()  # models of other tests would be followed as well
    path, text = train(DemoRun("short", ("--epochs", "1")), tmp_path / "new")
    assert path.parent == tmp_path / "new"
    assert path.name.startswith("short-20")
    with open_run(path) as run:
        assert run.info["name"] == "short"
        assert run.info["totals"]["steps"] == 32
        assert run.ranks[0].state == "finished"
    assert "Net, 10 layers, 32 steps" in text
    assert text.endswith(f"{path}\n")
    assert capsys.readouterr().out.startswith("epoch 1  loss ")
    source = Path(digits.__file__).read_bytes()
    assert (tmp_path / "new" / "digits.py").read_bytes() == source
