"""The last steps' batches: references to the inputs, and the random states they were run with."""

from __future__ import annotations

import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.nested import map_tensors, tensors
from nethook.restoring.mixed_precision import autocast_now
from nethook.restoring.randomness import devices_in_use
from nethook.stats.memory import bytes_held
from nethook.torch_private import version_of
from nethook.tracing.objects import NotRecorded, is_plain

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
    loss: dict[str, Any] = field(default_factory=dict)  # what `loss` keeps of its loss
    target: torch.Tensor | None = None  # of that loss, where it stands by itself

    @property
    def whole_loss(self) -> dict[str, Any]:
        """What was kept of its loss, with its target; empty where that was not to be had."""
        if not self.loss or self.loss["target"] is not None:
            return self.loss
        return {} if self.target is None else self.loss | {"target": self.target}

    @property
    def overwritten(self) -> bool:
        """Whether an input was written in place since."""
        inputs = self.inputs
        return inputs is not None and _versions(_tensors(*inputs)) != self.versions

    @property
    def inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Arguments by position and by name."""
        return None if self.args is None else (self.args, self.kwargs or {})


_Held = tuple[str, weakref.ref[nn.Module], int, tuple[Any, ...], int, dict[str, torch.Tensor]]


class PlainCall:
    """A call with one tensor on the CPU, as it is held in a step in which nothing is due."""

    __slots__ = ("held", "kept")

    def __init__(self) -> None:
        self.held: _Held | None = None
        """Model, module, step, arguments, version of the tensor, random states; None: no call."""
        self.kept: tuple[dict[str, Any], torch.Tensor | None] | None = None
        """Of its loss, and its target, once these are known."""

    def forget(self) -> None:
        """It is not the last call any more: nothing of it is held."""
        self.held = self.kept = None

    def kept_in(self, ring: Ring) -> Call:
        """A call like any other."""
        assert self.held is not None
        model, module, step, args, version, random = self.held
        call = ring.add(model, module, step, (args, {}), random=False)
        call.random = random
        if self.kept is not None:
            call.loss, call.target = self.kept
        call.versions = (version,) if call.versions else ()
        self.forget()
        return call


class Ring:
    """The calls of the last steps; what is older is let go.

    Cost: some 8 µs a call, half of it for the random state. It holds up to `CAP` bytes of inputs
    that the script may have let go.
    """

    def __init__(self, steps: int) -> None:
        self._steps: deque[list[Call]] = deque(maxlen=max(steps, 1))
        self._held = 0

    def add(
        self,
        model: str,
        module: weakref.ref[nn.Module],
        step: int,
        inputs: tuple[tuple[Any, ...], dict[str, Any]],
        *,
        random: bool = True,
    ) -> Call:
        """Keeps a call that is about to begin; `random`: with the states of generators."""
        self._open(step)
        args, kwargs = inputs
        held = _tensors(args, kwargs)
        if not (held and len(args) == 1 and args[0] is held[0] and not kwargs):
            args, kwargs = _own(args, kwargs)
        size = sum([bytes_held(tensor) for tensor in held])
        fits = self._held + size <= CAP and len(self._steps[-1]) < MOST_CALLS
        call = Call(
            model,
            module,
            step,
            args if fits else None,
            kwargs if fits else None,
            random_states(held) if random else {},
            autocast_now(),
            size if fits else 0,
            _versions(held) if fits else (),
        )
        self._held += call.size
        self._steps[-1].append(call)
        return call

    def _open(self, step: int) -> None:
        """Makes room for the calls of a step."""
        steps = self._steps
        if steps and not steps[-1]:
            steps.pop()  # an interrupt came before its first call
        if not steps or steps[-1][0].step != step:
            if len(steps) == steps.maxlen:
                for call in steps.popleft():
                    self._held -= call.size
            steps.append([])

    @property
    def calls(self) -> list[Call]:
        """All calls that are kept, the oldest first."""
        return [call for step in self._steps for call in step]


_generator: Final = torch.default_generator


def has_drawn(call: Call) -> bool:
    """Whether random numbers were drawn on the CPU since a call began, so far as is known."""
    before = call.random.get("cpu")
    return before is None or not torch.equal(before, _generator.get_state())


def random_states(inputs: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    """The states of torch's generators: of the CPU, and of each other device of the inputs."""
    states = {"cpu": _generator.get_state()}
    for tensor in inputs:
        if not tensor.is_cpu and not tensor.is_meta:
            device = tensor.device
            module = torch.get_device_module(device.type)
            states[str(device)] = module.get_rng_state(device)
    return states


def set_random_states(states: dict[str, torch.Tensor]) -> None:
    """Puts generators into the states that `random_states` gave; devices not in use are left."""
    for name, state in states.items():
        device = torch.device(name)
        if device.type == "cpu":
            torch.set_rng_state(state)
        else:
            devices = torch.get_device_module(device.type)
            if devices is devices_in_use(device.type):
                devices.set_rng_state(state, device)


def _tensors(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """All tensors of a call; mostly there is one, and nothing else."""
    if not kwargs and len(args) == 1 and type(args[0]) is torch.Tensor:
        return [args[0]]
    return [tensor for _, tensor in tensors((args, kwargs))]


def _own(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The same tensors in containers of our own: the script may put others into its batch.

    Objects that are neither are not held: they cannot be saved, and nobody knows their size.
    """
    own: tuple[tuple[Any, ...], dict[str, Any]] = map_tensors(
        _same, (args, kwargs), _if_plain, fresh=True, attributes="drop"
    )
    return own


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _if_plain(value: Any) -> Any:
    return value if is_plain(value) else NotRecorded(type(value), "which a replay cannot use")


def _versions(held: list[torch.Tensor]) -> tuple[int, ...]:
    if len(held) == 1 and not held[0].is_inference():
        return (version_of(held[0]),)
    return tuple([-1 if tensor.is_inference() else version_of(tensor) for tensor in held])
