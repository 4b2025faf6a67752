"""Recipes: edits as two files, JSON for what is done where and safetensors for the tensors in it.

    {"nethook_recipe": 1, "entries": [
        {"quantity": "outputs", "pattern": "fc1", "path": "", "edit": "scale",
         "arguments": {"factor": 0.5}, "calls": null}]}

A tensor is `{"tensor": "0"}`, its name in the safetensors file beside. Loading runs no code: names
are looked up in the catalogue, and everything else is checked before it is used.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize

from nethook.addresses.paths import show_path
from nethook.editing import catalogue
from nethook.editing.answers import read_answers
from nethook.editing.catalogue import Edit, Limit
from nethook.editing.entries import Entry, Quantity, read
from nethook.errors import NethookError, RecipeError
from nethook.files import exists, not_a_file, read_file, write_file

_VERSION = 1
_MOST_BYTES = 16_000_000  # of JSON; a recipe of thousands of edits is far below
_LARGEST = 1 << 63  # torch has no larger whole numbers
_FIELDS = {"quantity", "pattern", "path", "edit", "arguments", "calls"}
_LIMITS = (
    "rows",
    "positions",
    "phase",
)  # fields of entries that have such limits, and of no others
_EDITS = {
    name: value
    for name, value in vars(catalogue).items()
    if isinstance(value, type) and issubclass(value, Edit) and value not in (Edit, catalogue.only)
}


def save(path: str | Path, **given: Mapping[Any, Any]) -> None:
    """Writes edits to `path` (JSON) and, for tensors in them, a safetensors file beside it.

        nethook.edits.save("calm.json", outputs={"h.3": edits.steer(direction, -2.0)})

    Only edits of the catalogue and patterns that are strings can be saved: a function is code.
    """
    entries = [entry for name, by_pattern in given.items() for entry in _entries(name, by_pattern)]
    save_entries(path, entries)


def _entries(name: str, by_pattern: Mapping[Any, Any]) -> list[Entry]:
    quantity = _quantity(name)
    return read_answers(by_pattern) if quantity == "answers" else read(quantity, by_pattern)


def save_entries(path: str | Path, entries: list[Entry]) -> None:
    """Writes entries that were read already."""
    tensors: dict[str, torch.Tensor] = {}
    rows = [_write(entry, tensors) for entry in entries]
    path = Path(path)
    text = json.dumps({"nethook_recipe": _VERSION, "entries": rows}, indent=1)
    try:
        if tensors:
            write_file(_beside(path), serialize(tensors))
        write_file(path, text.encode())
    except (OSError, ValueError) as error:
        raise RecipeError(f"{_shown(path)} cannot be written: {error}") from error


def load(path: str | Path) -> dict[str, Any]:
    """Reads a recipe: the arguments that `nethook.edit` takes after the model.

        with nethook.edit(model, **nethook.edits.load("calm.json")):
            ...

    Raises:
        RecipeError: for a file that is broken, foreign, or asks for anything but edits.
    """
    path = Path(path)
    try:
        return _load(path)
    except RecipeError:
        raise
    except (OSError, ValueError, RecursionError, MemoryError, SafetensorError) as error:
        raise RecipeError(f"{_shown(path)} is not a recipe that can be read: {error}") from None


def _beside(path: Path) -> Path:
    return path.with_suffix(".safetensors")


def _shown(path: Path) -> str:
    name = path.name
    return name if name.isprintable() and len(name) < 100 else f"{name!r:.100}"


def _write(entry: Entry, tensors: dict[str, torch.Tensor]) -> dict[str, Any]:
    if not isinstance(entry.edit, Edit):
        raise RecipeError(
            f"the edit at {entry.what} is a function, and a recipe is data, never code. Use one of "
            "nethook.edits in its place."
        )
    if not isinstance(entry.pattern, str):
        raise RecipeError(
            f"the pattern {entry.pattern!r} is not a string: a recipe names its sites by glob."
        )
    arguments = {
        field.name: _to_data(getattr(entry.edit, field.name), tensors, entry.what)
        for field in dataclasses.fields(entry.edit)
        if field.name not in ("calls", *_LIMITS)
    }
    limits = {name: getattr(entry.edit, name) for name in _LIMITS}
    return {
        "quantity": entry.quantity,
        "pattern": entry.pattern,
        "path": show_path(entry.path),
        "edit": type(entry.edit).__name__,
        "arguments": arguments,
        "calls": _to_data(entry.edit.calls, tensors, entry.what),
        **{n: _to_data(v, tensors, entry.what) for n, v in limits.items() if v is not None},
    }


def _to_data(value: Any, tensors: dict[str, torch.Tensor], what: str) -> Any:
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, list | tuple):
        return [_to_data(item, tensors, what) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return _number(value)  # what could not be loaded is not saved
    raise RecipeError(f"{value!r} in the edit at {what} cannot be written as data.")


def _load(path: Path) -> dict[str, Any]:
    data = json.loads(read_file(path, most=_MOST_BYTES).decode())
    if not isinstance(data, dict) or "nethook_recipe" not in data:
        raise RecipeError(f"{path.name} is not a recipe: it lacks the field 'nethook_recipe'.")
    if type(data["nethook_recipe"]) is not int or data["nethook_recipe"] != _VERSION:
        raise RecipeError(
            f"{path.name} is a recipe of version {data['nethook_recipe']!r}; this nethook reads "
            f"version {_VERSION}."
        )
    rows = data.get("entries")
    if not isinstance(rows, list):
        raise RecipeError(f"{path.name} lacks its list of entries.")
    tensors = _load_tensors(_beside(path))
    given: dict[str, dict[str, dict[str, list[Edit]]]] = {}
    for number, row in enumerate(rows):
        quantity, pattern, inside, edit = _read_row(row, number, tensors)
        sites = given.setdefault(quantity, {})
        sites.setdefault(pattern, {}).setdefault(inside, []).append(edit)
    for name, by_pattern in given.items():
        _entries(name, by_pattern)  # the paths, too, must be ones that can be read
    return given


def _load_tensors(path: Path) -> Mapping[str, torch.Tensor]:
    if not exists(path):
        return {}
    if kind := not_a_file(path):  # a pipe would never answer
        raise RecipeError(f"{_shown(path)} is {kind}, where the recipe's tensors should be.")
    return load_file(path)


def _read_row(
    row: Any, number: int, tensors: Mapping[str, torch.Tensor]
) -> tuple[str, str, str, Edit]:
    if not isinstance(row, dict) or set(row) - set(_LIMITS) != _FIELDS:
        raise RecipeError(f"entry {number} must have exactly the fields {sorted(_FIELDS)}.")
    for name in ("quantity", "pattern", "path", "edit"):
        if not isinstance(row[name], str):
            raise RecipeError(f"entry {number}: {name} must be a string.")
    cls = _EDITS.get(row["edit"])
    if cls is None:
        raise RecipeError(f"entry {number}: {row['edit']!r} is not one of nethook.edits.")
    arguments = row["arguments"]
    names = {field.name for field in dataclasses.fields(cls)} - {"calls", *_LIMITS}
    if not isinstance(arguments, dict) or set(arguments) != names:
        raise RecipeError(
            f"entry {number}: {row['edit']} has the arguments {sorted(names)}, all of them."
        )
    try:
        values = {name: _from_data(data, tensors) for name, data in arguments.items()}
        calls: Limit = _from_data(row["calls"], tensors)
        limits = {name: _from_data(row[name], tensors) for name in _LIMITS if name in row}
        edit = cls(**values, calls=calls, **limits)
        edit.check()
        _check_index(getattr(edit, "index", None))
    except (NethookError, TypeError) as error:
        raise RecipeError(f"entry {number}: {error}") from None
    return _quantity(row["quantity"]), row["pattern"], row["path"], edit


def _from_data(value: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"tensor"} and isinstance(value["tensor"], str):
            if value["tensor"] not in tensors:
                raise RecipeError(f"the tensor {value['tensor']!r} is missing from its file.")
            return tensors[value["tensor"]]
        parts: Any = value.get("slice")
        three = set(value) == {"slice"} and isinstance(parts, list) and len(parts) == 3
        if three and all(bound is None or type(bound) is int for bound in parts) and parts[2] != 0:
            return slice(*(_number(bound) for bound in parts))
        raise RecipeError(
            "a value must be a number, a string, a tensor or a slice; got another JSON object."
        )
    if isinstance(value, list):
        return [_from_data(item, tensors) for item in value]
    return _number(value)


def _number(value: Any) -> Any:
    """A value that may be a number: of those, one that a tensor can hold."""
    if isinstance(value, float) and math.isnan(value):
        raise RecipeError("a number must not be NaN: every value that it touched would be, too.")
    if type(value) is int and not -_LARGEST <= value < _LARGEST:
        digits = len(str(value)) if abs(value) < 10**100 else "more than 100"
        raise RecipeError(f"a whole number must fit into 64 bits; got one of {digits} digits.")
    return value


def _check_index(index: Any) -> None:
    for item in index if isinstance(index, list | tuple) else ():
        if isinstance(item, slice) and item.step is not None and item.step < 0:
            raise RecipeError("a slice of a tensor cannot go backwards: its step must be positive.")


def _quantity(name: str) -> Quantity:
    names = [quantity for quantity in get_args(Quantity) if quantity != "calls"]
    if name not in names:
        raise RecipeError(f"A quantity must be one of {', '.join(names)}; got {name!r}.")
    return name  # type: ignore[return-value]
