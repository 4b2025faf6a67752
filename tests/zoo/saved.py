"""Comparing what a program has saved, byte for byte."""

from __future__ import annotations

import copy
import io
import pickle
import re
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

# A tensor in a plain pickle is in torch's old format, which names a storage by its address.
_ADDRESS = re.compile(rb"\d{14,15}(?=q)")
_MEMORY = re.compile("0x[0-9a-f]+")


def without_addresses(pickled: bytes) -> bytes:
    """A pickle with addresses of memory numbered in order: what is shared can still be seen."""
    numbers: dict[bytes, int] = {}
    return _ADDRESS.sub(lambda at: b"#%d" % numbers.setdefault(at[0], len(numbers)), pickled)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, archives by their members, with the bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                found |= {f"{name}: {each}": archive.read(each) for each in archive.namelist()}
        elif path.is_file():
            found[name] = without_addresses(path.read_bytes())
    return found


class _Storages:
    """For picklers: storages by number and size. Their bytes are in the file of torch.save."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._numbers: dict[int, int] = {}

    def persistent_id(self, value: object) -> Any:
        if not isinstance(value, torch.storage.TypedStorage):
            return None
        storage = value._untyped_storage
        number = self._numbers.setdefault(storage._cdata, len(self._numbers))
        return number, str(value.dtype), storage.nbytes()


class _InC(_Storages, pickle.Pickler):
    pass


class _InPython(_Storages, pickle._Pickler):  # type: ignore[name-defined]
    pass


class _ByName(_InC):
    """Pickles what `pickle` refuses: functions and classes without a name of their own."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, types.FunctionType | type) and "<" in value.__qualname__:
            return str, (value.__qualname__,)
        return NotImplemented


def _pickled(kind: Any, value: object, protocol: int) -> bytes:
    file = io.BytesIO()
    kind(file, protocol).dump(value)
    return file.getvalue()


def _torch_saved(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


_WAYS: dict[str, Callable[[nn.Module], object]] = {
    "torch.save": _torch_saved,
    "pickle": lambda model: _pickled(_InC, model, 5),
    "pickle in Python": lambda model: _pickled(_InPython, model, 0),
    "pickle by name": lambda model: _pickled(_ByName, model, 4),
    "a deep copy": lambda model: _torch_saved(copy.deepcopy(model)),
    "state_dict": lambda model: _torch_saved(model.state_dict()),
    "number of the next hook": lambda _: RemovableHandle.next_id,
}


def saved_in_every_way(model: nn.Module) -> dict[str, object]:
    """What is written of a model, or the error where torch refuses, by the way it is saved."""
    if any(isinstance(each, torch.jit.ScriptModule) for each in model.modules()):
        # Pickling one ends the process in torch 2.13.
        return {"state_dict": _WAYS["state_dict"](model)}
    found: dict[str, object] = {}
    for name, write in _WAYS.items():
        try:
            found[name] = write(model)
        except Exception as error:
            found[name] = f"{type(error).__name__}: {_MEMORY.sub('…', str(error))}"
    return found
