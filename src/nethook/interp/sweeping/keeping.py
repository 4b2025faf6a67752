"""Sweeps that go on where they were broken off: the numbers so far, in two files."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import torch

from nethook.errors import ResultError, SweepError
from nethook.files import exists
from nethook.interp.results.files import read_result, write_result

_FORMAT = "nethook_sweep_part"
_EVERY = 10.0  # seconds between two writings


class Kept:
    """The numbers of a sweep so far, kept beside `path` until it is done."""

    def __init__(self, path: Path, question: dict[str, Any]) -> None:
        self._path = path.with_name(f"{path.stem}.part.json")
        self._question = json.loads(json.dumps(question))
        self._written = time.monotonic()

    def read(self, values: torch.Tensor, done: torch.Tensor) -> float:
        """Fills in what was measured before; the floor that was found then."""
        if not exists(self._path):
            return 0.0
        plain, tensors = read_result(self._path, _FORMAT)
        if plain.get("question") != self._question:
            old = plain.get("question")
            differ = [
                k
                for k in self._question
                if not isinstance(old, dict) or old.get(k) != self._question[k]
            ]
            raise SweepError(
                f"{self._path.name} has a part of another sweep: {', '.join(differ)} differ. "
                "Delete it, or give another `to`."
            )
        if tensors["values"].shape != values.shape or tensors["done"].shape != done.shape:
            raise ResultError(f"{self._path.name} is damaged: its numbers have another shape.")
        values.copy_(tensors["values"])
        done.copy_(tensors["done"])
        return float(plain["floor"])

    def write(self, values: torch.Tensor, done: torch.Tensor, floor: float, *, now: bool) -> None:
        """Writes what there is, if some time has passed since the last writing."""
        if now or time.monotonic() - self._written > _EVERY:
            plain = {"question": self._question, "floor": floor}
            write_result(self._path, _FORMAT, plain, {"values": values, "done": done})
            self._written = time.monotonic()

    def remove(self) -> None:
        """The sweep is done."""
        for path in (self._path, self._path.with_suffix(".safetensors")):
            path.unlink(missing_ok=True)


def digest(*parts: torch.Tensor) -> str:
    """A few letters that stand for numbers: the same question gives the same ones."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(str((part.dtype, tuple(part.shape))).encode())
        hashed.update(part.detach().cpu().double().contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]
