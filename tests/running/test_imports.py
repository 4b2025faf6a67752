"""Files beside a script: the script imports them as under `python`, and nethook never does."""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import nethook
from nethook.running.imports import taken_names
from tests.running.both import RULE, Done, bare, environment, same, under
from tests.running.programs import TRAIN

COMMAND = str(Path(sys.executable).with_name("nethook"))

MINE = "MINE = True; print('the script imports', __name__)\n"
REFUSES = "raise RuntimeError('somebody imports ' + __name__)\n"


def by_command(*words: str, cwd: Path, options: tuple[str, ...] = ()) -> Done:
    """`nethook run …`, as it is typed."""
    done = subprocess.run(
        [sys.executable, *options, COMMAND, "run", *words],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    err, rule, closing = done.stderr.partition(RULE)
    return Done(done.returncode, done.stdout, err, rule + closing)


def imported(error: str) -> set[str]:
    """The top-level modules that `-X importtime` tells of."""
    lines = re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", error, re.MULTILINE)
    return {name.partition(".")[0] for name in lines}


def followed(done: Done) -> Path:
    """The run file of a script that was followed to its end, and of nothing that failed."""
    assert "too early to tell" in done.closing or "no problems found" in done.closing, done.closing
    assert "failed" not in done.closing
    path = Path(done.closing.splitlines()[-1])
    with nethook.open_run(path) as run:
        assert int(run.series("0").last_step[-1]) == 29
    return path


def test_which_names_are_taken(tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in (
        "one.py",
        "two/__init__.py",
        "three.py",
        "spaced.py",
        "torch.py",
        "sys.py",
        "os.py",
    ):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).touch()
    mine = tmp_path / "mine"
    for name in ("one.py", "two.py", "spaced/file.txt", "four.py", "torch.py", "sys.py", "os.py"):
        (mine / name).parent.mkdir(parents=True, exist_ok=True)
        (mine / name).touch()
    # A folder without __init__.py gives way; what is built in, or frozen, comes before all.
    assert taken_names(str(mine), [str(other)]) == {"one", "two"}
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        archive.writestr("three.py", "")
        archive.writestr("two/__init__.py", "")
    assert taken_names(str(tmp_path / "mine.zip"), [str(other)]) == {"three", "two"}
    assert taken_names(str(tmp_path / "nowhere"), [str(other)]) == set()


def test_a_folder_that_hides_all_that_nethook_imports(tmp_path: Path) -> None:
    """Some of it is the script's, which imports it before nethook does, or after; the rest refuses.

    What nethook imports and the script does not is found by running it. Nethook itself is among
    it: people have a `nethook.py` of their own.
    """
    (tmp_path / "train.py").write_text(TRAIN)
    alone = bare("train.py", options=("-X", "importtime"), cwd=tmp_path)
    first = by_command("train.py", options=("-X", "importtime"), cwd=tmp_path)
    names = imported(first.err + first.closing) - imported(alone.err)
    names -= {"re", *sys.builtin_module_names}
    assert {"sqlite3", "safetensors", "nethook"} <= names  # the probe sees what is imported
    for name in names | {"typer", "click", "rich", "plotly", "starlette", "uvicorn", "jinja2"}:
        (tmp_path / f"{name}.py").write_text(REFUSES)
    for name in ("sqlite3", "safetensors", "typer", "nethook"):
        (tmp_path / f"{name}.py").write_text(MINE)
    own = ("sqlite3", "safetensors", "typer", "nethook")
    (tmp_path / "train.py").write_text(
        f"import sqlite3\n{TRAIN}import safetensors, typer, nethook, sys\n"
        "print([hasattr(each, 'MINE') for each in (sqlite3, safetensors, typer, nethook)])\n"
        "print(sys.modules['sqlite3'] is sqlite3)\n"
    )
    done = by_command("train.py", cwd=tmp_path)
    # An import hook of an editable install finds nethook before the script's folder is asked.
    plain = bare("train.py", cwd=tmp_path)
    assert (done.code, done.err, done.out) == (0, "", plain.out)
    assert [f"the script imports {name}" in plain.out for name in own[:3]] == [True] * 3
    followed(done)


def test_what_nethook_imports_first_is_still_the_scripts_to_import(tmp_path: Path) -> None:
    """Nethook has imported much of Python by then; the script's files come first all the same."""
    (tmp_path / "probe.py").write_text("import sys; print(*sorted(sys.modules))")
    names = {
        name.partition(".")[0]
        for name in by_command("probe.py", cwd=tmp_path).out.split()
        if "nethook" not in name
    }
    names -= {each.partition(".")[0] for each in bare("probe.py", cwd=tmp_path).out.split()}
    names = {name for name in names if name not in sys.builtin_module_names}
    assert {"argparse", "inspect", "shlex", "re", "typing", "threading"} <= names
    for name in names:
        (tmp_path / f"{name}.py").write_text(MINE)
    ordered = ", ".join(sorted(names))
    (tmp_path / "script.py").write_text(
        f"import {ordered}\nprint([getattr(each, 'MINE', None) for each in ({ordered})])"
    )
    one, other = by_command("script.py", cwd=tmp_path), bare("script.py", cwd=tmp_path)
    assert other.out.count("True") > 30
    same(one, other)


def test_python_m_looks_into_no_folder(tmp_path: Path) -> None:
    """With `-m` the folder that one is in comes first from the start."""
    for name in ("argparse", "typing", "dataclasses", "sqlite3", "typer"):
        (tmp_path / f"{name}.py").write_text(MINE)
    (tmp_path / "script.py").write_text("import typing, argparse, typer\nprint(typer.MINE)")
    same(under("script.py", cwd=tmp_path), bare("script.py", cwd=tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "nethook", "--version"],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert re.match(r"nethook \S+\ntorch \S+ .*\nall ", done.stdout), done.stderr


SPAWNS = f"""\
import sys, subprocess
import multiprocessing as mp
def train():
    import sqlite3
    assert sqlite3.MINE
    exec({TRAIN!r}, {{}})
if __name__ == "__main__":
    if "again" in sys.argv:
        train()
    else:
        child = mp.get_context("spawn").Process(target=train)
        child.start()
        child.join()
        assert child.exitcode == 0
        subprocess.run([sys.executable, __file__, "again"], check=True)
"""


def test_processes_that_the_script_starts(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SPAWNS)
    (tmp_path / "sqlite3.py").write_text(MINE)
    for name in ("safetensors", "typer", "rich"):
        (tmp_path / f"{name}.py").write_text(REFUSES)
    one = by_command("script.py", cwd=tmp_path)
    assert (one.code, one.err) == (0, "")
    assert one.out.count("the script imports sqlite3") == 2
    files = sorted((tmp_path / "runs").glob("*.db"))
    assert len(files) == 2, one.closing
    for path in files:
        with nethook.open_run(path) as run:
            assert int(run.series("0").last_step[-1]) == 29
            assert "failed" not in [event.kind for event in run.events]
