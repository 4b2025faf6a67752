"""What results of studies share: a table, files, and plain data. Files hold no code."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch

from nethook.errors import ResultError
from nethook.interp.results.files import read_result, write_result

if TYPE_CHECKING:
    from nethook.drawing.data import Spec
    from nethook.text.table import Table


class Result:
    """A frozen dataclass of tensors, texts and numbers that can be shown, saved and loaded.

    A subclass names its `_FORMAT` and makes its `table()` and the `spec()` of its figure. Fields
    are tensors, mappings from a text to a tensor, texts, numbers, None, or tuples of texts and
    numbers.
    """

    _FORMAT: ClassVar[str]

    def table(self) -> Table:
        """The result as a table."""
        raise NotImplementedError

    def spec(self) -> Spec:
        """The figure as plain data."""
        raise NotImplementedError

    def figure(self, *, theme: str = "light") -> Any:
        """A Plotly figure, on a `light` or a `dark` background."""
        from nethook.drawing.rendering.render import figure

        return figure(self.spec(), theme)

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain data: tensors are nested lists."""
        return {field.name: _plain(getattr(self, field.name)) for field in _fields(self)}

    def save(self, path: str | Path) -> None:
        """Writes `path` (JSON) and a safetensors file beside it; `load` reads them."""
        plain: dict[str, Any] = {}
        tensors: dict[str, torch.Tensor] = {}
        for field in _fields(self):
            value = getattr(self, field.name)
            if isinstance(value, torch.Tensor):
                tensors[field.name] = value
            elif isinstance(value, dict) and _holds_tensors(value):
                plain[field.name] = {"tensors": list(value)}
                tensors |= {f"{field.name}/{n}": each for n, each in enumerate(value.values())}
            else:
                plain[field.name] = value
        write_result(Path(path), self._FORMAT, plain, tensors)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` has written; nothing in the files is run."""
        plain, tensors = read_result(Path(path), cls._FORMAT)
        names = {field.name for field in _fields(cls)}
        own = {name for name in tensors if "/" not in name}
        if names != set(plain) | own or set(plain) & own:
            raise ResultError(
                f"{Path(path).name} must have exactly the fields {sorted(names)}; got "
                f"{sorted(set(plain) | own)}."
            )
        given: dict[str, Any] = {name: tensors[name] for name in own}
        for name, value in plain.items():
            given[name] = _loaded(name, value, tensors)
        try:
            made = cls(**given)
            made.table()  # what cannot be shown was not saved by `save`
        except (TypeError, ValueError, KeyError, IndexError, RuntimeError, AttributeError) as error:
            raise ResultError(
                f"{Path(path).name} is not a {cls.__name__}: {json.dumps(str(error))[:120]}"
            ) from None
        return made


def _fields(result: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(result)


def _holds_tensors(value: dict[Any, Any]) -> bool:
    return bool(value) and all(isinstance(each, torch.Tensor) for each in value.values())


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value


def _loaded(name: str, value: Any, tensors: dict[str, torch.Tensor]) -> Any:
    if isinstance(value, dict):
        keys = value.get("tensors")
        if set(value) != {"tensors"} or not isinstance(keys, list):
            raise ResultError(f"{name} must be a mapping of tensors; it is not.")
        if any(f"{name}/{number}" not in tensors for number in range(len(keys))):
            raise ResultError(f"tensors of {name} are missing.")
        return {str(key): tensors[f"{name}/{number}"] for number, key in enumerate(keys)}
    if isinstance(value, list):
        return tuple(_loaded(name, each, tensors) for each in value)
    return value
