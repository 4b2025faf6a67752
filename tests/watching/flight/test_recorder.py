"""The first NaN of a run: told apart, pinned, saved, and never where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.stats.transfers import Transfers
from nethook.watching.flight.file import flight_path, load
from nethook.watching.flight.flag import Flag
from nethook.watching.flight.recorder import Flight
from tests.stats.late_device import Elsewhere, Event, device
from tests.watching import flight_cases as cases
from tests.watching.flight_runs import train, watched

__all__ = ["device"]  # a fixture

FOUND = [
    (cases.log_of_zero, "forward", "", 2),
    (cases.empty_mask, "forward", "", 2),
    (cases.half_overflow, "forward", "1", 2),
    (cases.root_at_zero, "backward", "fc1", 2),
    (cases.exploding_rnn, "forward", "rnn", 2),
    (cases.nan_in_data, "data", "0", 2),
    (cases.nan_in_targets, "data", "", 2),
    (cases.log_in_loss, "loss", "", 1),
    (cases.adam_without_eps, "optimizer", "0.weight", 0),
    (cases.nan_in_parameters, "parameters", "1", 0),
]
SILENT = [
    cases.scaler_finds_its_scale,
    cases.infinite_mask,
    cases.lowest_mask,
    cases.padding_of_nan,
]


@pytest.mark.parametrize(("make", "case", "site", "step"), FOUND)
def test_the_case_the_site_and_the_step(make, case, site, step, tmp_path):
    [event] = watched(make(), tmp_path / "run.db", budget=None)
    assert event.kind == "non-finite", event.message
    assert (event.data["case"], event.address, event.data["step"]) == (case, site, step)
    assert event.message.startswith(f"step {step}: ")


@pytest.mark.parametrize("make", SILENT)
def test_what_only_looks_like_it_is_silent(make, tmp_path):
    case = make()
    assert watched(case, tmp_path / "run.db", budget=None) == []
    assert not flight_path(tmp_path / "run.db").exists()
    assert all(each.isfinite().all() for each in case.model.parameters())


@pytest.mark.parametrize("make", [make for make, *_ in FOUND] + SILENT)
def test_training_goes_on_as_without(make, tmp_path):
    states = []
    for run in (lambda case: watched(case, tmp_path / "run.db"), train):
        torch.manual_seed(3)
        case = make()
        run(case)
        states.append((case.model.state_dict(), torch.get_rng_state()))
    (seen, seen_random), (unseen, unseen_random) = states
    assert torch.equal(seen_random, unseen_random)
    for name, tensor in seen.items():
        assert torch.equal(tensor.nan_to_num(nan=1e9), unseen[name].nan_to_num(nan=1e9)), name


def test_the_batch_and_the_weights_before_the_step_are_saved(tmp_path, capsys):
    case = cases.log_of_zero()
    [event] = watched(case, tmp_path / "run.db")
    assert event.data["file"] == "run.flight.safetensors"
    assert event.data["weights"] is True
    assert f"nethook.replay({str(tmp_path / 'run.db')!r}, model)" in event.message
    assert f"nethook: {event.message}" in capsys.readouterr().err
    saved = load(tmp_path / "run.db")
    assert torch.equal(saved.args[0], case.batches[2][0])
    assert saved.finding["step"] == 2
    assert all(tensor.isfinite().all() for tensor in saved.weights.values())
    assert saved.weights.keys() == dict(case.model.named_parameters()).keys()
    assert torch.equal(saved.loss["target"], case.batches[2][1])


def test_reasons_at_the_time(tmp_path):
    def data(make):
        return watched(make(), tmp_path / f"{make.__name__}.db")[0].data

    assert "overflow of float16" in data(cases.half_overflow)["reason"]
    assert "overflow of float32" in data(cases.exploding_rnn)["reason"]
    found = data(cases.log_in_loss)
    assert (found["operation"], "log of 0" in found["reason"]) == ("Log", True)
    assert data(cases.log_of_zero)["before"] == "fc2"


def test_without_batches_it_is_pinned_and_nothing_is_held(tmp_path):
    [event] = watched(cases.log_of_zero(), tmp_path / "run.db", batches=0)
    assert (event.data["case"], event.data["file"]) == ("forward", None)
    assert "batches=0" in event.message
    assert [path.name for path in tmp_path.iterdir()] == ["run.db"]


def test_a_batch_that_was_written_since_is_not_saved(tmp_path):
    case = cases.log_of_zero()
    loop = cases.Loop(case, tmp_path / "run.db")
    write = case.batches[2][0].mul_
    step = loop._step
    loop._step = lambda optimizer: (write(1.0), step(optimizer))[1]
    [(_, message, _, data)] = loop.run()
    assert data["file"] is None
    assert "The batch was not saved: the batch was written in place since." in message


def test_a_full_disk_is_said(tmp_path):
    loop = cases.Loop(cases.log_of_zero(), tmp_path / "gone" / "run.db")
    [(_, message, _, data)] = loop.run()
    assert data["file"] is None
    assert "The batch was not saved" in message


def test_sites_that_were_not_looked_at_are_not_called_finite(tmp_path):
    loop = cases.Loop(cases.log_of_zero(), tmp_path / "run.db")
    loop.schedule.outputs = False
    loop._attach = list
    [(_, message, address, data)] = loop.run()
    assert (data["case"], address) == ("forward", "")
    assert "its sites were not looked at in this step" in message


def test_it_is_told_once(tmp_path):
    case = cases.nan_in_data()
    case.batches = case.batches * 3
    assert len(watched(case, tmp_path / "run.db")) == 1


def test_a_forward_that_no_scale_can_help_is_told_after_some_steps(tmp_path):
    case = cases.log_of_zero()
    case.batches = case.batches[2:3] * 5
    case.scaler = torch.amp.GradScaler("cpu")
    [event] = watched(case, tmp_path / "run.db", budget=None)
    assert (event.data["case"], event.data["step"]) == ("forward", 2)


def test_a_mask_does_not_hide_what_comes_later(tmp_path):
    case = cases.infinite_mask()
    case.batches[2][0][0, 0, 0] = float("nan")
    [event] = watched(case, tmp_path / "run.db", budget=None)
    assert (event.data["case"], event.address, event.data["step"]) == ("data", "q", 2)


def test_nothing_is_held_after_the_end(tmp_path):
    loop = cases.Loop(cases.infinite_mask(), tmp_path / "run.db")
    loop.run()
    assert loop.flight.held.calls == []
    assert loop.flight.signs == []


def test_the_ring_is_bounded(tmp_path):
    loop = cases.Loop(cases.infinite_mask(), tmp_path / "run.db", batches=2)
    flight = Flight(loop, 2)
    module = nn.Linear(1, 1)
    for loop.step in range(5):
        for _ in range(3):
            flight.held.begins("", module, (torch.ones(1),), {})
    assert [call.step for call in flight.held.calls] == [3, 3, 3, 4, 4, 4]


# -- devices: what is known there comes later, and alone -------------------------------------------


def test_flags_that_come_later_have_no_tensors(tmp_path):
    loop = cases.Loop(cases.infinite_mask(), tmp_path / "run.db")
    flight = loop.flight
    module = nn.Linear(4, 2)
    for loop.step in range(4):
        flight.held.begins("", module, (torch.ones(1, 4),), {})
        if loop.step == 3:
            for address, quantity in (("fc1", "outputs"), ("fc1.weight", "param_grads")):
                flight.non_finite(Flag(address, quantity, 1, "train"))
        flight.step_ended(loop.step, False)
    [(_, message, address, data)] = loop.events
    assert (data["case"], address, data["step"]) == ("forward", "fc1", 1)
    assert message.startswith("step 1: the output of 'fc1' is not finite")


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize(
    ("value", "told"), [(float("nan"), True), (float("inf"), True), (1.0, False)]
)
def test_a_loss_on_a_device_is_not_waited_for(value, told, tmp_path, monkeypatch):
    put = Transfers.put  # what is computed from a tensor elsewhere is elsewhere too
    monkeypatch.setattr(Transfers, "put", lambda self, x, f: put(self, x.as_subclass(Elsewhere), f))
    loop = cases.Loop(cases.infinite_mask(), tmp_path / "run.db")
    flight = loop.flight
    module = nn.Linear(4, 2)
    for loop.step in range(4):
        flight.held.begins("", module, (torch.ones(1, 4),), {})
        root = torch.tensor(value if loop.step == 1 else 0.5, requires_grad=True) * 1
        flight.backward_begins([root.as_subclass(Elsewhere)])
        Event.arrived = loop.step >= 3  # two steps later
        flight.step_ended(loop.step, False)
        assert bool(loop.events) is (told and loop.step == 3)
    if told:
        [(_, message, _, data)] = loop.events
        assert (data["case"], data["step"], data["weights"]) == ("loss", 1, False)
        assert "a replay names what made it" in message
    assert Event.waited == 0
