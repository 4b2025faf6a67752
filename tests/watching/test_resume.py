"""`watch(resume=True)`: going on in the run that is there."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NotARunError, OptionError, OtherModelError, RunInUseError
from nethook.runs.names import RESUMED
from tests.faults.kills import killed_in_a_row

TRUTH = torch.linspace(-1, 1, 12)[:, None]


def made(width: int = 16) -> tuple[nn.Sequential, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, 1))
    return model, torch.optim.Adam(model.parameters(), 0.01)


def trained(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: int,
    seed: int,
    after: Callable[[nethook.Watch], None] = lambda _: None,
    **options: Any,
) -> list[float]:
    """Trains under a watch; the losses, as the script saw them."""
    data = torch.Generator().manual_seed(seed)
    losses = []
    with nethook.watch(model, optimizer, to=path, budget=None, **options) as watch:
        watch.be_silent()
        for _ in range(steps):
            x = torch.randn(32, 12, generator=data)
            noise = 0.1 * torch.randn(32, 1, generator=data)
            loss = nn.functional.mse_loss(model(x), x @ TRUTH + noise)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            after(watch)
    return losses


def loss_of(run: nethook.Run) -> Any:
    (name,) = (name for name in run.scalars if name.startswith("loss:"))
    return run.scalars[name]


def steps_of(run: nethook.Run) -> list[int]:
    """The steps of all windows; where the machine is busy, some windows are several steps."""
    series = run.series("0")
    return [
        step
        for first, last in zip(series.first_step, series.last_step, strict=True)
        for step in range(first, last + 1)
    ]


def test_goes_on_after_the_last_step(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()
    seen = trained(path, model, optimizer, 40, seed=1, resume=True)  # there is none yet: it begins
    before = nethook.open_run(path)
    assert len(before.info["sessions"]) == 1
    seen += trained(path, model, optimizer, 30, seed=2, resume=True)
    run = nethook.open_run(path)
    assert loss_of(run).step.tolist() == list(range(70))
    assert loss_of(run).value.tolist() == seen
    assert steps_of(run) == list(range(70))
    assert run.info["totals"]["steps"] == 70
    assert run.info["totals"]["optimizer_steps"] == {"0": 70}
    (linear,) = (site for site in run.sites if site.address == "0")
    assert linear.info["calls"]["train"] == 70
    assert linear.info["modes"] == [[0, "train", True]]
    first, second = run.info["sessions"]
    assert (first["first_step"], first["last_step"], first["closed"]) == (0, 39, True)
    assert (second["first_step"], second["last_step"], second["closed"]) == (40, 69, True)
    assert first["started"] <= first["ended"] <= second["started"] <= second["ended"]
    (gap,) = (event for event in run.events if event.kind == RESUMED)
    assert gap.step == 40
    assert gap.message.startswith("continued after step 39")
    assert gap.data["stopped"] == first["ended"]
    assert gap.data["went_on"] == second["started"]


def test_what_was_trained_again_is_there_once_and_as_it_was_the_second_time(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()

    def log(watch: nethook.Watch) -> None:
        watch.log(mine=watch.step)

    seen = trained(path, model, optimizer, 50, seed=1, after=log)
    seen[30:] = trained(path, model, optimizer, 35, seed=2, after=log, resume=True, step=30)
    run = nethook.open_run(path)
    assert loss_of(run).step.tolist() == list(range(65))
    assert loss_of(run).value.tolist() == seen
    assert run.scalars["mine"].step.tolist() == list(range(1, 66))  # after each step
    (gap,) = (event for event in run.events if event.kind == RESUMED)
    kept = gap.data["kept_step"]  # 29, unless that step shares a window with the next
    assert steps_of(run) == [*range(kept + 1), *range(30, 65)]
    assert gap.message.startswith("continued after step 49")
    assert "; steps 30 to 49 trained again; their earlier record was dropped" in gap.message
    assert gap.data["dropped_events"]["watch-closed"] == 1
    assert run.info["sessions"][1]["trained_again"] == [30, 49]
    assert run.info["totals"]["steps"] == len(steps_of(run))


def test_steps_that_nobody_recorded_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()
    trained(path, model, optimizer, 5, seed=1)
    trained(path, model, optimizer, 5, seed=2, resume=True, step=8)
    run = nethook.open_run(path)
    assert steps_of(run) == [0, 1, 2, 3, 4, 8, 9, 10, 11, 12]
    (gap,) = (event for event in run.events if event.kind == RESUMED)
    assert gap.message.startswith("continued after step 4")
    assert gap.message.endswith("; steps 5 to 7 not recorded")


def test_a_new_run_may_begin_with_the_step_of_a_checkpoint(tmp_path: Path) -> None:
    model, optimizer = made()
    trained(tmp_path / "a.db", model, optimizer, 3, seed=1, resume=True, step=100)
    run = nethook.open_run(tmp_path / "a.db")
    assert steps_of(run) == [100, 101, 102]
    assert run.info["sessions"][0]["first_step"] == 100


def test_what_has_changed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()
    monkeypatch.setattr("sys.argv", ["train.py", "--lr", "0.1"])
    trained(path, model, optimizer, 3, seed=1)
    monkeypatch.setattr("sys.argv", ["train.py", "--lr", "0.2"])
    monkeypatch.setattr("nethook.runs.writing.provenance._versions", lambda: {"torch": "99.0"})
    trained(path, model, optimizer, 3, seed=1, resume=True)
    (gap,) = (e for e in nethook.open_run(path).events if e.kind == RESUMED)
    assert "command changed" in gap.message
    # As it was installed: `torch.__version__` may name the build besides, as in 2.8.0+cu128.
    assert f"versions.torch {version('torch')} → 99.0" in gap.message
    old, new = gap.data["changed"]["command"]
    assert (old[-1], new[-1]) == ("0.1", "0.2")


def test_another_model_is_refused_by_name_and_the_run_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    trained(path, *made(), 3, seed=1)
    before = path.read_bytes()
    with pytest.raises(OtherModelError) as caught:
        nethook.watch(made(17)[0], to=path, resume=True)
    assert str(caught.value) == (
        f"{str(path)!r} is the run of another model, which this one cannot continue: '0.weight' "
        "has shape [17, 12] and had [16, 12]; '0.bias' has shape [17] and had [16]; '2.weight' "
        "has shape [1, 17] and had [1, 16]. Record this model in a file of its own: "
        f"to={str(tmp_path / '{time}.db')!r}."
    )
    model = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 1), nn.Identity())
    with pytest.raises(OtherModelError, match="'1' is GELU and was ReLU; '3' is new"):
        nethook.watch(model, to=path, resume=True)
    with pytest.raises(OtherModelError, match=r"'2' is missing; '2.weight' is missing"):
        nethook.watch(model[:2], to=path, resume=True)
    assert path.read_bytes() == before
    assert nethook.audit(model) == nethook.audit(made()[0])  # no hook stays on it


def test_a_run_that_is_being_written_is_refused(tmp_path: Path) -> None:
    model, optimizer = made()
    with nethook.watch(model, optimizer, to=tmp_path / "a.db") as watch:
        watch.be_silent()
        with pytest.raises(RunInUseError, match="is in use: process"):
            nethook.watch(made()[0], to=tmp_path / "a.db", resume=True)


def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(b"somebody's")
    with pytest.raises(NotARunError):
        nethook.watch(made()[0], to=path, resume=True)
    assert path.read_bytes() == b"somebody's"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"resume": True}, "`to` must name the run that `resume=True` continues"),
        ({"resume": True, "to": "runs/{time}.db"}, "a new file each time"),
        ({"to": "a.db", "step": 5}, "`step` needs `resume=True`; got step=5"),
        ({"to": "a.db", "resume": True, "step": -1}, "`step` must be a number of steps"),
        ({"to": "a.db", "resume": True, "step": True}, "`step` must be a number of steps"),
    ],
)
def test_arguments_that_mean_nothing(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    if options.get("to") == "a.db":
        options = {**options, "to": tmp_path / "a.db"}
    with pytest.raises(OptionError, match=said):
        nethook.watch(made()[0], **options)


def test_the_doctor_finds_nothing_in_a_gap(tmp_path: Path) -> None:
    """Whether all state was kept, the optimizer's was lost, or an older checkpoint was taken."""
    whole, parts = tmp_path / "whole.db", tmp_path / "parts.db"
    trained(whole, *made(), 400, seed=1)
    model, optimizer = made()
    trained(parts, model, optimizer, 150, seed=1)
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    trained(parts, model, optimizer, 50, seed=2, resume=True)
    model.load_state_dict(kept)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)  # its moments are lost
    trained(parts, model, optimizer, 100, seed=3, resume=True)
    assert nethook.diagnose(nethook.open_run(parts)) == []
    model.load_state_dict(kept)
    trained(parts, model, optimizer, 200, seed=4, resume=True, step=150)
    assert nethook.diagnose(nethook.open_run(whole)) == []
    assert nethook.diagnose(nethook.open_run(parts)) == []
    assert not nethook.open_run(parts).findings


