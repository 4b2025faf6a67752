"""Runs and findings in a notebook."""

from __future__ import annotations

import nethook
from nethook.runs.writing.writer import RunWriter
from tests.figures.pages import Page
from tests.figures.shared import training
from tests.runs.made import write_run


def test_a_run_shows_what_it_is_and_what_was_found():
    shown = Page(nethook.open_run(training())._repr_html_())
    assert "120 steps in 120 windows" in shown.text
    assert "1 error, 1 warning, 1 note" in shown.text
    assert "Lower the learning rate" in shown.text


def test_the_command_that_starts_a_kernel_is_not_shown(tmp_path):
    commands = {"a": ["python", "train.py"], "b": ["python", "-m", "x/ipykernel_launcher.py", "-f"]}
    for name, command in commands.items():
        with RunWriter(tmp_path / f"{name}.db", info={"command": command}):
            pass
    shown = {name: nethook.open_run(tmp_path / f"{name}.db")._repr_html_() for name in commands}
    assert "python train.py" in shown["a"]
    assert "kernel" not in shown["b"]


def test_ranks_are_listed_where_there_are_several(tmp_path):
    write_run(tmp_path / "a.db", 3, world_size=2)
    shown = Page(nethook.open_run(tmp_path / "a.db")._repr_html_())
    assert "missing" in shown.text
    assert "no findings" in shown.text


def test_findings_are_a_tuple_that_shows_itself():
    findings = nethook.open_run(training()).findings
    assert isinstance(findings, tuple)
    assert findings[0]["code"] == "dead-units"
    assert str(findings).splitlines()[0] == "1 error, 1 warning, 1 note"
    assert "block.relu2" in Page(findings._repr_html_()).text
