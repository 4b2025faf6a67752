"""What the wild programs declare: a known cause, a source, a fix that applies, and no nethook."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

WILD = Path(__file__).resolve().parents[2] / "zoo" / "wild"
# At least so many of either kind.
SETS = {
    "known": 30,
    "unseen": 30,
    "unseen_two": 24,
    "unseen_three": 30,
    "unseen_four": 24,
    "unseen_five": 40,
    "unseen_six": 38,
    "unseen_seven": 22,
}
PROGRAMS = sorted(path for name in SETS for path in (WILD / name).glob("*.py"))
FAULTY = [path for path in PROGRAMS if "\nexpect: nothing" not in path.read_text()]


def name_of(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    """`zoo/wild/measure.py`, which is no module of a package."""
    spec = importlib.util.spec_from_file_location("wild_measure", WILD / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["wild_measure"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SETS)
def test_there_are_programs_enough_of_both_kinds(measure: ModuleType, name: str) -> None:
    programs = measure.programs(WILD / name)
    healthy = [program for program in programs if program.healthy]
    assert len(healthy) >= SETS[name]
    assert len(programs) - len(healthy) >= SETS[name]
    assert len({program.expect for program in programs}) >= 20


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_a_program_knows_no_nethook_and_no_place(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"^\s*(import|from) nethook", text, re.M)
    assert "/tmp/" not in text


@pytest.fixture(scope="module")
def declared(measure: ModuleType) -> dict[Path, Any]:
    """Every program, by its path."""
    return {program.path: program for name in SETS for program in measure.programs(WILD / name)}


@pytest.mark.parametrize("path", FAULTY, ids=name_of)
def test_a_faulty_program_has_a_source_a_metric_and_a_fix_that_applies(
    path: Path, measure: ModuleType, declared: dict[Path, Any], tmp_path: Path
) -> None:
    program, text = declared[path], path.read_text()
    assert re.search(r"^source: \S", text, re.M)
    assert re.search(r"^metric: .*(higher|lower) is better", text, re.M)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", program.expect)
    assert program.expect not in program.equal
    line = re.search(r"^line: (.*)$", text, re.M)
    if line:  # it stands in the program, too
        assert line[1].strip() in text.replace(line[0], "")
    repaired = measure.fixed(program, tmp_path).path.read_text()
    assert repaired != text
    compile(repaired, path.name, "exec")


def test_findings_are_counted(measure: ModuleType) -> None:
    def finding(code: str, severity: str = "error", below: tuple = ()) -> dict:
        return {"code": code, "severity": severity, "consequences": list(below)}

    ill = measure.Program(Path("a.py"), "samples-mixed", ("target-misaligned",))
    well = measure.Program(Path("b.py"), "nothing", ())
    score = measure.Score()
    assert score.add(ill, [finding("samples-mixed")]) == ""
    assert score.add(ill, [finding("other", below=(finding("target-misaligned"),))]) == "not first"
    assert score.add(ill, [finding("other")]) == "missed"
    assert score.add(ill, [finding("other", "info")]) == "called fine"
    assert score.add(ill, []) == "called fine"
    assert score.add(well, [finding("other", "info")]) == ""
    assert score.add(well, [finding("other")]) == "false alarm"
    assert (score.ill, score.right, score.first, score.fine) == (5, 2, 1, 2)
    assert (score.healthy, score.alarms) == (2, 1)
    assert score.missed(measure.GOALS["unseen"]) == ["right", "first", "fine", "alarms"]
    assert "right cause                 40%  (2 of 5)" in score.table()
    assert measure.Score(10, 10, 10, 0, 10, 0).missed(measure.GOALS["known"]) == []
