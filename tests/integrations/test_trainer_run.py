"""A run of a trainer: begins, keeps its numbers, joins `nethook run`, reacts, ends."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn

import nethook
from nethook.doctor.finding import Finding
from nethook.errors import OptionError, OtherModelError
from nethook.integrations.trainer_run import RecordsRun, TrainerRun, number_of, read_state
from nethook.watching.diagnosis import Diagnosis
from nethook.watching.watch import watch_of

FOUND = Finding("dead-units", "error", "60 of 64 units are silent.", "Lower the rate.")
NOTE = Finding("repeated-batch", "info", "One batch.", "")


def made() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    return model, torch.optim.SGD(model.parameters(), 0.1)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()


def a_run(path: Path, **options: object) -> TrainerRun:
    return TrainerRun(path, **{"on_finding": "warn", "report": False, **options})


def test_numbers_of_the_trainer_stand_first(tmp_path: Path) -> None:
    model, optimizer = made()
    run = a_run(tmp_path / "a.db")
    assert (run.path, run.step) == (None, 0)
    run.log({"loss": 1.0})  # before the beginning: nothing happens
    run.begin(model, [optimizer])
    train(model, optimizer)
    run.log({"loss": torch.tensor(0.25), "eval_loss": 0.5, "note": "text", "flag": True})
    assert (run.path, run.step) == (tmp_path / "a.db", 3)
    run.end()
    run.end()
    run.log({"loss": 9.0})  # after the end: trainers do
    with nethook.open_run(tmp_path / "a.db") as read:
        assert read.scalars["trainer/loss"].value.tolist() == [0.25]
        assert "trainer/note" not in read.scalars
        assert "trainer/flag" not in read.scalars
        assert "loss 0.25 (logged by the program)" in repr(read)
        assert "evaluation loss 0.5 (logged by the program)" in repr(read)


def test_it_goes_on_in_its_run(tmp_path: Path) -> None:
    model, optimizer = made()
    first = a_run(tmp_path / "a.db")
    first.begin(model, [optimizer])
    train(model, optimizer, 5)
    first.end()
    second = a_run(tmp_path / "other.db")
    second.begin(model, [optimizer], resume=tmp_path / "a.db", step=3)
    train(model, optimizer, 4)
    assert (second.path, second.step) == (tmp_path / "a.db", 7)
    second.end()
    assert not (tmp_path / "other.db").exists()
    third = a_run(tmp_path / "new.db")
    third.begin(model, [optimizer], resume=tmp_path / "gone.db", step=3)  # the run is gone
    assert third.path == tmp_path / "new.db"
    third.end()


def test_what_has_trained_before_goes_on_in_the_run_at_to(tmp_path: Path) -> None:
    """Where a trainer's checkpoints have no room for the name of a run."""
    model, optimizer = made()
    for done, steps in ((0, 5), (3, 4)):  # a checkpoint of step 3
        run = a_run(tmp_path / "a.db")
        run.begin(model, [optimizer], done=done)
        train(model, optimizer, steps)
        run.end()
    with nethook.open_run(tmp_path / "a.db") as read:
        assert read.ranks[0].last_step == 6
    elsewhere = a_run(tmp_path / "b.db")
    elsewhere.begin(model, [optimizer], done=7)  # no run there: it begins
    assert elsewhere.path == tmp_path / "b.db"
    elsewhere.end()


def test_the_run_of_another_model_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, optimizer = made()
    run = a_run(tmp_path / "a.db")
    run.begin(model, [optimizer])
    train(model, optimizer)
    run.end()
    other = nn.Linear(3, 1)
    again = a_run(tmp_path / "a.db")
    again.begin(other, [torch.optim.SGD(other.parameters(), 0.1)], done=3)
    assert again.path is not None
    assert again.path.name.startswith("a-")
    assert "nethook: this training does not go on in" in capsys.readouterr().err
    again.end()
    named = a_run(tmp_path / "b.db")
    with pytest.raises(OtherModelError):
        named.begin(other, resume=tmp_path / "a.db", step=3)


def test_what_a_checkpoint_has_kept_is_checked() -> None:
    kept = {"run": "runs/a.db", "step": 3}
    assert read_state({**kept, "more": 1}) == kept
    strange = (None, [], "a", {}, {"run": 3, "step": 3}, {"run": "a", "step": True}, {"run": "a"})
    assert [read_state(each) for each in strange] == [{}] * len(strange)


