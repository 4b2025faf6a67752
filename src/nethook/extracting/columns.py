"""The columns of a table of features: tensors with one row per sample, and texts.

A text column is stored as two tensors, since safetensors holds nothing else: `NAME.text`, all texts
in UTF-8 one after the other, and `NAME.ends`, where each of them ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import torch

from nethook.errors import FeatureShapeError, NotFeaturesError
from nethook.extracting.batches import Column
from nethook.extracting.shard import DTYPES, Stored, dtype_code

PREFIX = "features:"  # before the address of a site, so that no site is taken for the labels
NUMBERS = "index"  # the number of each sample in the data set, or in the order of arrival
TEXT, ENDS = ".text", ".ends"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a column holds for each sample: a tensor of one type and shape, or a text (None)."""

    dtype: torch.dtype | None
    shape: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        """The bytes of one row; a text counts as nothing."""
        return 0 if self.dtype is None else torch.Size(self.shape).numel() * self.dtype.itemsize

    def to_dict(self) -> dict[str, Any]:
        """The kind as plain data."""
        if self.dtype is None:
            return {"dtype": "text"}
        return {"dtype": dtype_code(self.dtype), "shape": list(self.shape)}

    @classmethod
    def from_dict(cls, data: Any) -> Kind:
        """The kind that plain data describe."""
        if data == {"dtype": "text"}:
            return cls(None)
        if isinstance(data, dict) and set(data) == {"dtype", "shape"}:
            code, shape = data["dtype"], data["shape"]
            sizes = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
            if sizes and isinstance(code, str) and code in DTYPES:
                return cls(DTYPES[code], tuple(shape))
        raise NotFeaturesError("the index describes a column whose type or shape does not exist.")

    def __str__(self) -> str:
        if self.dtype is None:
            return "text"
        return f"{str(self.dtype).removeprefix('torch.')} {self.shape}"


def kind_of(column: Column) -> Kind:
    """What a column of a batch holds."""
    if isinstance(column, list):
        return Kind(None)
    return Kind(column.dtype, tuple(column.shape[1:]))


def storable(value: Column, name: str, rows: int | None) -> Column:
    """A column of a batch as it can be stored: on the CPU, in one piece, in memory of its own."""
    if isinstance(value, torch.Tensor):
        _check_tensor(value, name)
        if value.dim() == 0:
            raise FeatureShapeError(f"{name} of a batch are a single number, not one per sample.")
    if rows is not None and len(value) != rows:
        raise FeatureShapeError(
            f"{name} have {len(value)} rows in a batch of {rows} samples. The first dimension must "
            "be the sample: turn it there with transform=, such as transform=lambda t: "
            "t.transpose(0, 1)."
        )
    if isinstance(value, list):
        return value
    copy = torch.empty(value.shape, dtype=value.dtype)  # a view would keep all behind it alive
    return copy.copy_(value.detach())


def _check_tensor(value: torch.Tensor, name: str) -> None:
    reason = None
    if value.device.type == "meta":
        reason = "on the meta device, which holds no values"
    elif value.layout is not torch.strided or value.is_nested:
        reason = "sparse or nested: make it dense with transform="
    elif dtype_code(value.dtype) is None:
        reason = f"of type {value.dtype}, which safetensors cannot hold: pass dtype=torch.float32"
    if reason is not None:
        raise FeatureShapeError(f"{name} cannot be stored: it is {reason}.")


def to_tensors(name: str, parts: Sequence[Column]) -> dict[str, list[torch.Tensor]]:
    """A column as the tensors that a shard holds, each in parts."""
    if not isinstance(parts[0], list):
        return {name: [piece for piece in parts if isinstance(piece, torch.Tensor)]}
    encoded = [text.encode("utf-8", "surrogatepass") for texts in parts for text in texts]
    joined = bytearray(b"".join(encoded))
    text = torch.frombuffer(joined, dtype=torch.uint8) if joined else torch.empty(0).byte()
    ends = torch.tensor(list(accumulate(map(len, encoded))), dtype=torch.int64)
    return {name + TEXT: [text], name + ENDS: [ends]}


def check_stored(kinds: Mapping[str, Kind], rows: int, stored: Mapping[str, Stored]) -> str | None:
    """What is wrong with the tensors of a shard that is to hold these columns; None if nothing."""
    left = dict(stored)
    for name, kind in kinds.items():
        if kind.dtype is not None:
            tensor = left.pop(name, None)
            wanted = (kind.dtype, (rows, *kind.shape))
            if tensor is None or (tensor.dtype, tensor.shape) != wanted:
                return f"{name!r} is not the {kind} of {rows} rows that the index promises"
            continue
        text, ends = left.pop(name + TEXT, None), left.pop(name + ENDS, None)
        bytes_ = text is not None and text.dtype is torch.uint8 and len(text.shape) == 1
        offsets = ends is not None and (ends.dtype, ends.shape) == (torch.int64, (rows,))
        if not bytes_ or not offsets:
            return f"{name!r} is not the text of {rows} rows that the index promises"
    return f"{next(iter(left))!r} is not in the index" if left else None


def read_text(tensors: Mapping[str, torch.Tensor], name: str, row: int) -> str:
    """One text of a mapped shard."""
    text, ends = tensors[name + TEXT], tensors[name + ENDS]
    start, end = int(ends[row - 1]) if row else 0, int(ends[row])
    if not 0 <= start <= end <= len(text):
        raise NotFeaturesError(f"the text {name!r} of row {row} lies outside of its shard.")
    try:
        return bytes(text[start:end].numpy()).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise NotFeaturesError(f"the text {name!r} of row {row} is not UTF-8.") from None
