"""Running a model once, to see what it does, and leaving it as if it had not run."""

from __future__ import annotations

import copy
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parameter import UninitializedBuffer
from torch.nn.utils import parametrize

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.hooks.lazy import cheap_copy

# Two rehearsals at once would each see the other's calls, and put back what the other has changed;
# and torch's random state and its switch for fused kernels are those of the whole process.
_one_at_a_time = threading.RLock()


@contextmanager
def unchanged(
    model: nn.Module, *, copied: bool = False, evaluation: bool = False
) -> Iterator[None]:
    """A block after which mode, buffers, gradients and random state are as they were.

    Of a model that is a copy itself, only the random state. With `evaluation` every module is in
    evaluation mode inside it. Other Python state of a model is not known here: rehearse a copy of
    a model that has such. Threads wait for each other here.
    """
    with _one_at_a_time, ExitStack() as back:
        back.callback(_random_state(model))
        back.callback(_computed_weights())
        if not copied:  # what becomes of a copy is nobody's concern
            for save in (_modes, _buffers, _gradients):
                back.callback(save(model))
        if evaluation:
            for module in model.modules():
                module.training = False
        yield


def own_inputs(inputs: Inputs) -> Inputs:
    """The same arguments with tensors of their own: what the model writes to them is lost."""

    def own(tensor: torch.Tensor) -> torch.Tensor:
        copied = _copied(tensor)
        if not tensor.requires_grad:
            return copied
        # A leaf may not be written in place, what was computed may: each stays what it is.
        copied.requires_grad_()
        return copied if tensor.is_leaf else copied.clone()

    return _map(own, inputs)


def stand_in(model: nn.Module, inputs: Inputs, *, copied: bool) -> tuple[nn.Module, Inputs]:
    """The model and inputs to rehearse with: copies where asked for, or where nothing else can do.

    A model whose inputs have no data (`meta`) is rehearsed in a copy without data, which takes no
    memory. One with parameters that are yet to be made (`nn.LazyLinear`) would make them.
    """
    given = [tensor for _, tensor in tensors((inputs.args, dict(inputs.kwargs)))]
    if any(tensor.is_meta for tensor in given):
        if all(tensor.is_meta for tensor in (*model.parameters(), *model.buffers())):
            return (copy.deepcopy(model), inputs) if copied else (model, inputs)
        return _without_data(model), _map(_to_meta, inputs)
    unmade = any(
        isinstance(module, LazyModuleMixin) and module.has_uninitialized_params()
        for module in model.modules()
    )
    if copied or unmade:
        own = own_inputs(inputs)
        if copied:  # objects among the inputs may be written to as well: a cache of keys
            own = _deeply(own)
        return copy.deepcopy(model, _unmade(model)), own
    return model, own_inputs(inputs)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return cheap_copy(tensor.detach() if tensor.requires_grad else tensor)


def _map(function: Callable[[torch.Tensor], torch.Tensor], inputs: Inputs) -> Inputs:
    return Inputs(map_tensors(function, inputs.args), map_tensors(function, dict(inputs.kwargs)))


