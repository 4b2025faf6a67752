"""The last steps' batches: references to the inputs, and the random states they were run with."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors

CAP: Final = 256 << 20
"""Bytes of inputs that the ring holds on to; a batch that does not fit is not kept."""

MOST_CALLS: Final = 32
"""Calls of one step (micro-batches, or models) that are kept."""


@dataclass(slots=True)
class Call:
    """One outermost call of a watched model: with what, and in which state."""

    model: str
    module: weakref.ref[nn.Module]
    step: int
    args: tuple[Any, ...] | None  # None where they were too large to be kept
    kwargs: dict[str, Any] | None
    random: dict[str, torch.Tensor]
    autocast: dict[str, str]  # device -> dtype, where it was on
    size: int
    versions: tuple[int, ...] = ()
    loss: dict[str, Any] = field(default_factory=dict)  # what `flight_loss` keeps of its loss

    @property
    def overwritten(self) -> bool:
        """Whether an input was written in place since."""
        inputs = self.inputs
        return inputs is not None and _versions(_tensors(*inputs)) != self.versions

    @property
    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments by position and by name."""
        return None if self.args is None else (self.args, self.kwargs or {})


class Ring:
    """The calls of the last steps; what is older is let go.

    Cost: some 8 µs a call. It holds up to `CAP` bytes of inputs that the script may have let go.
    """

    def __init__(self, steps: int) -> None:
        self._steps: deque[list[Call]] = deque(maxlen=max(steps, 1))
        self._held = 0

    def add(
        self,
        model: str,
        module: nn.Module,
        step: int,
        inputs: tuple[tuple[Any, ...], dict[str, Any]],
    ) -> Call:
        """Keeps a call that is about to begin."""
        if not self._steps or self._steps[-1][0].step != step:
            if len(self._steps) == self._steps.maxlen:
                for call in self._steps.popleft():
                    self._held -= call.size
            self._steps.append([])
        args, kwargs = inputs
        found = _tensors(args, kwargs)
        size = found[0].nbytes if len(found) == 1 else sum([tensor.nbytes for tensor in found])
        fits = self._held + size <= CAP and len(self._steps[-1]) < MOST_CALLS
        call = Call(
            model,
            weakref.ref(module),
            step,
            args if fits else None,
            kwargs if fits else None,
            random_states(found),
            _autocast(),
            size if fits else 0,
            _versions(found) if fits else (),
        )
        self._held += call.size
        self._steps[-1].append(call)
        return call

    @property
    def calls(self) -> list[Call]:
        """All calls that are kept, the oldest first."""
        return [call for step in self._steps for call in step]

    def clear(self) -> None:
        """Lets go of everything."""
        self._steps.clear()
        self._held = 0


_generator: Final = torch.default_generator


def random_states(inputs: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The states of torch's generators: of the CPU, and of each other device of the inputs."""
    found = {"cpu": _generator.get_state()}
    for tensor in inputs:
        if not tensor.is_cpu and not tensor.is_meta:
            device = tensor.device
            module = torch.get_device_module(device.type)
            found[str(device)] = module.get_rng_state(device)
    return found


def set_random_states(states: dict[str, torch.Tensor]) -> None:
    """Puts generators into the states that `random_states` gave; devices that are gone are left."""
    for name, state in states.items():
        device = torch.device(name)
        if device.type == "cpu":
            torch.set_rng_state(state)
        elif torch.accelerator.is_available():
            torch.get_device_module(device.type).set_rng_state(state, device)


def _autocast() -> dict[str, str]:
    if not torch._C._is_any_autocast_enabled():
        return {}
    accelerator = torch.accelerator.current_accelerator(check_available=True)
    devices = ("cpu",) if accelerator is None else ("cpu", accelerator.type)
    return {
        device: str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        for device in devices
        if torch.is_autocast_enabled(device)
    }


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """All tensors of a call; mostly there is one, and nothing else."""
    if not kwargs and len(args) == 1 and type(args[0]) is torch.Tensor:
        return [args[0]]
    return [tensor for _, tensor in tensors((args, kwargs))]


def _versions(found: list[torch.Tensor]) -> tuple[int, ...]:
    if len(found) == 1 and not found[0].is_inference():
        return (found[0]._version,)
    return tuple([-1 if tensor.is_inference() else tensor._version for tensor in found])
