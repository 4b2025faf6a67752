"""Keeping one call of a model as it happens, and what follows it, to run it again later.

    kept = KeptCall(model, args, kwargs)     # before the forward: copies; raises where none can be
    kept.returned(output)                    # after it: what follows is recorded from now on
    material = kept.backward([loss])         # when backward begins: recording ends

`kept.drop()` ends it at any time. A copy of the model costs its parameters and buffers once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.examining.batch_facts import BatchFacts
from nethook.examining.copying import bare, copy_of, why_not_copied
from nethook.examining.limits import why_too_large
from nethook.examining.passage import passage_of
from nethook.examining.recording import Recording
from nethook.examining.refusals import NotReplayableError
from nethook.examining.rehearsal import Material
from nethook.hooks.autograd.lazy_copy import cheap_copy
from nethook.hooks.modes import quiet
from nethook.hooks.ops.calls import EveryCall
from nethook.restoring.copies import own_inputs, own_objects
from nethook.restoring.mixed_precision import autocast_now
from nethook.restoring.randomness import save_random_states
from nethook.torch_private import compiled_frames, dispatch_modes, in_transform, next_node_number


class KeptCall:
    """A call that is kept from its begin to the backward pass.

    Arguments:
        module: what is called; of wrappers, what is inside is copied.
        args, kwargs: what it is called with.

    Raises:
        NotReplayableError: no copy of it is to be had, and why.
    """

    def __init__(self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        model = bare(module)
        given = Inputs(args, kwargs)
        with quiet():
            reason = why_not_copied(model) or _why_not_written_out(given)
            if reason:
                raise NotReplayableError(reason)
            try:
                inputs = own_objects(own_inputs(given))
            except Exception as error:
                raise NotReplayableError(
                    f"an input cannot be copied ({type(error).__name__})"
                ) from error
            self._material = Material(
                copy_of(model), inputs, save_random_states(_device(model)), autocast_now()
            )

        self._given = (args, dict(kwargs))
        self._parameters = {id(tensor): name for name, tensor in model.named_parameters()}
        self._first_node = next_node_number()
        self._recording: Recording | None = None
        self._calls: EveryCall | None = None

    @property
    def inputs(self) -> Inputs:
        """What it was called with, copied."""
        return self._material.inputs

    @property
    def recording_seconds(self) -> float:
        """Seconds that recording what followed has taken so far."""
        return 0.0 if self._recording is None else self._recording.seconds

    @property
    def is_recording(self) -> bool:
        """Whether what is called now is recorded."""
        return self._calls is not None and self._calls.on

    def returned(self, output: Any) -> None:
        """The call has returned: what follows is recorded."""
        with quiet():
            self._material.output = map_tensors(_kept, output)
        reason = why_not_recorded()
        if reason:
            self._material.no_passage = reason
            return
        self._recording = Recording(output, self._given, self._parameters, self._first_node)
        self._calls = EveryCall(self._recording.seen)
        self._calls.put_on()

    def backward(
        self, roots: Sequence[torch.Tensor], history: BatchFacts | None = None
    ) -> Material:
        """A backward pass begins: what a rehearsal is made of."""
        material = self._material
        material.history = history
        with quiet():
            if self._recording is not None:
                material.passage = passage_of(self._recording, roots)
            if len(roots) == 1:
                material.loss = _kept(roots[0])
        self.drop()
        return material

    def drop(self) -> bool:
        """Records nothing any more, and holds nothing of the script's.

        Returns:
            Whether it is off torch's stack, too. Not while a function runs that it has seen begin
            (`loss.backward()`): ask again.
        """
        self._given = ((), {})
        if self._recording is not None:
            self._recording.let_go()
            self._recording = None
        return self._calls is None or self._calls.remove()


def why_not_recorded() -> str:
    """Why what a script does next cannot be recorded, in words; "" where it can."""
    if compiled_frames():
        return "torch.compile is in use, and a mode would make it compile again"
    if dispatch_modes():
        return "a TorchDispatchMode is active"
    if in_transform():
        return "a transform of torch.func is active"
    return ""


def _kept(tensor: torch.Tensor) -> torch.Tensor:
    return cheap_copy(tensor, detach=True)


def _why_not_written_out(given: Inputs) -> str:
    """Why inputs cannot be changed, in words; "" where they can.

    Whatever an experiment changes in an expanded tensor, it has to write out.
    """
    for _, tensor in tensors((given.args, dict(given.kwargs))):
        if tensor.layout is torch.strided and 0 in tensor.stride() and not tensor.is_nested:
            reason = why_too_large(tensor.numel() * tensor.element_size(), tensor.device)
            if reason:
                return f"an input is expanded: written out, {reason}"
    return ""


def _device(model: nn.Module) -> str | None:
    first = next(model.parameters(), None)
    return None if first is None else first.device.type