def _to_meta(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to("meta")


def _deeply(inputs: Inputs) -> Inputs:
    """Copies of everything that is not a tensor; those are copied already."""
    memo: dict[int, Any] = {}
    for _, tensor in tensors((inputs.args, dict(inputs.kwargs))):
        memo[id(tensor)] = tensor
    return Inputs(copy.deepcopy(inputs.args, memo), copy.deepcopy(dict(inputs.kwargs), memo))


def _unmade(model: nn.Module) -> dict[int, Any]:
    """Buffers that are yet to be made, by id, each with another: torch cannot copy them."""
    return {
        id(buffer): cast(Any, UninitializedBuffer)(device=buffer.device, dtype=buffer.dtype)
        for buffer in model.buffers()
        if isinstance(buffer, UninitializedBuffer)
    }


def _without_data(model: nn.Module) -> nn.Module:
    """A copy of a model whose parameters and buffers have no data: it costs no memory."""
    memo: dict[int, Any] = {}
    for tensor in (*model.parameters(), *model.buffers()):
        empty = torch.empty_like(tensor, device="meta")
        if isinstance(tensor, nn.Parameter):
            empty = nn.Parameter(empty, requires_grad=tensor.requires_grad)
        memo[id(tensor)] = empty
    return copy.deepcopy(model, memo)


def _modes(model: nn.Module) -> Callable[[], None]:
    modes = [(module, module.training) for module in model.modules()]

    def put_back() -> None:
        for module, training in modes:
            if module.training is not training:
                module.training = training

    return put_back


def _buffers(model: nn.Module) -> Callable[[], None]:
    """Also where a forward puts another tensor in a buffer's place, or makes new ones."""
    saved = [
        (module._buffers, module._non_persistent_buffers_set, dict(module._buffers))
        for module in model.modules()
    ]
    names = [set(not_saved) for _, not_saved, _ in saved]
    values = [
        _Saved(buffer) for _, _, own in saved for buffer in own.values() if buffer is not None
    ]

    def put_back() -> None:
        for (buffers, not_saved, own), before in zip(saved, names, strict=True):
            if type(buffers) is dict:  # those of a ScriptModule cannot be replaced
                buffers.clear()
                buffers.update(own)
            not_saved.clear()
            not_saved.update(before)
        for value in values:
            value.put_back()

    return put_back


def _gradients(model: nn.Module) -> Callable[[], None]:
    grads = [(parameter, parameter.grad) for parameter in model.parameters()]
    values = [_Saved(grad) for _, grad in grads if grad is not None]

    def put_back() -> None:
        for parameter, grad in grads:
            if parameter.grad is not grad:
                parameter.grad = grad
        for value in values:
            value.put_back()

    return put_back


def _computed_weights() -> Callable[[], None]:
    """Inside `parametrize.cached()`, weights that were computed here have no gradient."""
    cache = parametrize._cache
    before = dict(cache)

    def put_back() -> None:
        cache.clear()
        cache.update(before)

    return put_back


class _Saved:
    """A tensor that others hold, with the value and the version it had."""

    __slots__ = ("_tensor", "_value", "_version")

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor
        self._value = _copied(tensor)
        self._version = None if tensor.is_inference() else tensor._version

    def put_back(self) -> None:
        tensor = self._tensor
        _restore(tensor, self._value)
        if self._version is not None and tensor._version != self._version:
            # A graph that has saved it before finds it as it was: bit for bit the same value.
            torch._C._autograd._unsafe_set_version_counter((tensor,), (self._version,))


def _restore(tensor: torch.Tensor, value: torch.Tensor) -> None:
    # Only what was written: a lazy copy of what was not still shares its memory. Through `.data`,
    # for a graph that has saved the tensor must not take this for a write.
    if tensor.is_meta or _share_memory(tensor, value):
        return
    if tensor.shape == value.shape:
        tensor.data.copy_(value)
    else:
        tensor.data = value


def _share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    # `data_ptr` would let the two part: it is made for those who write.
    plain = type(one) in (torch.Tensor, nn.Parameter, nn.Buffer) and one.layout is torch.strided
    return plain and cast(Any, one).const_data_ptr() == cast(Any, other).const_data_ptr()


def _random_state(model: nn.Module) -> Callable[[], None]:
    """Of torch on all devices, of Python, of numpy if it is there, and of the model's own."""
    undo: list[Callable[[], None]] = []
    cpu = torch.get_rng_state()
    undo.append(lambda: torch.set_rng_state(cpu))
    python = random.getstate()
    undo.append(lambda: random.setstate(python))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        state = numpy.random.get_state()
        undo.append(lambda: numpy.random.set_state(state))
    device = torch.accelerator.current_accelerator(check_available=True)
    if device is not None and _is_in_use(torch.get_device_module(device)):
        undo.append(_random_state_on(torch.get_device_module(device)))
    own = [each for module in model.modules() for each in vars(module).values()]
    undo += [_random_state_of(each) for each in own if isinstance(each, torch.Generator)]

    def put_back() -> None:
        for each in undo:
            each()

    return put_back


def _is_in_use(devices: Any) -> bool:
    # A process that has not used a device yet must not begin to because of us: it may fork.
    asked = getattr(devices, "is_initialized", None)
    return asked is None or bool(asked())


def _random_state_of(generator: torch.Generator) -> Callable[[], None]:
    state = generator.get_state()

    def put_back() -> None:
        generator.set_state(state)

    return put_back


def _random_state_on(devices: Any) -> Callable[[], None]:
    if hasattr(devices, "get_rng_state_all"):
        states = devices.get_rng_state_all()
        return lambda: devices.set_rng_state_all(states)
    state = devices.get_rng_state()
    return lambda: devices.set_rng_state(state)
