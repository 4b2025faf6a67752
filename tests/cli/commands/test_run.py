"""The options of `nethook run`, where its file goes, and what it says at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from nethook.cli.commands.run import _program, _split
from nethook.running.program import Program
from nethook.runs.reading.run import open_run
from tests.running.both import Done, Warm, bare, same, under

TRAINS = """\
import os, sys, torch
os.makedirs("elsewhere", exist_ok=True)
os.chdir("elsewhere")
model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3)).pow(2).mean()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("words", "ours", "program"),
    [
        (["a.py"], [], Program("a.py")),
        (["a.py", "--to", "x", "-m", "y"], [], Program("a.py", ("--to", "x", "-m", "y"))),
        (["--to", "x", "a.py", "--to", "y"], ["--to", "x"], Program("a.py", ("--to", "y"))),
        (["--to=x", "--quiet", "a.py"], ["--to=x", "--quiet"], Program("a.py")),
        (["--live", "-m", "p.q", "-m", "r"], ["--live"], Program("p.q", ("-m", "r"), module=True)),
        (["-mp.q", "r"], [], Program("p.q", ("r",), module=True)),
        (["--", "--odd.py", "x"], [], Program("--odd.py", ("x",))),
        (["-", "x"], [], Program("-", ("x",))),
        (["--quiet"], ["--quiet"], None),
        (["-m"], [], None),
    ],
)
def test_everything_after_the_script_is_the_scripts(
    words: list[str], ours: list[str], program: Program | None
) -> None:
    mine, rest = _split(words)
    assert (mine, _program(rest)) == (ours, program)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "which script? Type `nethook run train.py`"),
        (("--budget", "7", "a.py"), "must be a fraction between 0 and 1; got '7'. Examples"),
        (("--budget", "much", "a.py"), "must be a fraction between 0 and 1; got 'much'."),
        (("--too", "x", "a.py"), "unrecognized arguments: --too"),
        (("--fail-on", "x", "a.py"), "invalid choice: 'x'"),
        (("--to", "there.db", "a.py"), "exists, and a run is never overwritten: continue it with"),
        (("--to", "there.db", "--resume", "a.py"), "is not a run of nethook"),
        (("--to", "{time}.db", "--resume", "a.py"), "names a new file each time"),
        (("--step", "5", "a.py"), "--step needs --resume"),
        (("--to-tracker", "wanddb", "a.py"), "--to-tracker must be some of wandb, tensorboard,"),
        (("--to-tracker", "tensorboard:some", "a.py"), "got 'tensorboard:some'"),
        (("--resume", "--step", "-5", "a.py"), "must be a step number; got '-5'. Example: 5000."),
        (("--resume", "--step", "x", "a.py"), "must be a step number; got 'x'. Example: 5000."),
        (("--try-fix", "--try-steps", "0", "a.py"), "must be 1 or more; got '0'. Example: 100."),
        (("--try-seconds", "long", "a.py"), "must be 1 or more; got 'long'. Example: 100."),
    ],
)
def test_a_wrong_call_is_said_before_the_script_runs(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    (tmp_path / "a.py").write_text("print('it ran')")
    (tmp_path / "there.db").write_text("taken")
    done = under(*words, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert says in done.err.replace("\n", " ")


def test_help_names_every_option(tmp_path: Path) -> None:
    done = under("--help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    for option in ("--to", "--name", "--budget", "--include", "--exclude", "--no-batches", "--ui"):
        assert option in done.out
    for option in ("--fail-on", "--live", "--open", "--quiet", "torchrun"):
        assert option in done.out
    for option in (
        "--resume",
        "--step",
        "--keep-args",
        "--try-fix",
        "--try-steps",
        "--try-seconds",
    ):
        assert option in done.out
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    process = Warm()
    yield process
    process.stop()


def train(
    warm: Warm, folder: Path, *ours: str, script: str = TRAINS, args: tuple[str, ...] = ()
) -> Done:
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(script)
    return warm.run("-m", "nethook", "run", *ours, "train.py", *args, cwd=project)


def test_the_file_goes_where_it_was_asked_for_from_the_start(tmp_path: Path, warm: Warm) -> None:
    done = train(
        warm, tmp_path, "--to", "kept/first.db", "--name", "first", "--exclude", "2", "--quiet"
    )
    path = tmp_path / "project" / "kept" / "first.db"
    assert (done.code, done.out) == (0, "")
    assert done.err == f"{path}\n"
    with open_run(path) as run:
        assert run.info["name"] == "first"
        outputs = {info.address for info in run.catalogue if info.quantity == "outputs"}
        assert {"0", "1"} <= outputs
        assert "2" not in outputs


@pytest.mark.parametrize(
    ("ours", "kept"),
    [
        ((), ["--lr", "0.1", "--api-key", "***", "--data", "***"]),
        (("--keep-args",), ["--lr", "0.1", "--api-key", "hunter2", "--data", "/data/x"]),
    ],
)
def test_arguments_that_may_be_secrets_are_kept_only_where_asked(
    tmp_path: Path, warm: Warm, ours: tuple[str, ...], kept: list[str]
) -> None:
    args = ("--lr", "0.1", "--api-key", "hunter2", "--data", "/data/x")
    done = train(warm, tmp_path, "--to", "a.db", *ours, args=args)
    assert done.code == 0
    path = tmp_path / "project" / "a.db"
    with open_run(path) as run:
        assert run.info["command"][1:] == ["train.py", *kept]
    assert (b"hunter2" in path.read_bytes()) == bool(ours)


def test_the_default_path_has_script_and_time_and_is_the_last_line(
    tmp_path: Path, warm: Warm
) -> None:
    done = train(warm, tmp_path)
    last = done.closing.splitlines()[-1]
    assert re.fullmatch(
        rf"{re.escape(str(tmp_path))}/project/runs/train-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d\.db", last
    )
    lines = done.closing.splitlines()
    assert re.match(r"Sequential, 3 layers, 5 steps, watching cost .*[\d.]+ s in all", lines[1])
    assert re.match(r"loss \S+ → \S+  \(train.py:9, mean over samples\)", lines[2])
    assert all(len(line) <= 80 for line in lines if "/runs/" not in line)  # paths are never cut
    assert "\x1b" not in done.closing


FINDS = """
import nethook.runs.writing.writer as w
close = w.RunWriter.close
def found(self, *windows, **named):
    self.findings([{"code": "dead-units", "severity": "warning", "sites": ["1"]}])
    close(self, *windows, **named)
w.RunWriter.close = found
"""


@pytest.mark.parametrize(
    ("ours", "ending", "code"),
    [
        (("--fail-on", "warning"), "", 3),
        (("--fail-on", "error"), "", 0),
        ((), "", 0),
        (("--fail-on", "error"), "sys.exit(5)", 5),
        (("--fail-on", "info"), "sys.exit(5)", 3),
        (("--fail-on", "info"), "1 / 0", 3),
    ],
)
def test_fail_on_ends_with_3_and_else_the_code_is_the_scripts(
    tmp_path: Path, warm: Warm, ours: tuple[str, ...], ending: str, code: int
) -> None:
    done = train(warm, tmp_path, *ours, script=FINDS + TRAINS + ending)
    assert done.code == code
    assert "warning: dead-units (1)" in done.closing


def test_a_run_without_torch_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    done = under("train.py", cwd=tmp_path)
    assert done.closing.splitlines()[1:] == ["nothing recorded: the script did not import torch"]


@pytest.mark.parametrize("words", [("none.py",), ("-m", "none")])
def test_of_a_script_that_is_not_there_only_python_speaks(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = under(*words, cwd=tmp_path)
    same(done, bare(*words, cwd=tmp_path))
    assert done.closing == ""
    assert not (tmp_path / "runs").exists()


def test_a_pattern_that_matches_nothing_is_said_and_costs_nothing(
    tmp_path: Path, warm: Warm
) -> None:
    done = train(warm, tmp_path, "--include", "conv*")
    assert done.code == 0
    assert "nethook could not follow the models: NoSuchSiteError" in done.closing.replace(
        "\n  ", " "
    )


def test_resume_goes_on_in_the_run_that_is_there(tmp_path: Path, warm: Warm) -> None:
    done = train(warm, tmp_path, "--to", "a.db", "--resume")  # none is there: it begins
    assert "Resumed" not in done.closing
    project = tmp_path / "project"
    again = ("-m", "nethook", "run", "--to", "a.db", "--resume")
    done = warm.run(*again, "--step", "3", "train.py", cwd=project)
    assert done.code == 0
    assert "Resumed a.db at step 3; the earlier record of steps 3 to 4 was dropped." in done.closing
    with open_run(project / "a.db") as run:
        assert [each["first_step"] for each in run.info["sessions"]] == [0, 3]
        (loss,) = (each for name, each in run.scalars.items() if name.startswith("loss:"))
        assert loss.step.tolist() == list(range(8))
    # Another model is recorded all the same, elsewhere, and that is said.
    (project / "train.py").write_text(TRAINS.replace("4", "6"))
    done = warm.run(*again, "train.py", cwd=project)
    said = " ".join(done.closing.split())
    assert "'0.weight' has shape [6, 3] and had [4, 3]" in said
    assert "This run is in a-2.db." in said
    assert "to=" not in said  # which is how a caller of `watch` would say it
    assert done.closing.splitlines()[-1] == str(project / "a-2.db")
    with open_run(project / "a.db") as run:
        assert len(run.info["sessions"]) == 2
