"""Random states of the process come back; devices that nobody has used stay unused."""

from __future__ import annotations

import random
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from nethook.restoring import randomness
from nethook.restoring.randomness import (
    random_states,
    random_states_unchanged,
    seed_everything,
)
from nethook.restoring.unchanged import unchanged


def drawn() -> tuple[float, float, float]:
    return torch.rand(1).item(), random.random(), float(np.random.randn())


def test_a_seed_holds_for_the_block_alone() -> None:
    seed_everything(3)
    np.random.randn()  # one of a pair: the other one waits
    states = (torch.get_rng_state(), random.getstate(), np.random.get_state())
    expected = drawn()
    torch.set_rng_state(states[0]), random.setstate(states[1]), np.random.set_state(states[2])
    seen = []
    for _ in range(2):
        with random_states_unchanged(seed=7):
            seen.append(drawn())
    assert seen[0] == seen[1] != expected
    assert drawn() == expected


@pytest.mark.parametrize("before", [0, 1, 2, 623, 624, 625])
@pytest.mark.parametrize(
    "draw", [np.random.rand, np.random.randn, lambda: np.random.randint(9), lambda: None]
)
def test_what_is_drawn_from_numpy_comes_back_wherever_its_state_stands(
    before: int, draw: Any
) -> None:
    for pair in (False, True):
        np.random.seed(5)
        for _ in range(before):
            np.random.randint(2**32, dtype=np.uint32)
        if pair:
            np.random.randn()  # the other one of a pair waits, and takes nothing from memory
        state = np.random.get_state()
        expected = np.random.randn(4).tolist()
        np.random.set_state(state)
        with random_states_unchanged():
            draw()
        assert np.random.randn(4).tolist() == expected


def test_another_generator_of_numpy_comes_back_without_a_warning() -> None:
    usual = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with random_states_unchanged():
                inside = np.random.rand()
        assert np.random.rand() == inside
    finally:
        np.random.set_bit_generator(usual)


class Accelerator:
    """What torch's module of a device has."""

    def __init__(self, **more: Any) -> None:
        self.states, self.seeds = [torch.zeros(1), torch.ones(1)], []
        vars(self).update(more)

    def get_rng_state_all(self) -> list[torch.Tensor]:
        return list(self.states)

    def set_rng_state_all(self, states: list[torch.Tensor]) -> None:
        self.states = states

    def manual_seed_all(self, seed: int) -> None:
        self.seeds.append(seed)
        self.states = [torch.full((1,), float(seed))] * 2


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    def put(devices: Any) -> Any:
        kind = SimpleNamespace(type="cuda")
        monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: kind)
        monkeypatch.setattr(torch, "get_device_module", lambda _: devices)
        return devices

    return put


def test_states_of_all_devices_come_back(use: Any) -> None:
    devices = use(Accelerator(is_initialized=lambda: True))
    before = list(devices.states)
    with unchanged(nn.Identity(), seed=5):
        assert devices.seeds == [5]
    assert all(map(torch.equal, devices.states, before))


def test_a_device_that_is_not_in_use_stays_so(use: Any) -> None:
    untouched = use(SimpleNamespace(is_initialized=lambda: False))  # all else would be an error
    with unchanged(nn.Identity(), seed=5):
        assert randomness.devices_in_use() is None
    assert randomness.devices_in_use("cuda") is None
    del untouched.is_initialized  # one that cannot be asked: in use where tensors are on it
    assert randomness.devices_in_use("cpu") is None
    assert randomness.devices_in_use("cuda") is untouched


def test_numpy_is_not_imported_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(randomness.sys.modules, "numpy")
    with unchanged(nn.Identity(), seed=5):
        pass
    assert "numpy" not in randomness.sys.modules


@pytest.mark.parametrize(
    "draw", [lambda: torch.rand(1), random.random, np.random.rand], ids=["torch", "python", "numpy"]
)
def test_states_are_equal_where_nothing_was_drawn(draw: Any) -> None:
    before = random_states()
    assert random_states() == before
    draw()
    assert random_states() != before
