"""`nethook.watch` as a user meets it: options, names, closing, several models, what it prints."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import re
import sys
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import nethook
from nethook.errors import InputsError, NoSuchSiteError, OptionError
from nethook.text.watch_cost import watch_cost
from nethook.watching import budget
from nethook.watching.diagnosis import Diagnosis
from nethook.watching.fail_open import WatchWarning
from tests.watching.loops import Net, batches, gan, mlp
from tests.watching.patient import patient  # noqa: F401 - used by every test


def steps(model, optimizer, count=3, shape=()):
    for x, y in batches(count, *shape):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


@pytest.fixture
def made():
    model = mlp()
    return model, torch.optim.SGD(model.parameters(), 0.1)


def test_where_it_goes_without_a_path(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with nethook.watch(*made) as watch:
        steps(*made)
    assert watch.path.parent == tmp_path / "runs"
    assert watch.path.suffix == ".db"
    assert nethook.open_run(watch.path).info["totals"]["steps"] == 3


def test_no_secret_of_the_command_or_of_an_optimizer_is_kept(made, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["train.py", "--lr", "0.1", "--password", "hunter2"])
    model, _ = made
    settings = {"api_key": "hunter2", "note": "it is hunter2 here", "name": "all", "scale": (1, 2)}
    optimizer = torch.optim.SGD([{"params": model.parameters(), **settings}], 0.1)
    for name, shown in (("a.db", "***"), ("b.db", "hunter2")):
        with nethook.watch(model, optimizer, tmp_path / name, keep_args=shown != "***"):
            steps(model, optimizer)
        run = nethook.open_run(tmp_path / name)
        assert run.info["command"][1:] == ["train.py", "--lr", "0.1", "--password", shown]
        (group,) = next(event for event in run.events if event.kind == "groups").data["groups"]
        assert (group["api_key"], group["note"]) == ("***", "***")
        assert (group["name"], group["scale"], group["momentum"]) == ("all", [1, 2], 0)
    assert b"hunter2" not in (tmp_path / "a.db").read_bytes()


def test_it_says_what_it_is_and_what_it_cost(made, tmp_path, capsys):
    watch = nethook.watch(*made, to=tmp_path / "run.db")
    steps(*made)
    assert repr(watch).startswith(f"<Watch {str(tmp_path / 'run.db')!r}: on, step 3, overhead ")
    assert watch.overhead > 0
    watch.close()
    watch.close()
    said = capsys.readouterr().err
    assert said.count("nethook: 3 steps of ") == 1
    assert re.search(r"; watching cost (.* % per step and )?(less than )?[\d.]+ s in all", said)
    assert ": closed, step 3" in repr(watch)
    with pytest.raises(OptionError, match="was closed"):
        watch.log(x=1)


def test_a_notebook_is_told_among_the_outputs_of_its_cell(made, tmp_path, monkeypatch):
    class Stream(io.StringIO):
        pass

    Stream.__module__ = "ipykernel.iostream"  # where a kernel's streams come from
    out, err = Stream(), Stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with nethook.watch(*made, to=tmp_path / "run.db"):
        steps(*made)
    assert out.getvalue().startswith("nethook: 3 steps of ")
    assert err.getvalue() == ""


def test_start_up_opening_steady_and_closing_are_told_apart(made, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(budget, "ALLOWANCE", 0.0)  # the opening ends at the first look
    path = tmp_path / "run.db"
    with nethook.watch(*made, to=path) as watch:
        started = watch.cost
        assert started["start_up_seconds"] > 0
        assert (started["closing_seconds"], started["steady_overhead"]) == (0, None)
        steps(*made, 8)
        opening = watch.cost["opening_seconds"]
        assert opening >= watch.cost["steady_seconds"] >= 0
        steps(*made, 20)
        time.sleep(0.2)  # on a busy machine, training could seem to have taken no time of its own
        steps(*made, 1)
    cost = watch.cost
    assert cost["opening_seconds"] == opening
    parts = ("start_up", "opening", "steady", "closing")
    assert cost["total_seconds"] == pytest.approx(sum(cost[f"{part}_seconds"] for part in parts))
    assert all(cost[f"{part}_seconds"] > 0 for part in parts)
    assert cost["steady_overhead"] > 0
    said = watch_cost({"cost": cost})
    assert f"; watching cost {said}" in capsys.readouterr().err
    assert said.endswith(" s in all")
    assert " % per step" not in said  # of a run this short nothing is known of later steps
    with nethook.open_run(path) as run:
        (closed,) = (event for event in run.events if event.kind == "watch-closed")
        assert run.info["cost"] == closed.data == cost
        assert run.info["overhead"] == cost["overhead"] == watch.overhead
        assert said in closed.message


def test_what_comes_before_the_first_call_is_not_training(made, tmp_path):
    with nethook.watch(*made, to=tmp_path / "run.db") as watch:
        began = time.perf_counter()
        time.sleep(0.2)  # data is loaded
        steps(*made)
        assert watch.cost["seconds"] <= time.perf_counter() - began - 0.2


def test_an_interrupt_at_the_end_loses_no_cost(made, tmp_path, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Diagnosis, "close", interrupted)
    watch = nethook.watch(*made, to=tmp_path / "run.db")
    steps(*made)
    with pytest.raises(KeyboardInterrupt):
        watch.close()
    with nethook.open_run(tmp_path / "run.db") as run:
        assert [event.kind for event in run.events].count("watch-closed") == 1
        assert run.info["cost"]["closing_seconds"] > 0


def test_a_model_that_is_watched_already_is_watched_anew(made, tmp_path, capsys):
    first = nethook.watch(*made, to=tmp_path / "a.db")
    steps(*made, 2)
    second = nethook.watch(*made, to=tmp_path / "b.db")
    assert first.closed
    assert f"the earlier watch of this model ended ({first.path})" in capsys.readouterr().err
    steps(*made, 3)
    second.close()
    assert nethook.open_run(tmp_path / "a.db").info["totals"]["steps"] == 2
    assert nethook.open_run(tmp_path / "b.db").info["totals"]["steps"] == 3


def test_nothing_is_left_behind(made, tmp_path):
    model, optimizer = made
    before = nethook.audit(model)
    backward, zero_grad = torch.autograd.backward, torch.optim.Optimizer.zero_grad
    with pytest.raises(ZeroDivisionError), nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        assert {info.kind for info in nethook.audit(model).ours} >= {"forward", "function"}
        steps(model, optimizer, 1)
        raise ZeroDivisionError
    assert nethook.audit(model) == before
    assert torch.autograd.backward is backward
    assert torch.optim.Optimizer.zero_grad is zero_grad
    assert torch._C._len_torch_function_stack() == 0


def test_a_closed_watch_keeps_no_model(tmp_path):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    watch = nethook.watch(model, optimizer, to=tmp_path / "run.db")
    steps(model, optimizer)
    watch.close()
    gone = weakref.ref(model)
    del model, optimizer, watch
    gc.collect()
    assert gone() is None


def test_copies_and_pickles_carry_nothing(made, tmp_path):
    model, optimizer = made
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        twin = copy.deepcopy(model)
        loaded = pickle.loads(pickle.dumps(model))
        for each in (twin, loaded):
            each(torch.randn(2, 10))
        steps(model, optimizer)
    run = nethook.open_run(tmp_path / "run.db")
    assert {site.address: site for site in run.sites}["0"].info["calls"]["train"] == 3


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"quantities": ("outputs", "weights")},
            OptionError,
            "`quantities` must be .*; got 'weights'",
        ),
        (
            {"phases": ("test",)},
            OptionError,
            "`phases` must be some of train, eval, aux; got 'test'",
        ),
        ({"budget": 0}, OptionError, r"`budget` must be a fraction .*, or None; got 0\. 0\.03 is"),
        ({"batches": -1}, OptionError, "`batches` must be at least 0; got -1"),
        ({"include": "conv*"}, NoSuchSiteError, "conv"),
        ({"snapshots": {"9": 2}}, NoSuchSiteError, "9"),
        (
            {"snapshots": {"0": 0}},
            OptionError,
            r"got 0 for '0'\..*snapshots=\{'conv1': 8\}",
        ),
        (
            {"optimizer": "sgd"},
            InputsError,
            "must be a torch.optim.Optimizer, .*; got str",
        ),
        (
            {"model": 3},
            InputsError,
            "`model` must be an nn.Module, .*; got int",
        ),
        (
            {"model": [nn.Linear(1, 1), 3]},
            InputsError,
            "must contain only .*; got int as '1'",
        ),
        (
            {"model": {"a.b": nn.Linear(1, 1)}},
            OptionError,
            "names without dots.*got 'a.b'",
        ),
        ({"model": {}}, OptionError, "must contain at least one nn.Module; got none"),
    ],
)
def test_arguments_that_mean_nothing(options, error, text, tmp_path):
    given = {"model": mlp(), "optimizer": None, "to": tmp_path / "run.db"} | options
    before = torch.autograd.backward
    with pytest.raises(error, match=text):
        nethook.watch(**given)
    assert torch.autograd.backward is before


def test_layers_and_quantities_can_be_chosen(tmp_path):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(
        model, optimizer, to=tmp_path / "run.db", include=["conv", "fc"],
        quantities=("outputs", "param_grads"), budget=None,
    ):  # fmt: skip
        steps(model, optimizer, 2, (8, 1, 6, 6))
    found = {
        (each.address, each.quantity) for each in nethook.open_run(tmp_path / "run.db").catalogue
    }
    sites = {each for each in found if not each[0].startswith("@")}
    assert {each for each, q in sites if q == "outputs"} == {"conv", "fc", ""}
    assert not {q for _, q in sites} & {"grads", "params", "updates"}
    assert ("conv.weight", "param_grads") in sites


def test_several_models_in_one_run(tmp_path):
    def start(model, optimizer):
        return nethook.watch(model, optimizer, to=tmp_path / "run.db", phases=("train", "aux"))

    gan(start, 6)
    run = nethook.open_run(tmp_path / "run.db")
    assert run.info["totals"]["steps"] == 6
    assert run.info["totals"]["optimizer_steps"] == {"0": 6, "1": 6}
    assert {"G.0", "D.0", "G.0.weight", "D.2.bias"} <= {site.address for site in run.sites}
    assert len(run.info["losses"]) == 2
    assert run.series("D.0", "outputs")["tensors"].tolist() == [3] * 6
    assert len(run.series("G.0", "outputs", phase="aux")) == 6
    with pytest.raises(NoSuchSiteError):
        run.series("0", "outputs")


def test_optimizers_are_found(tmp_path):
    model = mlp()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    other = torch.optim.Adam(nn.Linear(2, 2).parameters(), 0.01)
    with nethook.watch(model, to=tmp_path / "run.db"):
        steps(model, optimizer)
        other.step()
    run = nethook.open_run(tmp_path / "run.db")
    assert run.info["optimizers"] == {"0": "Adam"}
    assert run.info["totals"]["steps"] == 3


def test_another_model_is_none_of_its_business(made, tmp_path):
    model, optimizer = made
    other = mlp()
    for_other = torch.optim.SGD(other.parameters(), 0.1)
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        for _ in range(3):
            steps(model, optimizer, 1)
            steps(other, for_other, 2)
    run = nethook.open_run(tmp_path / "run.db")
    assert run.info["totals"]["steps"] == run.info["totals"]["backwards"] == 3


def test_scalars_of_the_user(made, tmp_path):
    with nethook.watch(*made, to=tmp_path / "run.db") as watch:
        steps(*made, 2)
        watch.log(accuracy=torch.tensor(0.5), epoch=1)
        steps(*made, 1)
        watch.log(accuracy=np.float32(0.75))
        with pytest.raises(InputsError, match="`name` must be a number; got str"):
            watch.log(name="best")
    found = nethook.open_run(tmp_path / "run.db").scalars
    assert found["accuracy"].step.tolist() == [2, 3]
    assert found["accuracy"].value.tolist() == [0.5, 0.75]
    assert found["epoch"].value.tolist() == [1.0]


def test_snapshots_are_the_outputs_of_the_first_samples(tmp_path):
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    kept = []
    model[1].register_forward_hook(lambda m, a, o: kept.append(o.detach().clone()))
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", snapshots={"1": 3, "2": 2}):
        steps(model, optimizer, 10)
    run = nethook.open_run(tmp_path / "run.db")
    assert [each.step for each in run.snapshots["1"]] == [0, 1, 2, 3, 4, 6, 8]
    for each in run.snapshots["1"]:
        assert np.array_equal(each.values, kept[each.step][:3].numpy())
    assert run.snapshots["2"][0].values.shape == (2, 5)
    assert set(run.snapshots) == {"1", "2"}


def test_a_run_without_gradients_is_an_evaluation(made, tmp_path):
    model, _ = made
    model.eval()
    with nethook.watch(model, to=tmp_path / "run.db"), torch.no_grad():
        for x, _ in batches(4):
            model(x)
    run = nethook.open_run(tmp_path / "run.db")
    assert run.series("0", "outputs", phase="eval")["tensors"].tolist() == [4]
    assert run.info["totals"]["evaluations"] == 1


def test_memory_is_bounded_and_stated(made, tmp_path):
    with nethook.watch(*made, to=tmp_path / "run.db", budget=None) as watch:
        steps(*made, 3)
        session = watch._session
        catalogue = session.journal.catalogue
        before = (catalogue.capacity, len(catalogue.keys))
        steps(*made, 40)
        assert (catalogue.capacity, len(catalogue.keys)) == before
        assert len(session.recorders.numbers.pending) == 0
        assert session.recorders.loss_values.heard == []
    memory = nethook.open_run(tmp_path / "run.db").info["memory"]
    weights = sum(p.nbytes for p in made[0].parameters())
    assert weights <= memory["snapshot"] <= weights + 64 * 4
    assert memory["snapshot_cap"] == 256 << 20
    assert memory["rows"] / memory["series"] < 64 << 10


def test_above_the_cap_parameters_take_turns(made, tmp_path, capsys):
    model, optimizer = made
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None) as watch:
        watch._session.journal.options.snapshot_cap = (
            400  # one weight matrix of 320 bytes and a bias, or the other
        )
        steps(model, optimizer, 6)
    run = nethook.open_run(tmp_path / "run.db")
    assert "each update once in 2 of these (0 MB of weights kept" in capsys.readouterr().err
    assert run.info["memory"]["snapshot"] <= 400
    seen = run.series("2.weight", "updates").seen.sum(), run.series("0.bias", "updates").seen.sum()
    assert all(0 < each < 6 for each in seen)
    assert ("0.weight", "updates") not in {(e.address, e.quantity) for e in run.catalogue}


def test_a_parameter_that_moves_to_other_memory_is_followed(made, tmp_path):
    model, optimizer = made
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", budget=None):
        steps(model, optimizer, 2)
        model.double()
        for x, y in batches(2):
            optimizer.zero_grad()
            F.cross_entropy(model(x.double()), y).backward()
            optimizer.step()
    run = nethook.open_run(tmp_path / "run.db")
    assert not [event for event in run.events if event.kind == "watch-failed"]
    assert run.series("0.weight", "params").last_step[-1] == 3


@pytest.fixture
def thin(monkeypatch):
    """A budget that is overdrawn from the start: nearly nothing is measured, and taps rest."""
    from nethook.watching import budget

    monkeypatch.setattr(budget, "ALLOWANCE", -1e3)
    monkeypatch.setattr(budget, "WHOLE", -1e3)
    return {"budget": 0.001}


def test_the_hooks_on_all_optimizers_are_audited(made, tmp_path):
    model, optimizer = made
    with nethook.watch(model, optimizer, to=tmp_path / "run.db"):
        kinds = {info.kind for info in nethook.audit(model).ours}
        assert {"global_optimizer_step_pre", "global_optimizer_step"} <= kinds
    assert not nethook.audit(model).ours


def test_taps_that_rest_are_off_and_come_back_where_they_were(made, tmp_path, thin):
    model, optimizer = made
    seen = []
    before = model[0].register_forward_hook(lambda *_: seen.append("before"))
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", **thin) as watch:
        after = model[0].register_forward_hook(lambda *_: seen.append("after"))
        order = [type(each).__name__ for each in model[0]._forward_hooks.values()]
        assert order == ["function", "OutputTap", "function"]
        steps(model, optimizer, 20)
        assert not watch._session.schedule.resting.awake
        assert len(model[0]._forward_hooks) == 2
        watch._session.schedule.resting.wake()
        assert [type(each).__name__ for each in model[0]._forward_hooks.values()] == order
        watch._session.schedule.resting.rest()
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(torch.randn(4, 10)), torch.zeros(4, dtype=torch.int64))
        model.train()
        steps(model, optimizer, 2)
    assert [each for each in seen if each == "after"] == ["after"] * len(seen[::2])
    before.remove()
    after.remove()
    assert not any(module._forward_hooks for module in model.modules())
    run = nethook.open_run(tmp_path / "run.db")
    assert len(run.series("0", "outputs", phase="eval")) == 1  # evaluations are measured whole
    assert run.series("@loop", "forwards").steps.sum() == 22


def test_a_model_that_is_called_by_its_parts_keeps_its_taps(made, tmp_path, thin):
    model, optimizer = made
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", **thin) as watch:
        for x, y in batches(20):
            optimizer.zero_grad()
            F.cross_entropy(model[2](model[1](model[0](x))), y).backward()
            optimizer.step()
        assert watch._session.schedule.resting.awake
    run = nethook.open_run(tmp_path / "run.db")
    assert run.series("@loop", "backwards")["mean"].tolist() == [1.0] * len(
        run.series("@loop", "backwards")
    )


def test_a_gradient_that_is_not_finite_is_seen_in_a_step_without_measurements(
    made, tmp_path, thin, capsys
):
    model, optimizer = made
    with nethook.watch(model, optimizer, to=tmp_path / "run.db", **thin) as watch:
        steps(model, optimizer, 20)
        session = watch._session
        while session.schedule.looks:
            steps(model, optimizer, 1)
        x, y = batches(1)[0]
        optimizer.zero_grad()
        hidden = model[0](x)
        loss = F.cross_entropy(model(x), y) + 0.0 * (hidden - hidden).sqrt().sum()
        loss.backward()  # the loss is finite, the root's slope at 0 is not
        step = session.clock.step
        optimizer.step()
    run = nethook.open_run(tmp_path / "run.db")
    (event,) = [event for event in run.events if event.kind == "non-finite"]
    assert event.step == step
    assert event.data["case"] == "backward"
    assert event.data["weights"] is True  # they were saved before the step spoilt them
    assert "nethook.replay" in capsys.readouterr().err


def test_an_optimizer_of_another_model_is_said(tmp_path: Path) -> None:
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    strange = torch.optim.SGD(other.parameters(), 0.1)
    with pytest.warns(WatchWarning, match="this SGD holds none of them") as said:
        nethook.watch(model, strange, to=tmp_path / "strange.db").close()
    assert said[0].filename == __file__
    # A frozen network may be followed on the steps of what is trained on top of it.
    model.requires_grad_(False)
    nethook.watch(model, strange, to=tmp_path / "frozen.db").close()
