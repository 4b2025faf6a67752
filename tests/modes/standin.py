"""A stand-in accelerator: a device of torch's whose every operation goes through Python.

    import tests.modes.standin as standin
    standin.register()
    x = torch.randn(4, 3).to(standin.DEVICE)      # plain tensors, on the device "standin"
    with standin.counting() as waits:
        (x @ x.T).sum()
    waits                                          # Counter(): nothing had to wait for the device

Its tensors are `torch.Tensor`s on a device that is not the CPU, with autograd and views, as those
of a GPU are. Their data lie in CPU tensors that only this module sees, one for each storage.
Whatever brings a value or a shape back to the host is counted: on a GPU each of these waits until
everything that was started has been done. Registering a device is for ever: use it in a process of
its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch.utils import backend_registration

DEVICE = torch.device("privateuseone", 0)  # "standin" once it is registered

# What makes the host wait: reading a number, and everything whose shape depends on values.
_WAITING = frozenset(
    {
        "_local_scalar_dense", "item", "is_nonzero", "nonzero", "nonzero_static", "equal",
        "masked_select", "_unique", "_unique2", "unique_dim", "unique_consecutive", "bincount",
        "repeat_interleave", "allclose", "isin",
    }
)  # fmt: skip

# Of these torch would make an empty result first, and let the device give it its size.
_WHOLE = (
    "abs", "arange", "arange.start", "arange.start_step", "linalg_vector_norm", "scalar_tensor",
    "_foreach_norm.Scalar", "unbind.int", "stack", "cat", "dot", "sort", "sort.stable", "argsort",
)  # fmt: skip

_data: dict[int, torch.Tensor] = {}  # id of a storage -> a flat CPU tensor with what is in it
_alive: dict[int, Any] = {}  # the storages, so that no id is used twice
_waits: Counter[str] = Counter()
_on = False


class _Module:
    """What torch asks of the Python module of a device."""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_device() -> int:
        return 0

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def _is_in_bad_fork() -> bool:
        return False

    @staticmethod
    def manual_seed_all(seed: int) -> None:
        pass

    @staticmethod
    def get_rng_state(device: Any = None) -> torch.Tensor:
        return torch.zeros(8, dtype=torch.uint8)

    @staticmethod
    def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
        pass

    @staticmethod
    def get_amp_supported_dtype() -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]


def _host(tensor: torch.Tensor) -> torch.Tensor:
    """The CPU tensor behind a tensor of the device, sharing memory."""
    base = _data[tensor.untyped_storage()._cdata].view(tensor.dtype)
    return base.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def _is_dense(host: torch.Tensor) -> bool:
    """Whether its elements lie side by side, in whatever order of dimensions."""
    dims = sorted(zip(host.stride(), host.shape, strict=True))
    beside = 1
    for stride, size in dims:
        if size == 1:
            continue
        if stride != beside:
            return host.numel() == 0
        beside *= size
    return True


def _device(host: torch.Tensor) -> torch.Tensor:
    """A tensor of the device with what is in a CPU tensor; views of one storage share it."""
    dense = _is_dense(host)
    stride = host.stride() if dense else torch.empty(host.shape, device="meta").stride()
    held = torch.empty_strided(host.shape, stride, dtype=host.dtype).copy_(host)
    made = torch._C._acc.create_empty_tensor(tuple(host.shape), host.dtype)
    storage = made.untyped_storage()
    _data[storage._cdata] = held.as_strided((held.numel(),), (1,)).view(torch.uint8)
    _alive[storage._cdata] = storage
    return made if made.stride() == stride else _strided(made, host.shape, stride, 0)


def _strided(tensor: torch.Tensor, size: Any, stride: Any, offset: int) -> torch.Tensor:
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
    return torch.ops.aten.as_strided.default.redispatch(
        keys, tensor, list(size), list(stride), offset
    )


def _is_ours(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == DEVICE.type


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """A value of an operator with each of its parts replaced: they are lists at most."""
    if isinstance(value, list | tuple):
        parts = [_mapped(function, each) for each in value]
        return parts if isinstance(value, list) else tuple(parts)
    return function(value)


@cache
def _tensors(op: Any) -> tuple[int, ...]:
    """Which arguments of an operator are tensors."""
    kinds = [str(argument.type) for argument in op._schema.arguments]
    return tuple(at for at, kind in enumerate(kinds) if kind == "Tensor")


def _overload(op: Any, args: Any) -> Any:
    """The operator, or its name alone: a number that torch had made a tensor is a number again."""
    if all(isinstance(args[at], torch.Tensor) for at in _tensors(op) if at < len(args)):
        return op
    if op._overloadname == "Tensor" and "Scalar" in op.overloadpacket.overloads():
        return op.overloadpacket.Scalar  # torch would find it too, by an error in many words
    return op.overloadpacket


def _fallback(op: Any, *args: Any, **kwargs: Any) -> Any:
    name = op._schema.name.split("::")[1]
    if _on and name in _WAITING:
        _waits[name] += 1
    given: dict[int, torch.Tensor] = {}
    hosts: dict[int, torch.Tensor] = {}

    def inside(value: Any) -> Any:
        if _is_ours(value):
            if id(value) not in given:
                given[id(value)], hosts[id(value)] = value, _host(value)
            return hosts[id(value)]
        return torch.device("cpu") if isinstance(value, torch.device) and value == DEVICE else value

    cpu_args = _mapped(inside, args)
    cpu_kwargs = {key: _mapped(inside, value) for key, value in kwargs.items()}

    device = kwargs.get("device")
    to_host = device is not None and torch.device(device).type == "cpu"
    if _on and name in ("_to_copy", "to") and to_host and given:
        _waits["to the host"] += 1
    cpu_kwargs.pop("pin_memory", None)
    with torch.no_grad():
        result = _overload(op, cpu_args)(*cpu_args, **cpu_kwargs)
    back = {id(host): given[key] for key, host in hosts.items()}
    view_of = next((given[key] for key in given), None)

    def outside(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in back:
            return back[id(value)]
        if to_host:
            return value
        if view_of is not None:
            for host_key, host in hosts.items():
                same = value.untyped_storage()._cdata == host.untyped_storage()._cdata
                if same and value.dtype == host.dtype and value.numel():
                    return _strided(
                        given[host_key], value.shape, value.stride(), value.storage_offset()
                    )
        return _device(value)

    return _mapped(outside, result)


def _copy_(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    if _is_ours(target):
        _host(target).copy_(_host(source) if _is_ours(source) else source)
    else:
        if _on and not non_blocking:
            _waits["to the host"] += 1
        target.copy_(_host(source))
    return target


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> Any:
    return _copy_(target, source, non_blocking)


def _empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    pin_memory: Any = None,
) -> torch.Tensor:  # fmt: skip
    return _device(torch.empty_strided(size, stride, dtype=dtype).zero_())


def _empty(size: Any, **options: Any) -> torch.Tensor:
    return _device(torch.zeros(tuple(size), dtype=options.get("dtype")))


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Counts what waits for the device while a block runs."""
    global _on
    _waits.clear()
    _on = True
    try:
        yield _waits
    finally:
        _on = False


# Torch does not keep these alive.
_HOOK = backend_registration._DummyPrivateUse1Hook()
_GUARD = backend_registration._DummyDeviceGuard()
_libraries: list[Any] = []


def register() -> None:
    """Makes the device known to torch, for the life of this process."""
    backend_registration._setup_privateuseone_for_python_backend(
        rename="standin", backend_module=_Module(), hook=_HOOK, device_guard=_GUARD
    )
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(_fallback, "PrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    aten.impl("empty_strided", _empty_strided, "PrivateUse1")
    aten.impl("empty.memory_format", _empty, "PrivateUse1")
    aten.impl("_copy_from", _copy_from, "PrivateUse1")
    aten.impl("_lazy_clone", lambda each: _device(_host(each)), "PrivateUse1")
    for name in _WHOLE:
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        aten.impl(name, partial(_fallback, op), "PrivateUse1")
    _libraries.extend([everything, aten])
