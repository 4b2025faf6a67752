"""Processes that a script starts: followed, or named with the command that follows them."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from nethook.running.children import Children
from nethook.running.options import RunOptions
from nethook.running.program import Program
from nethook.runs.reading.run import open_run
from tests.processes import run_whole
from tests.running.both import RULE, environment


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text("")
    (tmp_path / "other.py").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def looked_at(program: Program, *words: str, **call: Any) -> tuple[list[str], list[str]]:
    """What is started instead of `words`, and what is said at the end."""
    children = Children.__new__(Children)
    children._options, children._program = RunOptions("run.db"), program
    children._folder, children._strangers = Path.cwd(), []
    arguments: dict[str, Any] = {"args": list(words), "executable": None, **call}
    children._look_at(arguments)
    return arguments["args"], children.notes()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (Program("train.py"), ["train.py", "--x"]),
        (Program("train.py"), ["-u", "-W", "error", "./train.py"]),
        (Program("./train.py"), ["{folder}/train.py"]),
        (Program("pkg.train", module=True), ["-m", "pkg.train", "--x"]),
    ],
)
def test_the_same_script_started_again_is_followed(
    folder: Path, program: Program, words: list[str]
) -> None:
    command = [sys.executable, *(word.format(folder=folder) for word in words)]
    started, notes = looked_at(program, *command)
    at = started.index("-c")
    assert [*started[:at], *started[at + 2 :]] == command
    assert "run_again" in started[at + 1]
    assert notes == []


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["other.py", "a b"], "nethook run other.py 'a b'"),
        (["-m", "pkg.other"], "nethook run -m pkg.other"),
        (["other.py", "--token", "x1", "--n", "3"], "nethook run other.py --token *** --n 3"),
        (["-X", "dev", "other.py"], f"{sys.executable} -X dev -m nethook run other.py"),
    ],
)
def test_another_script_is_named_with_the_command(
    folder: Path, words: list[str], named: str
) -> None:
    command = [sys.executable, *words]
    started, notes = looked_at(Program("train.py"), *command)
    assert started == command
    assert notes == [f"Another Python process was started and not followed. This would: {named}"]


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "train.py"],
        [sys.executable, "-c", "print(1)", "train.py"],
        [sys.executable, "-m", "nethook", "run", "train.py"],
        [sys.executable, "--version"],
        [sys.executable],
        # Helpers of libraries, and of Python's own: Ray's monitor, the workers of a compiler.
        [sys.executable, "-u", f"{sysconfig.get_path('purelib')}/ray/autoscaler/monitor.py"],
        [sys.executable, f"{sysconfig.get_path('stdlib')}/idlelib/idle.py"],
    ],
)
def test_all_else_is_left_alone(folder: Path, words: list[str]) -> None:
    assert looked_at(Program("train.py"), *words) == (words, [])


def test_a_shell_and_another_folder_are_left_alone(folder: Path) -> None:
    words = [sys.executable, "train.py"]
    assert looked_at(Program("train.py"), *words, shell=True) == (words, [])
    (folder / "sub").mkdir()
    (folder / "sub" / "train.py").write_text("")
    started, notes = looked_at(Program("train.py"), *words, cwd=folder / "sub")
    assert started == words
    assert len(notes) == 1


def test_several_are_counted(folder: Path) -> None:
    children = Children.__new__(Children)
    children._strangers = ["nethook run a.py", "nethook run b.py"]
    assert children.notes() == [
        "2 Python processes were started and not followed. This would: nethook run a.py (and so on)"
    ]


RANKS = """\
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_ranks_of_torchrun_write_one_run_and_the_first_speaks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RANKS)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = run_whole(
        [sys.executable, *launcher, "-m", "nethook", "run", "train.py"],
        cwd=tmp_path,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(RULE) == 1
    assert len(list((tmp_path / "runs").iterdir())) == 2
    with open_run(done.stderr.splitlines()[-1]) as run:
        assert [rank.state for rank in run.ranks] == ["finished", "finished"]
        assert run.info["totals"]["steps"] == 3
