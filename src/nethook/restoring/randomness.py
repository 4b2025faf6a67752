"""Random states: of torch on every device in use, of Python and numpy, of generators."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from nethook.restoring.undo import Undo, undone


@contextmanager
def random_states_unchanged(*, seed: int | None = None) -> Iterator[None]:
    """A block after which the random states of the process are as they were."""
    with undone([save_random_states()]):
        if seed is not None:
            seed_everything(seed)
        yield


def save_random_states(kind_in_use: str | None = None) -> Undo:
    """The states of torch, Python and numpy. `kind_in_use` is a device that tensors are on."""
    cpu, python = torch.default_generator.get_state(), random.getstate()
    # Whoever has not imported numpy has drawn nothing from it.
    numpy = sys.modules.get("numpy")
    legacy = None if numpy is None else numpy.random.get_state(legacy=False)
    devices = devices_in_use(kind_in_use)
    states = None if devices is None else _states_on(devices)

    def put_back() -> None:
        torch.default_generator.set_state(cpu)
        random.setstate(python)
        if numpy is not None:
            numpy.random.set_state(legacy)
        if states is not None:
            states()

    return put_back


def random_states() -> tuple[Any, ...]:
    """The states of torch, Python and numpy as plain values: equal where nothing was drawn."""
    devices = devices_in_use()
    states = [torch.default_generator.get_state()]
    if devices is not None and hasattr(devices, "get_rng_state_all"):
        states += devices.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    legacy = None if numpy is None else numpy.random.get_state(legacy=False)["state"]
    drawn = None if legacy is None else (legacy["pos"], legacy["key"].tobytes())
    return [state.cpu().numpy().tobytes() for state in states], random.getstate(), drawn


def seed_everything(seed: int) -> None:
    """The same numbers from here on. `torch.manual_seed` would also seed devices not in use yet."""
    torch.default_generator.manual_seed(seed)
    random.seed(seed)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)
    devices = devices_in_use()
    if devices is not None:
        seed_all = getattr(devices, "manual_seed_all", None) or devices.manual_seed
        seed_all(seed)


def devices_in_use(kind_in_use: str | None = None) -> Any:
    """Torch's module of the accelerator; None where there is none or the process has not used it.

    A process that has not used a device yet must not begin to because of us: it may fork.
    """
    device = torch.accelerator.current_accelerator()
    if device is None:
        return None
    devices: Any = torch.get_device_module(device)
    asked = getattr(devices, "is_initialized", None)
    in_use = device.type == kind_in_use if asked is None else asked()
    return devices if in_use else None


def save_generator(generator: Any) -> Undo | None:
    """The state of a generator object of torch, Python or numpy; None for anything else."""
    if isinstance(generator, torch.Generator):
        state = generator.get_state()
        return lambda: _set(generator.set_state, state)
    if isinstance(generator, random.Random):
        drawn = generator.getstate()
        return lambda: generator.setstate(drawn)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(generator, numpy.random.RandomState):
        held = generator.get_state(legacy=False)
        return lambda: generator.set_state(held)
    if numpy is not None and isinstance(generator, numpy.random.Generator):
        bits, now = generator.bit_generator, generator.bit_generator.state
        return lambda: setattr(bits, "state", now)
    return None


def _set(setter: Any, state: Any) -> None:
    setter(state)


def _states_on(devices: Any) -> Undo:
    if hasattr(devices, "get_rng_state_all"):
        states = devices.get_rng_state_all()
        return lambda: devices.set_rng_state_all(states)
    state = devices.get_rng_state()
    return lambda: devices.set_rng_state(state)
