"""Who writes a run."""

from __future__ import annotations

import subprocess
import sys
import time

from nethook.runs.format.owner import HEARTBEAT, is_alive, this_process


def test_this_process_is_alive_and_has_a_token_of_its_own() -> None:
    mark = this_process()
    assert is_alive(mark, 0.0)
    assert this_process()["token"] != mark["token"]


def test_a_process_that_ended_is_not() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert not is_alive({**this_process(), "pid": process.pid}, time.time())


def test_a_process_that_has_the_number_of_another_is_not() -> None:
    assert not is_alive({**this_process(), "started": "long ago"}, time.time())


def test_a_process_that_nobody_waited_for_is_not() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        script = (
            "from nethook.runs.format.owner import _started; import sys; "
            "print(_started(int(sys.argv[1])))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, str(process.pid)],
            capture_output=True,
            text=True,
            check=True,
        )
        mark = {**this_process(), "pid": process.pid, "started": done.stdout.strip()}
        assert is_alive(mark, 0.0)
        process.kill()
        time.sleep(0.1)  # dead, and still listed
        assert not is_alive(mark, 0.0)


def test_another_machine_is_alive_while_it_gives_signs() -> None:
    mark = {**this_process(), "host": "another"}
    assert is_alive(mark, time.time())
    assert not is_alive(mark, time.time() - HEARTBEAT - 1)


def test_nonsense_is_nobody() -> None:
    for mark in (None, 5, {}, {"pid": "1"}, {**this_process(), "pid": -1}):
        assert not is_alive(mark, time.time())
