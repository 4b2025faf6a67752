"""Where a run cannot be written, `nethook run` still runs the script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.running.both import under
from tests.running.programs import TRAIN
from tests.runs.disks import small_disk


def test_a_full_disk_does_not_stop_the_script(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    with small_disk(tmp_path / "disk", "400k") as disk:
        done = under("train.py", ours=("--to", str(disk / "a.db")), cwd=tmp_path)
        assert list(disk.iterdir()) == []
    assert done.code == 0
    assert float(done.out) > 0
    assert done.err.count("RuntimeWarning: nethook cannot write") == 1
    assert "Nothing of the run could be written: database or disk is full." in done.closing


def test_a_folder_that_cannot_be_written_is_told_at_once_and_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "file").touch()
    done = under("train.py", ours=("--to", "file/a.db"), cwd=tmp_path)
    assert done.code == 0
    assert float(done.out) > 0
    said = " ".join(done.err.split())
    assert said.count("RuntimeWarning: nethook: Nothing is recorded: the folder of") == 1
    assert "\nNothing was recorded: the folder of" in done.closing
    assert "RunFileError" not in said + done.closing


def test_a_script_runs_in_a_folder_that_was_removed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print('ran')")
    gone = tmp_path / "gone"
    gone.mkdir()
    inner = f"import os; os.rmdir({str(gone)!r}); from nethook.cli.entry import main; import sys; "
    inner += f"sys.argv = ['nethook', 'run', {str(tmp_path / 'a.py')!r}]; main()"
    done = subprocess.run(
        [sys.executable, "-c", inner], cwd=gone, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert "Traceback" not in done.stderr
