"""`make mutants`: which changes it makes to a source, and that the tests it names are there."""

from __future__ import annotations

import ast
import shlex
from pathlib import Path

from tools.mutants.changes import mutants
from tools.mutants.guards import GUARDS, ROOM, ROOT


def changes(tmp_path: Path, source: str) -> list[str]:
    """`line: change` of every mutant of a source."""
    file = tmp_path / "guard.py"
    file.write_text(source, encoding="utf-8")
    return [f"{mutant.line}: {mutant.change}" for mutant in mutants(file)]


def test_guards_name_files_and_tests_that_are_there() -> None:
    assert [name for name in GUARDS if not (ROOM / name).is_file()] == []
    words = {word for runs in GUARDS.values() for run in runs for word in shlex.split(run)}
    tests = sorted(word for word in words if word.endswith(".py"))
    assert tests
    assert [test for test in tests if not (ROOT / test).is_file()] == []


def test_a_condition_and_what_it_guards_are_changed(tmp_path: Path) -> None:
    assert changes(
        tmp_path, "def f(x):\n    if x > 1:\n        return x\n    raise ValueError\n"
    ) == [
        "2: Gt -> GtE: x > 1",
        "2: 1 -> 2",
        "3: return None: return x",
        "4: drop: raise ValueError",
    ]


def test_docstrings_and_annotations_are_left_alone(tmp_path: Path) -> None:
    source = 'def f(x: "int") -> "int":\n    """What it does."""\n    return x\n'
    assert changes(tmp_path, source) == ["3: return None: return x"]


def test_every_mutant_has_one_change(tmp_path: Path) -> None:
    file = tmp_path / "guard.py"
    file.write_text("x = not (1 < 2)\ny = 3\n", encoding="utf-8")
    before = file.read_text(encoding="utf-8")
    values = []
    for mutant in mutants(file):
        names: dict[str, object] = {}
        exec(mutant.code, names)
        values.append((names.get("x"), names.get("y")))
    assert (False, 4) in values
    assert (True, 3) in values
    assert (None, 3) in values
    assert (False, None) in values
    assert all(x is False or y == 3 for x, y in values)
    assert ast.dump(ast.parse(before)) == ast.dump(ast.parse(file.read_text(encoding="utf-8")))
