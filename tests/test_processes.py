"""Processes of tests end with what they started."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from tests.processes import kill_all, next_line, run_whole

# A child that holds the pipes for longer than any test would wait.
KEEPS_THE_PIPE = (
    "import subprocess, sys, time; print('began', flush=True); "
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)']); time.sleep(1000)"
)


def test_what_ends_in_time_is_returned() -> None:
    done = run_whole([sys.executable, "-c", "print(input()); raise SystemExit(3)"], input="said\n")
    assert (done.returncode, done.stdout, done.stderr) == (3, "said\n", "")


def test_a_child_that_holds_the_pipes_is_killed_as_well() -> None:
    began = time.monotonic()
    with pytest.raises(subprocess.TimeoutExpired) as late:
        run_whole([sys.executable, "-c", KEEPS_THE_PIPE], seconds=1.0)
    assert time.monotonic() - began < 500
    assert late.value.output in ("", "began\n")  # a busy machine may not come so far


def test_a_line_that_does_not_come_is_not_waited_for() -> None:
    command = [sys.executable, "-c", KEEPS_THE_PIPE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, text=True, start_new_session=True) as process:
        assert next_line(process) == "began\n"
        with pytest.raises(subprocess.TimeoutExpired):
            next_line(process, seconds=0.1)
        kill_all(process)  # it is gone already, which is no error
