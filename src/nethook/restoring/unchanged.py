"""Running a model, and leaving everything as if it had not run: the one way to do so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.utils import parametrize

from nethook.hooks.modes import unrecorded
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
    with (
        _one_at_a_time,
        undone([*_save_process(model), _save(model, inputs, parameters=parameters)]),
    ):
        if evaluation:
            _evaluate_all(model)
        if seed is not None:
            seed_everything(seed)
        yield


@contextmanager
def model_unchanged(model: nn.Module, *, evaluation: bool = False) -> Iterator[None]:
    """The same for many forwards with code of others between them, as a data loader's.

    Each forward stands in a block `process_unchanged`: what a loader draws stays drawn.
    """
    with undone([_save(model, None, parameters=True)]):
        if evaluation:
            _evaluate_all(model)
        yield


@contextmanager
def process_unchanged(model: nn.Module, inputs: object) -> Iterator[None]:
    """One forward of a model that is put back later."""
    with _one_at_a_time, undone([*_save_process(model), _save(None, inputs, parameters=True)]):
        yield


def _save_process(model: nn.Module) -> list[Undo]:
    return [_save_settings(), _save_computed_weights(), save_random_states(_device_of(model))]


def _evaluate_all(model: nn.Module) -> None:
    for module in every_module(model):
        _evaluate(module)


def _evaluate(module: nn.Module) -> None:
    """The flag alone: `eval()` may be overridden with more, and sets all modules below."""
    own = vars(module)
    if "training" in own:
        own["training"] = False  # `nn.Module.__setattr__` takes ten times as long
    elif module.training:
        module.training = False


def _save(model: nn.Module | None, inputs: object, *, parameters: bool) -> Undo:
    state = SavedState(parameters=parameters)

    @unrecorded
    def save() -> None:
        with torch.inference_mode(False):
            if model is not None:
                state.add_model(model)
            state.add_value(inputs)

    @unrecorded
    def put_back() -> None:
        with torch.inference_mode(False):
            state.put_back()

    save()
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
