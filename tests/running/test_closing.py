"""The last lines of a run: which files are shown, in which order, and what is said without any."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from nethook.running.closing import closing_text, severities, written_files
from nethook.running.runner import Outcome
from nethook.text.paragraphs import Style
from tests.running.made import made

OK = Outcome()


def session(to: Path, **known: Any) -> Any:
    """What the last lines read of a session."""
    watcher = None
    if "paths" in known:
        watcher = SimpleNamespace(paths=known["paths"], left_alone=known.get("left_alone", []))
    return SimpleNamespace(
        options=SimpleNamespace(to=str(to)),
        watcher=watcher,
        started=known.get("started", time.time() - 60),
        notes=known.get("notes", []),
    )


def test_files_of_this_run_are_found_beside_each_other_and_others_are_not(tmp_path: Path) -> None:
    for name in ("a.db", "a-2.db", "a-10.db", "a-b.db", "b.db", "a.html"):
        (tmp_path / name).touch()
    found = written_files(session(tmp_path / "a.db"))
    assert [path.name for path in found] == ["a.db", "a-2.db", "a-10.db"]


def test_files_from_before_and_runs_that_were_left_alone_are_not_shown(tmp_path: Path) -> None:
    for name in ("a.db", "a-2.db"):
        (tmp_path / name).touch()
    later = session(tmp_path / "a.db", started=time.time() + 60)
    assert written_files(later) == []
    left = session(tmp_path / "a.db", paths=[tmp_path / "a-2.db"], left_alone=[tmp_path / "a.db"])
    assert written_files(left) == [tmp_path / "a-2.db"]


def test_ranks_are_one_run(tmp_path: Path) -> None:
    for name in ("a.db", "a.rank1.db", "a.rank2.db"):
        (tmp_path / name).touch()
    assert written_files(session(tmp_path / "a.db")) == [tmp_path / "a.db"]
    assert written_files(session(tmp_path / "none" / "a.db")) == []


def test_quiet_is_the_path_alone(tmp_path: Path) -> None:
    made(tmp_path / "a.db").close()
    assert closing_text(session(tmp_path / "a.db"), OK, quiet=True) == f"{tmp_path / 'a.db'}\n"
    assert closing_text(session(tmp_path / "none.db"), OK, quiet=True) == ""


def test_what_to_type_next_and_the_path_are_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "a b.db").close()
    shown = closing_text(session(tmp_path / "a b.db"), OK)
    assert shown.splitlines()[0].startswith("── nethook ──")
    assert shown.splitlines()[-4:] == [
        "next: nethook diagnose 'a b.db'",
        "      nethook report 'a b.db'",
        "      nethook ui 'a b.db'",
        str(tmp_path / "a b.db"),
    ]


def test_of_several_runs_the_page_of_their_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.db", "a-2.db"):
        made(tmp_path / "runs" / name).close()
    shown = closing_text(session(tmp_path / "runs" / "a.db"), OK)
    assert "      nethook ui runs\n" in shown


FINDING = {
    "code": "dead-units",
    "severity": "error",
    "message": "Half of the units were dead over whole windows, " * 3,
    "fix": "Lower the learning rate.",
    "evidence": {"dead share": {"value": 0.51, "threshold": 0.5}},
}


@pytest.mark.parametrize("count", [1, 3, 11, 40])
@pytest.mark.parametrize("rows", [24, 50])
def test_it_fits_the_screen_and_the_first_finding_stays_whole(
    tmp_path: Path, count: int, rows: int
) -> None:
    findings = [{**FINDING, "code": f"code-{number}"} for number in range(count)]
    made(tmp_path / "a.db", findings=findings).close()
    everything = closing_text(session(tmp_path / "a.db"), OK)
    shown = closing_text(session(tmp_path / "a.db"), OK, rows=rows)
    # With the empty line before it and the prompt after it.
    assert shown.count("\n") + 2 <= rows
    assert f"{count} error" in shown
    start = everything.index("  error: code-0")
    assert everything[start:].split("  error: code-1")[0].rstrip() in shown or count == 1
    if everything.count("\n") + 2 <= rows:
        assert shown == everything
    hidden = count - shown.count("  error: code-")
    assert (f"  and {hidden} more\n" in shown) == bool(hidden)


def test_a_narrow_terminal_has_narrow_lines(tmp_path: Path) -> None:
    made(tmp_path / "a.db", findings=[FINDING]).close()
    shown = closing_text(session(tmp_path / "a.db"), OK, style=Style(width=50)).splitlines()
    commands = [line for line in shown if "nethook " in line][1:]  # whole, to be copied
    assert max(len(line) for line in shown if line not in (*commands, shown[-1])) == 50


def test_several_runs_are_named_and_more_are_counted(tmp_path: Path) -> None:
    for number in range(1, 7):
        made(tmp_path / ("a.db" if number == 1 else f"a-{number}.db")).close()
    lines = closing_text(session(tmp_path / "a.db"), OK).splitlines()
    assert [line for line in lines if line.startswith("run ")] == [
        "run a.db", "run a-2.db", "run a-3.db", "run a-4.db",
    ]  # fmt: skip
    assert "and 2 more runs beside them" in lines


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.db").write_text("no run")
    assert "The run file cannot be read:" in closing_text(session(tmp_path / "a.db"), OK)
    assert severities(session(tmp_path / "a.db")) == []


@pytest.mark.parametrize(
    ("outcome", "line"),
    [
        (OK, "nothing recorded: no model was trained by calling it"),
        (Outcome("KeyboardInterrupt", interrupted=True), "interrupted: by Ctrl-C, before a model"),
        (Outcome("ValueError: x"), "crashed: ValueError: x, before a model was trained"),
    ],
)
def test_without_a_run_it_says_why(
    tmp_path: Path, outcome: Outcome, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A script that has imported torch, whatever the tests before this one have.
    monkeypatch.setitem(sys.modules, "torch", sys.modules.get("torch", ModuleType("torch")))
    shown = closing_text(session(tmp_path / "a.db"), outcome).replace("\n  ", " ")
    assert line in shown
    # A note of the session says it better.
    noted = closing_text(session(tmp_path / "a.db", notes=["Nothing could be written."]), outcome)
    assert noted.splitlines()[1:] == ["Nothing could be written."]


def test_without_torch_there_was_nothing_to_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert "the script did not import torch" in closing_text(session(tmp_path / "a.db"), OK)
    # What ended it says more.
    broken = closing_text(session(tmp_path / "a.db"), Outcome("SyntaxError: invalid syntax"))
    assert "crashed: SyntaxError: invalid syntax" in broken


def test_where_there_is_no_script_python_has_said_all(tmp_path: Path) -> None:
    missing = Outcome("sys.exit(2)", found=False)
    assert closing_text(session(tmp_path / "a.db"), missing) == ""


def test_severities_of_all_files(tmp_path: Path) -> None:
    made(tmp_path / "a.db", findings=[{"code": "x", "severity": "error"}]).close()
    made(tmp_path / "a-2.db", findings=[{"code": "y"}, {"code": "z", "severity": "info"}]).close()
    assert severities(session(tmp_path / "a.db")) == ["error", "warning", "info"]