def test_equal_rows_are_counted_at_the_start_of_the_run_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()
    nn.init.constant_(model[0].weight, 0.5)
    trained(path, model, optimizer, 6, seed=1)
    nn.init.normal_(model[0].weight)
    trained(path, model, optimizer, 6, seed=2, resume=True)
    (weight,) = (s for s in nethook.open_run(path).sites if s.address == "0.weight")
    assert weight.info["distinct_rows"]["0"] == 1
    assert weight.info["steps"] == 12


def test_figures_and_the_page_mark_the_gap(tmp_path: Path) -> None:
    from nethook.figures.reading import Reading
    from nethook.page.report.links import ReportLinks
    from nethook.page.section import Subject
    from nethook.page.sections.about import subtitle_of
    from nethook.page.sections.loop import curves_spec

    path = tmp_path / "a.db"
    model, optimizer = made()
    trained(path, model, optimizer, 20, seed=1)
    trained(path, model, optimizer, 20, seed=2, resume=True)
    run = nethook.open_run(path)
    for figure in (nethook.figures.overview(run), nethook.figures.heatmap(run)):
        assert [line.x0 for line in figure.layout.shapes if line.type == "line"] == [20]
    (marks,) = (each for each in nethook.figures.overview(run).data if each.yaxis == "y20")
    assert np.asarray(marks.x).tolist() == [20]
    assert "continued after step 19" in marks.text[0]
    assert marks.texttemplate == (" resumed",)
    reading = Reading(run)
    spec = curves_spec(Subject(reading, ReportLinks({}), "a"))
    assert [line["x0"] for line in spec["layout"]["shapes"] if line["type"] == "line"] == [20]
    assert " in 2 sessions · finished" in subtitle_of(Reading(run))