def test_an_error_is_kept(tmp_path: Path) -> None:
    model, optimizer = made()
    run = a_run(tmp_path / "a.db")
    run.begin(model, [optimizer])
    train(model, optimizer)
    run.end(ValueError("no data"))
    with nethook.open_run(tmp_path / "a.db") as read:
        assert read.info["ended"] == {"error": "ValueError: no data", "interrupted": False}


@pytest.mark.parametrize("on_finding", ["warn", "stop", "call"])
def test_new_findings_are_handled_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    on_finding: str,
) -> None:
    called: list[Finding] = []
    model, optimizer = made()
    run = a_run(tmp_path / "a.db", on_finding=called.append if on_finding == "call" else on_finding)
    run.begin(model, [optimizer])
    assert not run.react()
    monkeypatch.setattr(Diagnosis, "findings", property(lambda self: (FOUND, NOTE)))
    assert run.react() is (on_finding == "stop")
    assert not run.react()
    err = capsys.readouterr().err
    assert called == ([FOUND] if on_finding == "call" else [])
    said = f"nethook: {FOUND}\n  fix: Lower the rate.\n"
    assert err.count(said) == (0 if on_finding == "call" else 1)
    assert "repeated-batch" not in err
    run.end()


def test_a_callback_has_the_options_of_watch() -> None:
    for_each_run = {"model", "optimizer", "to", "resume", "step"}
    theirs = inspect.signature(nethook.watch).parameters
    mine = inspect.signature(RecordsRun).parameters
    wanted = {name: theirs[name].default for name in theirs if name not in for_each_run}
    assert {name: mine[name].default for name in mine if name in wanted} == wanted
    assert mine.keys() - wanted.keys() == {"to", "on_finding", "report"}


def test_options_reach_the_watch(tmp_path: Path) -> None:
    class Noted(nethook.sinks.Sink):
        steps: ClassVar[list[int]] = []

        def scalars(self, step: int, values: object) -> None:
            self.steps.append(step)

    model, optimizer = made()
    recording = RecordsRun(
        tmp_path / "a.db", sinks=Noted(every=0), quantities=["outputs"], phases="train", batches=0
    )
    recording.trainer_run.begin(model, [optimizer])
    train(model, optimizer)
    recording.trainer_run.end()
    assert Noted.steps == [0, 1, 2]
    with nethook.open_run(tmp_path / "a.db") as read:
        kept = {(each.address, each.quantity) for each in read.catalogue}
        assert ("0", "outputs") in kept
        assert not {quantity for _, quantity in kept} & {"grads", "params", "updates"}


def test_a_wrong_reaction_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match='must be "warn", "stop" or a function; got \'shout\''):
        a_run(tmp_path / "a.db", on_finding="shout")


def test_numbers() -> None:
    assert number_of(3) == 3.0
    assert number_of(torch.tensor([2.5])) == 2.5
    nan = number_of(float("nan"))
    assert nan is not None
    assert nan != nan
    assert [number_of(value) for value in (True, "3", None, [1], torch.ones(2))] == [None] * 5


def test_the_watch_of_a_part(tmp_path: Path) -> None:
    model, optimizer = made()
    whole = nn.ModuleDict({"net": model})
    assert watch_of(whole) is None
    with nethook.watch(model, optimizer, to=tmp_path / "a.db") as watch:
        watch.be_silent()
        assert watch_of(whole) is watch
        assert watch_of(model[0]) is watch
        assert watch_of(nn.Linear(1, 1)) is None
    assert watch_of(model) is None


SCRIPT = """
import torch
from torch import nn
from nethook.integrations.trainer_run import TrainerRun

class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 1)

module = Module()
optimizer = torch.optim.SGD(module.parameters(), 0.1)
run = TrainerRun("own.db", on_finding="warn", report=True, sinks=["tensorboard"])
run.begin(module, [optimizer])
for _ in range(5):
    optimizer.zero_grad()
    module.net(torch.randn(4, 3)).square().mean().backward()
    optimizer.step()
run.log({"accuracy": 0.5})
run.end()
optimizer.zero_grad()
module.net(torch.randn(4, 3)).square().mean().backward()
optimizer.step()
"""


def test_it_joins_the_run_of_nethook_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "nethook", "run", "--to", "run.db", "script.py"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"run.db", "script.py"}
    assert "under `nethook run` `sinks` does nothing: use its --to-tracker\n" in done.stderr
    assert "under `nethook run` `report` does nothing: use `nethook report`\n" in done.stderr
    with nethook.open_run(tmp_path / "run.db") as read:
        assert read.scalars["trainer/accuracy"].value.tolist() == [0.5]
        assert read.info["totals"]["steps"] == 6  # its end is not the trainer's
