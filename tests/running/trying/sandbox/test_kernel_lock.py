"""What the kernel refuses, whoever asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running.both import environment

PROGRAM = """
import os, sys
from nethook.running.trying.sandbox.kernel_lock import lock
inside, outside = sys.argv[1:]
if not lock(inside):
    sys.exit(7)
def may(act):
    try:
        act()
    except OSError as error:
        return error.errno
    return "may"
import socket
print(may(lambda: open(inside + "/new", "w").write("x")))
print(may(lambda: os.rename(inside + "/new", inside + "/newer")))
print(may(lambda: open(os.devnull, "w").write("x")))
print(may(lambda: open(outside + "/kept").read()))
print(may(lambda: open(outside + "/kept", "r+")))
print(may(lambda: open(outside + "/new", "w")))
print(may(lambda: os.remove(outside + "/kept")))
print(may(lambda: os.mkfifo(outside + "/pipe")))
print(may(lambda: os.rename(outside + "/kept", inside + "/stolen")))
import subprocess
print(subprocess.run(["touch", outside + "/new"], stderr=subprocess.DEVNULL).returncode)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Landlock is Linux's")
def test_writes_outside_the_folder_are_refused_for_good(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "kept").write_text("x", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(inside), str(outside)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    if done.returncode == 7:
        pytest.skip("this kernel has no Landlock")
    assert done.stderr == ""
    allowed, refused = done.stdout.split()[:4], done.stdout.split()[4:]
    assert allowed == ["may"] * 4
    # EACCES, and EXDEV for what would move to another folder.
    assert {*refused[:-1]} <= {"13", "18"}
    assert len(refused) == 6
    assert refused[-1] != "0"
    assert [path.name for path in outside.iterdir()] == ["kept"]
