"""What was met is told by identity, and forgotten with the object."""

from __future__ import annotations

import gc

import torch
from torch import nn

from nethook.running.detecting.met import Met


def test_a_module_is_judged_once_with_gradients_and_once_without() -> None:
    met, module = Met(), nn.Linear(2, 2)
    assert not met.judged(module)
    met.judge(module)
    assert met.judged(module)
    with torch.no_grad():
        assert not met.judged(module)
        met.judge(module)
        assert met.judged(module)
    assert not met.judged(nn.Linear(2, 2))
    met.judge_anew()
    assert not met.judged(module)


def test_only_parameters_that_are_there_are_followed() -> None:
    met, module = Met(), nn.Linear(2, 2)
    met.follow(module.parameters())
    kept = module.weight
    assert met.followed() == {id(kept), id(module.bias)}
    del module
    gc.collect()
    assert met.followed() == {id(kept)}


def test_an_id_that_is_used_again_is_another_object() -> None:
    met = Met()
    for _ in range(50):
        module = nn.Linear(2, 2)
        optimizer = torch.optim.SGD(module.parameters(), 0.1)
        assert not met.judged(module)
        assert met.steps(optimizer) == 0
        met.judge(module)
        met.stepped(optimizer, 3)
        assert met.steps(optimizer) == 3
        del module, optimizer
        gc.collect()
