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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from nethook.addresses.paths import show_path
from nethook.editing import edits as catalogue
from nethook.editing.edits import Edit, Limit
from nethook.editing.plan import Entry, Quantity, read
from nethook.errors import NethookError, RecipeError

_VERSION = 1
_MOST_BYTES = 16_000_000  # of JSON; a recipe of thousands of edits is far below
_FIELDS = {"quantity", "pattern", "path", "edit", "arguments", "calls"}
_EDITS = {
    name: value
    for name, value in vars(catalogue).items()
    if isinstance(value, type) and issubclass(value, Edit) and value is not Edit
}


def save(path: str | Path, **given: Mapping[Any, Any]) -> None:
    """Writes edits to `path` (JSON) and, for tensors in them, a safetensors file beside it.

        nethook.edits.save("calm.json", outputs={"h.3": edits.steer(direction, -2.0)})

    Only edits of the catalogue and patterns that are strings can be saved: a function is code.
    """
    entries = [entry for name, each in given.items() for entry in read(_quantity(name), each)]
    save_entries(path, entries)


def save_entries(path: str | Path, entries: list[Entry]) -> None:
    """Writes entries that were read already."""
    tensors: dict[str, torch.Tensor] = {}
    rows = [_write(entry, tensors) for entry in entries]
    path = Path(path)
    text = json.dumps({"nethook_recipe": _VERSION, "entries": rows}, indent=1)
    if tensors:
        save_file(tensors, _beside(path))
    path.write_text(text, encoding="utf-8")


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
    except (OSError, UnicodeDecodeError, ValueError, RecursionError, SafetensorError) as error:
        raise RecipeError(f"{path.name} is not a recipe that can be read: {error}") from None


def _beside(path: Path) -> Path:
    return path.with_suffix(".safetensors")


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
        if field.name != "calls"
    }
    return {
        "quantity": entry.quantity,
        "pattern": entry.pattern,
        "path": show_path(entry.path),
        "edit": type(entry.edit).__name__,
        "arguments": arguments,
        "calls": _to_data(entry.edit.calls, tensors, entry.what),
    }


def _to_data(value: Any, tensors: dict[str, torch.Tensor], what: str) -> Any:
    if isinstance(value, torch.Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().cpu().contiguous().clone()
        return {"tensor": name}
    if isinstance(value, slice):
        return {"slice": [value.start, value.stop, value.step]}
    if isinstance(value, list | tuple):
        return [_to_data(each, tensors, what) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise RecipeError(f"{value!r} in the edit at {what} cannot be written as data.")


def _load(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise RecipeError(f"{path.name} is larger than {_MOST_BYTES:,} bytes: not a recipe.")
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or "nethook_recipe" not in data:
        raise RecipeError(f"{path.name} is not a recipe: it lacks the field 'nethook_recipe'.")
    if data["nethook_recipe"] != _VERSION:
        raise RecipeError(
            f"{path.name} is a recipe of version {data['nethook_recipe']!r}; this nethook reads "
            f"version {_VERSION}."
        )
    rows = data.get("entries")
    if not isinstance(rows, list):
        raise RecipeError(f"{path.name} lacks its list of entries.")
    tensors = load_file(_beside(path)) if _beside(path).exists() else {}
    given: dict[str, dict[str, dict[str, list[Edit]]]] = {}
    for number, row in enumerate(rows):
        quantity, pattern, inside, edit = _read_row(row, number, tensors)
        sites = given.setdefault(quantity, {})
        sites.setdefault(pattern, {}).setdefault(inside, []).append(edit)
    for name, each in given.items():
        read(_quantity(name), each)  # the paths, too, must be ones that can be read
    return given


def _read_row(
    row: Any, number: int, tensors: Mapping[str, torch.Tensor]
) -> tuple[str, str, str, Edit]:
    if not isinstance(row, dict) or set(row) != _FIELDS:
        raise RecipeError(f"entry {number} must have exactly the fields {sorted(_FIELDS)}.")
    for name in ("quantity", "pattern", "path", "edit"):
        if not isinstance(row[name], str):
            raise RecipeError(f"entry {number}: {name} must be a text.")
    cls = _EDITS.get(row["edit"])
    if cls is None:
        raise RecipeError(f"entry {number}: {row['edit']!r} is not one of nethook.edits.")
    arguments = row["arguments"]
    names = {field.name for field in dataclasses.fields(cls)} - {"calls"}
    if not isinstance(arguments, dict) or set(arguments) != names:
        raise RecipeError(
            f"entry {number}: {row['edit']} has the arguments {sorted(names)}, all of them."
        )
    try:
        values = {name: _from_data(each, tensors) for name, each in arguments.items()}
        calls: Limit = _from_data(row["calls"], tensors)
        edit = cls(**values, calls=calls)
        edit.check()
    except NethookError as error:
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
        if three and all(part is None or type(part) is int for part in parts):
            return slice(*parts)
        raise RecipeError("a value that is neither a number, a text, a tensor nor a slice.")
    if isinstance(value, list):
        return [_from_data(each, tensors) for each in value]
    return value


def _quantity(name: str) -> Quantity:
    known = [each for each in get_args(Quantity) if each != "calls"]
    if name not in known:
        raise RecipeError(f"{name!r} is not one of {', '.join(known)}.")
    return name  # type: ignore[return-value]
