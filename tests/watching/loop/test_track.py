"""One optimizer: whether its step moved weights, its rates and settings, its closure."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.process.origins import note_origins
from nethook.watching.loop.track import Track, is_there, settings_of
from nethook.watching.measuring.loop_numbers import Pending
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.parameters import ParameterSet
from tests.watching.fakes import at, journal, schedule


def tracked(optimizer: type = torch.optim.SGD, **options):
    model = nn.Linear(3, 2)
    optimizer = optimizer(model.parameters(), **options)
    track = Track("0", optimizer)
    facts = [ParameterFacts(name, tensor) for name, tensor in model.named_parameters()]
    track.set = ParameterSet(of := journal(), of, facts)
    return model, optimizer, track


def test_a_step_that_raised_counts_if_weights_have_changed():
    model, optimizer, track = tracked(lr=0.1)
    assert not track.moved()  # nothing was noted
    track.note_weights()
    assert not track.moved()
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert track.moved()


def test_weights_written_by_way_of_data_are_noticed():
    model, _, track = tracked(lr=0.1)
    track.note_weights()
    model.weight.data.add_(1.0)  # raises no version
    assert track.moved()


def test_where_versions_tell_no_weights_are_copied():
    model, optimizer, track = tracked(lr=0.1)
    track.note_weights()
    assert track.before[1]
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    track.note_versions()
    track.note_weights()
    assert track.marks
    assert track.before[1] == []


def test_rates_are_points_when_they_change():
    _, optimizer, track = tracked(lr=0.1)
    of = journal(schedule=schedule(samples=False))
    for step, rate in enumerate((0.1, 0.1, 0.05)):
        at(of, step)
        optimizer.param_groups[0]["lr"] = rate
        track.note_rates(of, Pending(of), optimizer)
    assert [(value, step) for _, value, step in of.writer.points] == [(0.1, 0), (0.05, 2)]


def test_settings_are_told_once_and_when_they_change():
    _, optimizer, track = tracked(torch.optim.Adam, lr=0.1, betas=(0.8, 0.9))
    of = journal()
    track.note_rates(of, Pending(of), optimizer)
    track.note_rates(of, Pending(of), optimizer)
    optimizer.param_groups[0]["weight_decay"] = 0.01
    track.note_rates(of, Pending(of), optimizer)
    groups = [data["groups"][0] for *_, data in of.writer.events]
    assert [group["weight_decay"] for group in groups] == [0, 0.01]
    assert list(groups[0]["betas"]) == [0.8, 0.9]


def test_settings_have_the_lines_that_made_them():
    of = journal()
    with Attachment(Owner("test")) as hooks:
        note_origins(hooks)
        _, optimizer, track = tracked(lr=0.1)
        track.note_rates(of, Pending(of), optimizer)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)  # after the first step
        track.note_rates(of, Pending(of), optimizer)
        track.note_rates(of, Pending(of), optimizer)
    first, second = (data for *_, data in of.writer.events)
    assert first["line"].startswith("test_track.py:")
    assert first["schedulers"] == []
    assert second["schedulers"][0].startswith("test_track.py:")
    assert scheduler.optimizer is optimizer


def test_settings_have_neither_parameters_nor_rates():
    group = {"params": [1], "lr": 0.1, "eps": torch.tensor(0.5), "t": torch.ones(2), "fused": None}
    plain = settings_of(group)
    assert plain["eps"] == 0.5
    assert plain["t"] == "tensor"
    assert not {"params", "lr"} & set(plain)


@pytest.mark.parametrize(("grad", "there"), [(torch.zeros(3), False), (torch.ones(3), True)])
def test_a_gradient_that_was_zeroed_is_gone(grad, there):
    assert is_there(grad) is there
