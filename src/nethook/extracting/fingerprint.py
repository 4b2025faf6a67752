"""What an extraction was set up with: what must be the same for another run to go on with it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from nethook.addresses.patterns import flatten
from nethook.stats.repeats import unexpanded

# Bytes of a weight that are hashed together: enough for the speed of the hash, and little memory
# for the copy that a weight on another device or of another layout needs.
_CHUNK = 1 << 24
# Bytes from which on an expanded weight (`x[:1].expand(2**40)`) is hashed as what it was expanded
# from: written out it might have no end. Below that it is hashed as it shows.
_LARGE = 1 << 32
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")  # where an object lies in memory, which means nothing
_LAZY = (UninitializedParameter, UninitializedBuffer)

# How a difference is told.
_WORDS = {
    "model": "the model: its layers or its weights",
    "at": "the sites",
    "samples": "the number of samples",
    "batch_size": "the batch size",
    "world": "the number of processes",
    "dtype": "dtype",
    "pool": "pool",
    "mask": "mask",
    "call": "call",
    "transform": "transform",
    "split": "split",
}


def ranks() -> tuple[int, int]:
    """The rank of this process and how many there are: of a process group, or of `torchrun`."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdigit() and world.isdigit() and int(rank) < int(world):
        return int(rank), int(world)
    return 0, 1


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What differs between two setups, in words."""
    changed = []
    for key in dict.fromkeys([*then, *now]):
        was, is_ = then.get(key), now.get(key)
        if was != is_:
            what = _WORDS.get(key, key)
            changed.append(what if key == "model" else f"{what} ({was} then, {is_} now)")
    return changed


def describe_at(at: Any, model: nn.Module) -> list[str]:
    """The sites that were asked for, as texts that are the same in another process."""
    if isinstance(at, Mapping):
        return sorted(f"{name}{path}" for name, path in at.items())
    names = {id(module): name for name, module in model.named_modules()}
    return sorted(_describe(pattern, names) for pattern in flatten([at]))


def _describe(pattern: Any, names: Mapping[int, str]) -> str:
    if isinstance(pattern, str):
        return pattern
    if isinstance(pattern, re.Pattern):
        return f"re:{pattern.pattern}"
    if isinstance(pattern, nn.Module):
        return names.get(id(pattern), "?")
    return named(pattern) or "?"


def named(function: Any) -> str | None:
    """A function by its name: what it does cannot be compared."""
    if function is None or isinstance(function, str):
        return function
    if isinstance(function, torch.Tensor):
        return f"tensor {tuple(function.shape)}"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{getattr(function, '__module__', '')}.{name}"


def fingerprint(model: nn.Module) -> str:
    """A hash of the model's layers and of all its weights and buffers.

    It reads every weight once (about a second for a gigabyte). Weights that are split over
    processes, or not there yet, count by name, shape and type.
    """
    digest = hashlib.sha256()
    for name, module in model.named_modules():
        extra = _ADDRESS.sub("", module.extra_repr())
        digest.update(f"{name}\0{type(module).__qualname__}\0{extra}\0".encode())
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        digest.update(f"{name}\0{tensor.dtype}\0".encode())
        if isinstance(tensor, _LAZY):
            continue
        digest.update(f"{tuple(tensor.shape)}\0".encode())
        readable = type(tensor) in (torch.Tensor, nn.Parameter, nn.Buffer)
        if readable and tensor.layout is torch.strided and tensor.device.type != "meta":
            _add(digest, tensor.detach())
    return digest.hexdigest()


def _add(digest: Any, tensor: torch.Tensor) -> None:
    if tensor.nbytes > _LARGE:
        tensor = unexpanded(tensor)  # its shape is in the mark already
    flat = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1)
    step = max(1, _CHUNK // max(1, tensor.element_size()))
    for start in range(0, len(flat), step):
        piece = flat[start : start + step].cpu()
        try:
            digest.update(piece.view(torch.uint8).numpy().data)
        except (RuntimeError, TypeError):  # quantised: its numbers in another way
            digest.update(repr(piece.dequantize().tolist()).encode())
