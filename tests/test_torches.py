"""The tests on several torches: pins, the command line, what is read from pytest, what is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nethook.torch_versions import OLDEST
from tools import torches
from tools.torch_pins import OFTEN, OTHERWISE, ROOT, SELDOM, pins
from tools.torches import Asked, Result, asked, main, read, table

CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8")
FAILING = """
import pytest

def test_good(): pass
def test_bad(): assert False
class TestIn:
    @pytest.mark.parametrize("size", [1, 2])
    def test_class(self, size): assert size == 1
@pytest.fixture
def broken():
    yield
    raise RuntimeError
def test_ends_badly(broken): pass
def test_is_bad_and_ends_badly(broken): assert False
def test_left_out(): pytest.skip("not here")
"""


def changed(torch: str) -> set[str]:
    return set(pins(torch, CONSTRAINTS).splitlines()) - set(CONSTRAINTS.splitlines())


def test_every_minor_release_from_the_oldest_on_is_run() -> None:
    minor = sorted(tuple(map(int, each.split(".")[:2])) for each in (*OFTEN, *SELDOM))
    assert minor == [(2, number) for number in range(OLDEST[1], minor[-1][1] + 1)]
    assert tuple(map(int, OFTEN[0].split(".")[:2])) == OLDEST


def test_the_oldest_and_the_newest_are_run_before_every_change() -> None:
    said = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert f'make torches "ARGS={OFTEN[0]} {OFTEN[-1]} -m short"' in said


def test_the_pinned_torch_is_among_them() -> None:
    assert any(pins(each, CONSTRAINTS) == CONSTRAINTS for each in OFTEN)


@pytest.mark.parametrize(
    ("torch", "lines"),
    [
        ("2.15.0", {"torch==2.15.0"}),
        ("2.15", {"torch==2.15.*"}),
        ("2.11.0", {"torch==2.11.0", "setuptools==81.0.0"}),
        ("2.12", {"torch==2.12.*", "setuptools==81.0.0"}),
        ("newest", set()),
    ],
)
def test_pins_differ_where_they_must(torch: str, lines: set[str]) -> None:
    assert changed(torch) == lines
    assert "\ntorch==2.13.0\n" not in pins(torch, CONSTRAINTS)


def test_what_differs_is_pinned_for_the_others() -> None:
    pinned = {line.partition("==")[0] for line in CONSTRAINTS.splitlines()}
    assert {name for packages in OTHERWISE.values() for name in packages} <= pinned


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", Asked(OFTEN, False, ())),
        ("2.8.0 2.15.0", Asked(("2.8.0", "2.15.0"), False, ())),
        ("-m short 2.9.1 --keep", Asked(("2.9.1",), True, ("-m", "short"))),
        ("newest tests/test_errors.py", Asked(("newest",), False, ("tests/test_errors.py",))),
        ("-x", Asked(OFTEN, False, ("-x",))),
    ],
)
def test_the_command_line(words: str, expected: Asked) -> None:
    assert asked(words.split()) == expected


def test_all_of_them_are_in_order() -> None:
    every = asked(["all", "newest"]).torches
    assert every[:3] == ("2.8.0", "2.9.1", "2.10.0")
    assert every[-1] == "newest"
    assert set(every) == {*OFTEN, *SELDOM, "newest"}


def results_of(folder: Path, source: str, *options: str) -> Result:
    """What is read of tests that pytest has run."""
    (folder / "test_it.py").write_text(source, encoding="utf-8")
    (folder / "pytest.ini").touch()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--junit-xml=out.xml", "-p", "no:cacheprovider", *options],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    return read("2.8.0", folder / "out.xml", done.returncode)


def test_what_failed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torches, "ROOT", tmp_path)
    result = results_of(tmp_path, FAILING)
    assert (result.passed, result.failed, result.errors, result.skipped) == (2, 3, 2, 1)
    assert result.failing == (
        "test_it.py::test_bad",
        "test_it.py::TestIn::test_class[2]",
        "test_it.py::test_ends_badly",
        "test_it.py::test_is_bad_and_ends_badly",
    )
    assert not result.good


def test_a_file_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    result = results_of(tmp_path, "import no_such_module")
    assert (result.failing, result.errors) == (("test_it.py",), 1)


def test_tests_that_pass_are_good(tmp_path: Path) -> None:
    result = results_of(tmp_path, "def test_good(): pass")
    assert result.good
    assert result.passed == 1
    assert result.seconds > 0


def test_no_tests_are_not_good(tmp_path: Path) -> None:
    assert results_of(tmp_path, FAILING, "-k", "nothing").broken == "there were no such tests"
    assert not read("2.8.0", tmp_path / "missing.xml", 2).good


def test_the_table() -> None:
    results = [
        Result("2.8.0", 17800, 1, 0, 41, 1082.4, ("tests/test_files.py::test_a",)),
        Result("2.15.0", 9, seconds=0.7),
        Result("2.99.0", broken="not run"),
    ]
    assert table(results) == (
        "|  torch | passed | failed | errors | skipped |  time |\n"
        "| -----: | -----: | -----: | -----: | ------: | ----: |\n"
        "|  2.8.0 |  17800 |      1 |      0 |      41 | 18:02 |\n"
        "| 2.15.0 |      9 |      0 |      0 |       0 |  0:01 |\n"
        "| 2.99.0 |      0 |      0 |      0 |       0 |  0:00 |\n"
        "\n"
        "torch 2.8.0:\n"
        "\n"
        "- tests/test_files.py::test_a\n"
        "\n"
        "torch 2.99.0:\n"
        "\n"
        "- not run\n"
    )


class Made:
    """A stand-in for `make test`, which makes an environment and downloads."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.ran: list[tuple[str, tuple[str, ...]]] = []
        monkeypatch.setattr(torches, "ROOT", folder)
        monkeypatch.setattr(torches, "TABLE", folder / "build" / "torches.md")
        monkeypatch.setattr(torches, "DOWNLOADS", folder / "build" / "uv-cache")
        monkeypatch.setattr(torches, "run", self.run)

    def run(self, torch: str, arguments: tuple[str, ...]) -> Result:
        self.ran.append((torch, tuple(arguments)))
        (self.folder / f".venv-torch-{torch}" / "bin").mkdir(parents=True, exist_ok=True)
        (self.folder / "build" / "uv-cache" / "archive").mkdir(parents=True, exist_ok=True)
        if "interrupt" in arguments:
            raise KeyboardInterrupt
        failed = torch == "2.8.0"
        return Result(torch, 1, int(failed), failing=("test_x.py::test_y",) * failed)

    def left(self) -> set[str]:
        shown = {path.name for path in self.folder.glob(".venv*")}
        return shown | {path.name for path in self.folder.glob("build/uv-cache")}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    return Made(tmp_path, monkeypatch)


def test_one_that_fails_does_not_keep_the_next_from_its_turn(made: Made) -> None:
    assert main(["2.8.0", "2.15.0", "-m", "short"]) == 1
    assert made.ran == [("2.8.0", ("-m", "short")), ("2.15.0", ("-m", "short"))]
    assert "| 2.15.0 |      1 |" in (made.folder / "build" / "torches.md").read_text()


def test_nothing_is_left(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["2.15.0"]) == 0
    assert made.left() == set()
    assert "| 2.15.0 |      1 |" in capsys.readouterr().out


def test_nothing_is_left_after_an_interrupt(made: Made) -> None:
    with pytest.raises(KeyboardInterrupt):
        main(["2.15.0", "interrupt"])
    assert made.left() == set()


def test_what_was_there_before_stays(made: Made) -> None:
    (made.folder / ".venv-torch-2.15.0").mkdir()
    main(["2.14.1", "2.15.0"])
    assert made.left() == {".venv-torch-2.15.0"}


def test_all_of_it_can_be_kept(made: Made) -> None:
    main(["--keep", "2.15.0"])
    assert made.left() == {".venv-torch-2.15.0", "uv-cache"}
