"""The file of a flight recorder: a batch, random states and weights, and how they belong together.

One safetensors file beside the run, with JSON in its header: data, and never code. Values that are
neither tensors nor plain data are left out, and said to be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from nethook.errors import NoSuchRunError, NotARunError
from nethook.files import is_file, replacing
from nethook.stats.memory import bytes_held
from nethook.stats.native import readable
from nethook.stats.repeats import unexpanded
from nethook.stats.shards import is_shared
from nethook.tracing.objects import NotRecorded

VERSION: Final = 1
_KEY: Final = "nethook_flight"
_MOST_TEXT: Final = 1 << 24
# What a safetensors file has a name for.
_SAVED: Final = frozenset(
    getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "complex64"),
    )
)

# What reading a damaged file raises: its JSON may be of any form, its tensors of any type.
_FAILURES: Final = (
    SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError,
    MemoryError,
)  # fmt: skip

WEIGHTS_CAP: Final = 1 << 30
"""Bytes of weights that are saved; larger models are replayed with the weights they have."""


@dataclass
class Flight:
    """What was saved at the first NaN: the finding, and all that a replay needs."""

    finding: dict[str, Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    random: dict[str, torch.Tensor] = field(default_factory=dict)
    autocast: dict[str, str] = field(default_factory=dict)
    weights: dict[str, torch.Tensor] = field(default_factory=dict)
    training: dict[str, bool] = field(default_factory=dict)  # of modules, by name
    loss: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)  # arguments that could not be saved


def flight_path(run: str | Path) -> Path:
    """The file that belongs to a run."""
    path = Path(run)
    return path.with_name(f"{path.stem}.flight.safetensors")


def save(path: Path, flight: Flight) -> list[str]:
    """Writes the file; it is there as a whole or not at all. Returns what it could not hold."""
    tensors: dict[str, torch.Tensor] = {}
    left_out: list[str] = []
    described = {
        _KEY: VERSION,
        "finding": flight.finding,
        "args": _write(list(flight.args), "args", tensors, left_out),
        "kwargs": _write(flight.kwargs, "kwargs", tensors, left_out),
        "random": _write(flight.random, "random", tensors, left_out),
        "weights": _write(flight.weights, "weights", tensors, left_out),
        "loss": _write(flight.loss, "loss", tensors, left_out),
        "autocast": flight.autocast,
        "training": flight.training,
        "left_out": left_out,
    }
    text = json.dumps(described)
    with replacing(path) as temporary:
        save_file(tensors, temporary, metadata={_KEY: text})
    return left_out


def load(path: str | Path) -> Flight:
    """Reads the file of a run, or the file itself.

    Raises:
        NoSuchRunError: there is none.
        NotARunError: it is another kind of file, or damaged.
    """
    given = Path(path)
    flight_file = given if given.suffix == ".safetensors" else flight_path(given)
    if not is_file(flight_file):
        raise NoSuchRunError(
            f"There is no {str(flight_file)!r}: a run has such a file only after nethook.watch has "
            "seen a NaN or an infinity in it, with `batches` above 0."
        )
    try:
        with safe_open(flight_file, framework="pt") as file:
            text = (file.metadata() or {}).get(_KEY, "")
            if not text or len(text) > _MOST_TEXT:
                raise NotARunError(f"{str(flight_file)!r} was not written by nethook.watch.")
            described = json.loads(text)
            return _read_all(described, file, flight_file)
    except _FAILURES as error:
        if isinstance(error, NotARunError):
            raise
        raise NotARunError(f"{str(flight_file)!r} cannot be read: {error}") from None


def _read_all(described: Any, file: Any, path: Path) -> Flight:
    if not isinstance(described, dict) or described.get(_KEY) != VERSION:
        version = described.get(_KEY) if isinstance(described, dict) else None
        raise NotARunError(
            f"{str(path)!r} has version {version!r}; this nethook reads version {VERSION}."
        )
    names = set(file.keys())

    def tensor(name: object) -> torch.Tensor:
        if name not in names:
            raise NotARunError(f"{str(path)!r} names a tensor that it does not have: {name!r}.")
        return file.get_tensor(name)  # type: ignore[no-any-return]

    parts = {
        name: _read(described[name], tensor)
        for name in ("args", "kwargs", "random", "weights", "loss")
    }
    return Flight(
        dict(described["finding"]),
        tuple(parts["args"]),
        dict(parts["kwargs"]),
        dict(parts["random"]),
        {str(device): str(dtype) for device, dtype in described["autocast"].items()},
        dict(parts["weights"]),
        {str(name): bool(flag) for name, flag in described["training"].items()},
        dict(parts["loss"]),
        [str(name) for name in described["left_out"]],
    )


# Plain data stands for itself in JSON; everything else is an object with one of these keys.
_TENSOR, _TUPLE, _MAPPING, _LEFT_OUT = "tensor", "tuple", "mapping", "left_out"


def _write(value: Any, name: str, tensors: dict[str, torch.Tensor], left_out: list[str]) -> Any:
    if isinstance(value, torch.Tensor):
        kind = _why_not(value)
        if not kind:
            # A file holds no aliases, so every tensor is written from memory of its own; one that
            # is expanded, as what it was expanded from.
            stored = unexpanded(value.detach())
            tensors[name] = stored.cpu().contiguous().clone()
            shape = {} if stored.shape == value.shape else {"shape": list(value.shape)}
            return {_TENSOR: name, "grad": value.requires_grad} | shape
        left_out.append(f"{name} ({kind})")
        return {_LEFT_OUT: kind}
    elif value is None or isinstance(value, bool | int | float | str):
        return value
    elif isinstance(value, list):
        return [
            _write(item, f"{name}.{index}", tensors, left_out) for index, item in enumerate(value)
        ]
    elif type(value) is tuple:
        return {_TUPLE: _write(list(value), name, tensors, left_out)}
    elif isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {
            _MAPPING: {
                key: _write(item, f"{name}.{key}", tensors, left_out) for key, item in value.items()
            }
        }
    kind = (value.kind if isinstance(value, NotRecorded) else type(value)).__name__
    left_out.append(f"{name} ({kind})")
    return {_LEFT_OUT: kind}


def _why_not(tensor: torch.Tensor) -> str:
    """Why a tensor cannot be saved, in a word or two; empty where it can be."""
    kind = readable.kind(tensor)
    # A subclass with memory of its own is saved as the plain tensor that it is as well.
    as_strided = kind == "subclass" and tensor.layout is torch.strided and not is_shared(tensor)
    if kind is not None and not as_strided:
        return f"{kind} tensor"
    if tensor.dtype not in _SAVED:
        return f"tensor of {str(tensor.dtype).removeprefix('torch.')}"
    if unexpanded(tensor).nbytes > WEIGHTS_CAP:
        return "tensor of overlapping dimensions"
    return ""


def _read(value: Any, tensor: Any) -> Any:
    if isinstance(value, list):
        return [_read(item, tensor) for item in value]
    if not isinstance(value, dict):
        return value
    if _TENSOR in value:
        stored = tensor(value[_TENSOR])
        stored = stored.expand(value["shape"]) if "shape" in value else stored
        return stored.requires_grad_(bool(value.get("grad")))
    if _TUPLE in value:
        return tuple(_read(value[_TUPLE], tensor))
    if _MAPPING in value:
        return {str(key): _read(item, tensor) for key, item in value[_MAPPING].items()}
    return None


def weights_of(module: nn.Module) -> dict[str, torch.Tensor] | None:
    """Parameters and buffers by name.

    None where there are more bytes than are saved, and where ranks hold parts of them only.
    """
    weights: dict[str, torch.Tensor] = {}
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if is_shared(tensor):
            return None
        weights[name] = tensor.detach()
    if sum(bytes_held(tensor) for tensor in weights.values()) > WEIGHTS_CAP:
        return None
    return weights