def test_a_half_pair_that_changed_weights_counts(tmp_path: Path) -> None:
    """Of two optimizers that step in turns, the second has not come to its step."""
    model, first = made()
    other, second = made()
    with nethook.watch({"a": model, "b": other}, [first, second], to=tmp_path / "a.db") as watch:
        watch.be_silent()
        for turn in range(11):
            for each, optimizer in ((model, first), (other, second))[: 1 if turn == 10 else 2]:
                optimizer.zero_grad()
                nn.functional.mse_loss(each(torch.randn(8, 12)), torch.randn(8, 1)).backward()
                optimizer.step()
    with nethook.open_run(tmp_path / "a.db") as run:
        assert run.info["totals"]["steps"] == 11
        assert run.info["totals"]["optimizer_steps"] == {"0": 11, "1": 10}
        assert "unfinished_step" not in run.info


@pytest.mark.parametrize("budget", [None, 1e-9])  # windows of one step, and long ones
def test_a_step_that_was_cut_off_does_not_count_and_is_done_again(
    tmp_path: Path, budget: float | None
) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()

    def backward() -> None:
        nn.functional.mse_loss(model(torch.randn(8, 12)), torch.randn(8, 1)).backward()

    for session in range(3):
        with nethook.watch(model, optimizer, to=path, resume=True, budget=budget) as watch:
            watch.be_silent()
            assert watch.step == 40 * session
            for _ in range(40):
                optimizer.zero_grad()
                backward()
                backward()
                optimizer.step()
            optimizer.zero_grad()
            backward()  # of two: the loop ends here, as by Ctrl-C
        run = nethook.open_run(path)
        done = 40 * (session + 1)
        assert run.info["totals"]["steps"] == done
        assert run.info["totals"]["optimizer_steps"] == {"0": done}
        assert run.info["sessions"][-1]["last_step"] == done - 1
        assert run.info["unfinished_step"] == done
        assert loss_of(run).step.tolist() == list(range(done + 1))  # what it had is kept
        assert steps_of(run) == list(range(done + 1))
        assert run.info["clock"] is None if session else "clock" not in run.info
    gaps = [event for event in run.events if event.kind == RESUMED]
    assert [event.step for event in gaps] == [40, 80]
    assert all("dropped" not in event.message for event in gaps)


def test_a_run_that_first_ended_before_its_first_step_counts_steps_afterwards(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()
    with nethook.watch(model, optimizer, to=path) as watch:
        watch.be_silent()
        model(torch.randn(8, 12)).sum().backward()
    assert nethook.open_run(path).info["clock"] == "backward"
    trained(path, model, optimizer, 3, seed=1, resume=True)
    assert nethook.open_run(path).info["clock"] is None  # the optimizer's steps


def test_totals_go_to_the_file_with_the_windows(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    found = {}

    def look(watch: nethook.Watch) -> None:
        if watch.step == 40:  # as a kill would leave it
            watch._session.journal.writer.flush()
            found.update(nethook.open_run(path).info["totals"])

    trained(path, *made(), 45, seed=1, after=look)
    # The window is written before the step has been counted as ended.
    assert found["forwards"] >= 39
    assert found["backwards"] >= 39
    assert found["optimizer_steps"]["0"] >= 39


def test_starting_over_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.db"
    model, optimizer = made()
    trained(path, model, optimizer, 5, seed=1, resume=True, step=0)
    trained(path, model, optimizer, 5, seed=1, resume=True, step=3)
    assert capsys.readouterr().err == ""
    trained(path, model, optimizer, 5, seed=1, resume=True, step=0)
    said = f"nethook: step=0 starts {path} over: what it had of steps 0 to 7 was dropped\n"
    assert capsys.readouterr().err == said


def test_killed_20_times_in_a_row(tmp_path: Path) -> None:
    path = killed_in_a_row(5, tmp_path, 20, checkpoints=False)
    assert len(nethook.open_run(path).info["sessions"]) > 5
