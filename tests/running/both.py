"""The same program run by `python` and by `nethook run`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import nethook
from tests.processes import next_line, run_whole

RULE = "── nethook ──"


@dataclass(frozen=True)
class Done:
    """How a program ended and what it printed; `closing` is what nethook added at the end."""

    code: int
    out: str
    err: str
    closing: str = ""


def bare(*command: str, options: tuple[str, ...] = (), cwd: Path, stdin: str = "") -> Done:
    """`python [options] script …`."""
    return _run([sys.executable, *options, *command], cwd, stdin)


def under(
    *command: str,
    options: tuple[str, ...] = (),
    ours: tuple[str, ...] = (),
    cwd: Path,
    stdin: str = "",
) -> Done:
    """`python [options] -m nethook run [ours] script …`."""
    return _run([sys.executable, *options, "-m", "nethook", "run", *ours, *command], cwd, stdin)


def same(one: Done, other: Done) -> None:
    """Fails where two programs differ in what they printed or how they ended."""
    assert one.out == other.out
    assert without_module_calls(one.err) == without_module_calls(other.err)
    assert one.code == other.code


def without_module_calls(text: str) -> str:
    """What was printed, less the frames in which torch calls a module.

    A module with hooks calls its forward through one function more than a module without. And less
    what torch says of Python 3.13.0 alone, as often as it compiles: nethook's hooks are in graphs.
    """
    text = re.sub(r"\S+ RuntimeWarning: Guards may run slower on Python 3\.13\.0.*\n.*\n", "", text)
    frames = text.split("  File ")
    return "  File ".join(
        frame for frame in frames if "torch/nn/modules/module.py" not in frame.split(",")[0]
    )


def environment() -> dict[str, str]:
    """The environment of the tests, in which nethook is found from every folder."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(nethook.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }


def _without_leaks_of_triton(err: str) -> str:
    """What was printed, without the report that triton 3.9 (with torch 2.15) makes at exit.

    Seen in processes of `Warm`, probably for what `gc.freeze` froze there is not collected at exit;
    so `_run` compares in full. A report of anything but triton's stays.
    """
    return re.sub(
        r"nanobind: leaked (?:(?!refleaks\.html).)*triton\._C\.libtriton"
        r"(?:(?!refleaks\.html).)*refleaks\.html\n?",
        "",
        err,
        flags=re.DOTALL,
    )


def _without_greetings(out: str) -> str:
    """What was printed, without what gloo of torch 2.8 says of who is connected.

    Processes that start together print that in the midst of each other's lines.
    """
    if "[Gloo]" not in out:
        return out
    lines = [line for line in out.splitlines() if line and not re.search("Gloo|peer ranks", line)]
    return "".join(f"{line}\n" for line in lines)


def _run(command: list[str], cwd: Path, stdin: str) -> Done:
    done = run_whole(command, cwd=cwd, env=environment(), input=stdin)
    err, rule, closing = done.stderr.partition(RULE)
    return Done(done.returncode, _without_greetings(done.stdout), err, rule + closing)


class Warm:
    """The process of tests/running/warm.py, and all that it forks, with these options of Python."""

    def __init__(self, *options: str) -> None:
        program = str(Path(__file__).with_name("warm.py"))
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, *options, program],
            stdin=pipe,
            stdout=pipe,
            env=environment(),
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, cwd: Path) -> Done:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        out, err = cwd.parent / "out", cwd.parent / "err"
        for file in (out, err):
            file.unlink(missing_ok=True)
        job = {"folder": str(cwd), "words": words, "out": str(out), "err": str(err)}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code = int(next_line(self._process))
        printed = _without_leaks_of_triton(err.read_text(encoding="utf-8"))
        error, rule, closing = printed.partition(RULE)
        return Done(
            code, _without_greetings(out.read_text(encoding="utf-8")), error, rule + closing
        )

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)  # a busy machine takes its time
        self._process.stdout.close()
