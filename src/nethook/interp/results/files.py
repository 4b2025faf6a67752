"""Results as two files: JSON for what is plain, safetensors for the numbers. Never a pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize

from nethook.errors import ResultError
from nethook.files import not_a_file, read_file, write_file

_VERSION = 1
_MOST_BYTES = 256_000_000  # of JSON; names of a million cells are far below


def write_result(
    path: Path, kind: str, plain: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> None:
    """Writes a result of a kind to `path` and the file beside it, in a new folder if need be."""
    text = json.dumps({kind: _VERSION, **plain}, indent=1)
    own = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(_beside(path), serialize(own))
        write_file(path, text.encode())
    except OSError as error:
        raise ResultError(f"{path.name} cannot be written: {error}") from error


def read_result(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Reads what `write_result` has written: what is plain, and the tensors."""
    try:
        plain = json.loads(read_file(path, most=_MOST_BYTES).decode())
        if not isinstance(plain, dict) or plain.pop(kind, None) != _VERSION:
            raise ResultError(
                f"{path.name} must be a file that this nethook has saved, with {kind!r}: "
                f"{_VERSION}; it is not."
            )
        beside = _beside(path)
        if kind_of_file := not_a_file(beside):  # a pipe would never answer
            raise ResultError(f"{beside.name} is {kind_of_file}, where its numbers should be.")
        return plain, load_file(beside)
    except ResultError:
        raise
    except (OSError, ValueError, RecursionError, MemoryError, SafetensorError) as error:
        raise ResultError(f"{path.name} cannot be read: {error}") from None


def first_name(path: Path) -> str:
    """What a saved result begins with: its kind."""
    try:
        plain = json.loads(read_file(path, most=_MOST_BYTES).decode())
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise ResultError(f"{path.name} cannot be read: {error}") from None
    return str(next(iter(plain), "")) if isinstance(plain, dict) else ""


def _beside(path: Path) -> Path:
    return path.with_suffix(".safetensors")
