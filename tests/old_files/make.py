"""Writes tests/old_files/v0.1 again: files of runs, recipes, features and plans, by version 0.1.

    python -m tests.old_files.make              all of them
    python -m tests.old_files.make nan gan      these

The programs beside this one run with the sources of 0.1, in a folder that says nothing about this
machine. What they leave is kept as it is, byte by byte, compressed with gzip: a run file is mostly
empty pages. `written.py` unpacks it for the tests.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from tests.old_files.written import KEPT
from tools.golden.sources import sources_of

HERE = Path(__file__).parent
FOLDER = Path(tempfile.gettempdir()) / "nethook-0.1"
CASES = (
    *("healthy", "dead", "nan", "gan", "ranks", "killed"),
    *("recipe", "features", "plan", "crashed"),
)


def main() -> None:
    """Makes what was asked for."""
    for name in sys.argv[1:] or CASES:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir()
        programs = [HERE / f"{each}.py" for each in ("models", "neutral", "cases", "crash")]
        for program in programs:
            shutil.copy(program, FOLDER)
        libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        # An editable install finds its own sources before any path: hence -S.
        path = [str(sources_of("v0.1.0")), *libraries]
        environment = {
            **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
            "PYTHONPATH": os.pathsep.join(path),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-S", "cases.py", name]
        subprocess.run(command, cwd=FOLDER, env=environment, check=True)
        for program in programs:
            (FOLDER / program.name).unlink()
        keep(FOLDER)


def keep(folder: Path) -> None:
    """Compresses what is in a folder into the one that is kept."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            held = path.read_bytes()
            is_run = ".db" in path.name
            target = KEPT / f"{path.relative_to(folder)}{'.gz' if is_run else ''}"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress(held, 9, mtime=0) if is_run else held)
            print(f"{target.stat().st_size:8,} {target.relative_to(KEPT)}")


if __name__ == "__main__":
    main()
