"""Tests mirror the sources, and do not import one another."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
PACKAGE = ROOT / "src" / "nethook"
SOURCES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")
)


def imported_modules(source: str) -> set[str]:
    """The modules that a program imports, in full; of `from a import b` both a and a.b.

    Texts in it count as well, if they are programs that import tests.
    """
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and _imports_tests(node.value):
            with suppress(SyntaxError):
                imported |= imported_modules(node.value)
    return imported


def _imports_tests(text: object) -> bool:
    return isinstance(text, str) and bool(re.search(r"\b(from|import) tests\b", text))


def imported_tests(source: str) -> list[str]:
    """The test modules among them."""
    if "tests" not in source:
        return []
    matches = (re.match(r"tests\.(\w+\.)*?test_\w+", name) for name in imported_modules(source))
    return sorted({match[0] for match in matches if match})


def importers() -> list[Path]:
    folders = (ROOT / name for name in ("tests", "tools", "benchmarks", "zoo"))
    everything = {path for folder in folders for path in folder.rglob("*.py")}
    return sorted(everything - {Path(__file__)})  # its examples are below


def test_nothing_imports_a_test() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in importers()
        if (names := imported_tests(path.read_text(encoding="utf-8")))
    }
    assert not found, f"Move what they share to a module without tests: {found}"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("from tests.running.test_scripts import CASES", ["tests.running.test_scripts"]),
        ("from tests.running import test_scripts", ["tests.running.test_scripts"]),
        ("import tests.test_docs as docs", ["tests.test_docs"]),
        ("PROGRAM = 'import sys\\nfrom tests.test_docs import x'", ["tests.test_docs"]),
        ("from tests.zoo import observe", []),
        ("'what tests import, as a sentence'", []),
    ],
)
def test_the_search_for_imports_can_fail(source: str, names: list[str]) -> None:
    assert imported_tests(source) == names


def mirror_of(source: Path) -> Path:
    """Where the tests of a source file are: `hooks/audit.py` in `tests/hooks/test_audit.py`."""
    inside = source.relative_to(PACKAGE)
    return TESTS / inside.with_name(f"test_{inside.name}")


def test_every_source_file_has_its_tests() -> None:
    missing = [path.relative_to(PACKAGE) for path in SOURCES if not mirror_of(path).exists()]
    assert not missing, "They need tests/<room>/test_<file>.py."


def test_the_mirror_can_lack_something() -> None:
    assert mirror_of(PACKAGE / "hooks" / "audit.py") == TESTS / "hooks" / "test_audit.py"
    assert not mirror_of(PACKAGE / "hooks" / "no_such_file.py").exists()
