"""The first NaN of a run: told apart, pinned, saved, and never where there is none."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.watching.flight import Flight
from nethook.watching.flight_file import flight_path, load
from tests.watching import flight_cases as cases

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
    [(kind, message, address, data)] = cases.Loop(make(), tmp_path / "run.db").run()
    assert kind == "non-finite"
    assert (data["case"], address, data["step"]) == (case, site, step), message
    assert message.startswith(f"step {step}: ")


@pytest.mark.parametrize("make", SILENT)
def test_what_only_looks_like_it_is_silent(make, tmp_path):
    loop = cases.Loop(make(), tmp_path / "run.db")
    assert loop.run() == []
    assert not flight_path(tmp_path / "run.db").exists()
    assert all(each.isfinite().all() for each in loop.case.model.parameters())


@pytest.mark.parametrize("make", [make for make, *_ in FOUND] + SILENT)
def test_training_goes_on_as_without(make, tmp_path):
    def train(watched):
        torch.manual_seed(3)
        case = make()
        if watched:
            cases.Loop(case, tmp_path / "run.db").run()
            return case.model.state_dict(), torch.get_rng_state()
        optimizer = case.optimizer(case.model.parameters())
        for x, y in case.batches:
            optimizer.zero_grad()
            loss = case.loss(case.model(*(x if isinstance(x, tuple) else (x,))), y)
            if case.scaler is None:
                loss.backward()
                optimizer.step()
            else:
                case.scaler.scale(loss).backward()
                case.scaler.step(optimizer)
                case.scaler.update()
        return case.model.state_dict(), torch.get_rng_state()

    (seen, seen_random), (unseen, unseen_random) = train(True), train(False)
    assert torch.equal(seen_random, unseen_random)
    for name, tensor in seen.items():
        assert torch.equal(tensor, unseen[name]) or torch.allclose(
            tensor, unseen[name], rtol=0, atol=0, equal_nan=True
        )


def test_the_batch_and_the_weights_before_the_step_are_saved(tmp_path):
    case = cases.log_of_zero()
    loop = cases.Loop(case, tmp_path / "run.db")
    [(_, message, _, data)] = loop.run()
    assert data["file"] == "run.flight.safetensors"
    assert data["weights"] is True
    assert "nethook.replay('run.flight.safetensors', model)" in message
    saved = load(tmp_path / "run.db")
    assert torch.equal(saved.args[0], case.batches[2][0])
    assert saved.finding["step"] == 2
    assert all(tensor.isfinite().all() for tensor in saved.weights.values())
    assert saved.weights.keys() == dict(case.model.named_parameters()).keys()
    assert torch.equal(saved.loss["target"], case.batches[2][1])


def test_reasons_at_the_time(tmp_path):
    def data(make):
        return cases.Loop(make(), tmp_path / "run.db").run()[0][3]

    assert "overflow of float16" in data(cases.half_overflow)["reason"]
    assert "overflow of float32" in data(cases.exploding_rnn)["reason"]
    assert "log of 0" in data(cases.log_in_loss)["reason"]
    assert data(cases.log_in_loss)["operation"] == "Log"
    assert data(cases.log_of_zero)["before"] == "fc2"


def test_without_batches_it_is_pinned_and_nothing_is_held(tmp_path):
    loop = cases.Loop(cases.log_of_zero(), tmp_path / "run.db", batches=0)
    [(_, message, _, data)] = loop.run()
    assert (data["case"], data["file"]) == ("forward", None)
    assert "batches=0" in message
    assert list(tmp_path.iterdir()) == []


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


def test_it_is_told_once(tmp_path):
    case = cases.nan_in_data()
    case.batches = case.batches * 3
    assert len(cases.Loop(case, tmp_path / "run.db").run()) == 1


def test_a_forward_that_no_scale_can_help_is_told_after_some_steps(tmp_path):
    case = cases.log_of_zero()
    case.batches = case.batches[2:3] * 5
    case.scaler = torch.amp.GradScaler("cpu")
    [(_, _, _, data)] = cases.Loop(case, tmp_path / "run.db").run()
    assert (data["case"], data["step"]) == ("forward", 2)


def test_a_mask_does_not_hide_what_comes_later(tmp_path):
    case = cases.infinite_mask()
    case.batches[2][0][0, 0, 0] = float("nan")
    [(_, _, address, data)] = cases.Loop(case, tmp_path / "run.db").run()
    assert (data["case"], address, data["step"]) == ("data", "q", 2)


def test_nothing_is_held_after_the_end(tmp_path):
    loop = cases.Loop(cases.infinite_mask(), tmp_path / "run.db")
    loop.run()
    assert loop.flight._ring.calls == []
    assert loop.flight._signs == []


def test_the_ring_is_bounded(tmp_path):
    loop = cases.Loop(cases.infinite_mask(), tmp_path / "run.db", batches=2)
    flight = Flight(loop, 2)
    module = nn.Linear(1, 1)
    for loop.step in range(5):
        for _ in range(3):
            flight.forward_begins("", module, (torch.ones(1),), {})
    assert [call.step for call in flight._ring.calls] == [3, 3, 3, 4, 4, 4]
