"""`import nethook`, `nethook --help` and `python -m nethook` load no torch and nothing optional."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.runs.made import write_run

# Printed on standard error at exit, so that a program may end with SystemExit.
PROBE = """
import atexit, json, sys
before = set(sys.modules)
atexit.register(lambda: print(json.dumps(sorted(set(sys.modules) - before)), file=sys.stderr))
"""
IMPORT = "import nethook"
RUN_MODULE = "import runpy; sys.argv = {argv!r}; runpy.run_module('nethook', run_name='__main__')"
RUN_SCRIPT = "import runpy; sys.argv = {argv!r}; runpy.run_path(sys.argv[0], run_name='__main__')"
SCRIPT = str(Path(sys.executable).with_name("nethook"))


def command_line() -> set[str]:
    """The packages that the command line is built of: typer, rich, and what they require."""
    wanted, found = ["typer", "rich"], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            found.add(name)
            needed = [Requirement(line) for line in requires(name) or []]
            wanted += [
                canonicalize_name(entry.name)
                for entry in needed
                if entry.marker is None or entry.marker.evaluate({"extra": ""})
            ]
    owners = packages_distributions()
    return {
        package
        for package, distributions in owners.items()
        if found & {canonicalize_name(distribution) for distribution in distributions}
    }


def third_party(program: str) -> set[str]:
    """The top-level packages that a program loads and that do not come with Python."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE + program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}
    ours = {"nethook"} | {name for name in names if name.startswith("_sysconfigdata")}
    return names - sys.stdlib_module_names - ours


@pytest.mark.parametrize(
    "program",
    [
        IMPORT,
        f"{IMPORT}; dir(nethook); nethook.__version__; nethook.errors.NethookError",
        f"{IMPORT}; hasattr(nethook, 'no_such_name')",
    ],
)
def test_import_loads_nothing_but_python(program: str) -> None:
    assert third_party(program) == set()


@pytest.mark.parametrize(
    "program",
    [
        RUN_SCRIPT.format(argv=[SCRIPT]),
        RUN_SCRIPT.format(argv=[SCRIPT, "--help"]),
        RUN_MODULE.format(argv=["nethook"]),
        RUN_MODULE.format(argv=["nethook", "--help"]),
    ],
    ids=["nethook", "nethook --help", "python -m", "python -m --help"],
)
def test_the_command_loads_its_own_parts_only(program: str) -> None:
    loaded = third_party(program)
    assert "typer" in loaded  # it did run
    # Rich imports attrs where something else has installed it, to print its classes.
    assert loaded <= command_line() | {"attr"}
    assert not loaded & {"torch", "numpy", "safetensors"}


def test_a_run_is_read_and_diagnosed_without_torch(tmp_path: Path) -> None:
    write_run(tmp_path / "run.db", 5)
    read = f"{IMPORT}; run = nethook.open_run({str(tmp_path / 'run.db')!r})"
    loaded = third_party(f"{read}; assert len(run.series('layer0')); nethook.diagnose(run)")
    assert "numpy" in loaded
    assert "torch" not in loaded


def test_the_probe_sees_what_is_loaded() -> None:
    """Without this, a probe that sees nothing would let everything pass."""
    loaded = third_party(f"{IMPORT}; nethook.trace")
    assert {"torch", "numpy"} <= loaded
    assert not loaded <= command_line()
