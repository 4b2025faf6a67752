"""Running a model, and leaving everything as if it had not run: the one way to do so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.utils import parametrize

from nethook.hooks.quiet import unrecorded
from nethook.restoring.python_state import SavedState, every_module
from nethook.restoring.randomness import save_random_states, seed_everything
from nethook.restoring.undo import Undo, undone

# Two such blocks at once would each put back what the other has changed; and random states and
# torch's settings are those of the whole process.
_one_at_a_time = threading.RLock()


@contextmanager
def unchanged(
    model: nn.Module,
    inputs: object = None,
    *,
    evaluation: bool = False,
    parameters: bool = True,
    seed: int | None = None,
) -> Iterator[None]:
    """A block in which a model may run, after which everything is as it was.

    Put back are, of every module, mode, parameters, buffers, gradients and attributes; of the
    inputs, what was written in place; the random states of torch on all devices in use, of Python,
    numpy and of generators that the model holds; gradient mode and default type. docs/sites.md
    says it exactly, and names what cannot be put back. Threads wait for each other here.

    Arguments:
        model: what will run; or what a copy is made of, which may still reach its original.
        inputs: anything it will be given.
        evaluation: every module is in evaluation mode inside the block.
        parameters: False leaves what is written to weights there, for those who do so on purpose.
        seed: all random states begin with it inside the block.
    """
    with _one_at_a_time:
        undo = [
            _save_settings(),
            _save_computed_weights(),
            save_random_states(_device_of(model)),
            _save(model, inputs, parameters=parameters),
        ]
        with undone(undo):
            if evaluation:
                for module in every_module(model):
                    if module.training:
                        module.training = False
            if seed is not None:
                seed_everything(seed)
            yield


def _save(model: nn.Module, inputs: object, *, parameters: bool) -> Undo:
    state = SavedState(parameters=parameters)
    with torch.inference_mode(False), unrecorded():
        state.add_model(model)
        state.add_value(inputs)

    def put_back() -> None:
        with torch.inference_mode(False), unrecorded():
            state.put_back()

    return put_back


def _device_of(model: nn.Module) -> str | None:
    first = next(model.parameters(), None)
    return None if first is None else first.device.type


def _save_settings() -> Undo:
    """Settings of torch that a forward may set and forget; most of them nobody ever does."""
    grad, dtype = torch.is_grad_enabled(), torch.get_default_dtype()

    def put_back() -> None:
        torch.set_grad_enabled(grad)
        if torch.get_default_dtype() is not dtype:
            torch.set_default_dtype(dtype)

    return put_back


def _save_computed_weights() -> Undo:
    """Inside `parametrize.cached()`, weights that were computed here have no gradient."""
    cache = parametrize._cache
    before = dict(cache)

    def put_back() -> None:
        cache.clear()
        cache.update(before)

    return put_back
