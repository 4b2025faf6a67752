"""Several copies of a batch as one: which dimension of what counts rows, and whether rows mix.

Nothing is declared. The base is run once more between two copies of the source, or of itself with
changes: the dimension that is three times as long counts rows, and the base must be as it was. It
stands in the middle because rows may depend on the first of a batch, or on the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.torch_private import version_of

COPIES: Final = 3  # in the run that shows how rows are laid out; the base is the second
_NOISE = 1e-4
_OF_PRECISION = 8  # roundings to a half that may add up: 0.06 of a bfloat16
_PLAIN = (type(None), bool, int, float, str)

Dims = tuple[int | None, ...]
"""For each tensor of a value the dimension that counts rows; None where none does."""


@dataclass
class Layout:
    """Where rows are: along which dimension of inputs, of what calls return, and of the output."""

    inputs: int = 0
    dims: dict[str, Dims] = field(default_factory=dict)  # by address
    output: Dims | None = None  # None: the metric takes any number of rows


def repeated_inputs(inputs: Inputs, rows: int, dim: int, copies: int) -> Inputs:
    """The inputs with every row of the batch so many times; tensors without rows stay."""

    def repeat(tensor: torch.Tensor) -> torch.Tensor:
        return repeated(tensor, dim if has_rows(tensor, rows, dim) else None, copies)

    return mapped_inputs(repeat, inputs)


def mapped_inputs(function: Callable[[torch.Tensor], torch.Tensor], inputs: Inputs) -> Inputs:
    """Inputs with a function applied to each tensor."""
    return Inputs(map_tensors(function, inputs.args), map_tensors(function, dict(inputs.kwargs)))


def has_rows(tensor: torch.Tensor, rows: int, dim: int) -> bool:
    """Whether an input has a row for each sample along a dimension."""
    return tensor.ndim > dim and tensor.shape[dim] == rows


def repeated(tensor: torch.Tensor, dim: int | None, copies: int) -> torch.Tensor:
    """A tensor, so many times along a dimension; one without rows is itself."""
    if dim is None or copies == 1:
        return tensor
    times = [1] * tensor.ndim
    times[dim] = copies
    return tensor.repeat(times)


def beside_another(inputs: Inputs, rows: int, dim: int) -> Inputs:
    """The inputs between two copies with changes: reversed texts, other numbers."""

    def joined(tensor: torch.Tensor) -> torch.Tensor:
        if not has_rows(tensor, rows, dim):
            return tensor
        other = tensor
        if tensor.is_floating_point():
            other = tensor.flip(-1) * 0.5 + 0.1
        elif tensor.ndim > 1 and tensor.dtype != torch.bool:
            other = tensor.flip(-1)
        return torch.cat([other, tensor, other], dim)

    return mapped_inputs(joined, inputs)


def beside(inputs: Inputs, other: Inputs, rows: int, dim: int) -> Inputs | None:
    """The inputs between others, twice; None where these differ in more than the rows."""
    ones, twos = ((given.args, dict(given.kwargs)) for given in (inputs, other))
    mine, theirs = tensors(ones), tensors(twos)
    if [path for path, _ in mine] != [path for path, _ in theirs] or _rest(ones) != _rest(twos):
        return None
    pairs = [(one, two) for (_, one), (_, two) in zip(mine, theirs, strict=True)]
    for one, two in pairs:
        if (one.shape, one.dtype, one.device) != (two.shape, two.dtype, two.device):
            return None
        if not has_rows(one, rows, dim) and not torch.equal(one, two):
            return None
    each = iter(pairs)

    def joined(_: torch.Tensor) -> torch.Tensor:
        one, two = next(each)
        return torch.cat([two, one, two], dim) if has_rows(one, rows, dim) else one

    return mapped_inputs(joined, inputs)


def _rest(value: Any) -> Any:
    """A value without its tensors, to compare: plain data, and the identities of objects."""

    def known(part: Any) -> Any:
        return type(part), part if isinstance(part, _PLAIN) else id(part)

    return map_tensors(lambda _: None, value, known)


def row_dims(alone: Any, several: Any) -> Dims | None:
    """The dimension of rows of each tensor, from a run of several copies; None: it is unclear."""
    ones, twos = [t for _, t in tensors(alone)], [t for _, t in tensors(several)]
    if len(ones) != len(twos):
        return None
    dims: list[int | None] = []
    for one, two in zip(ones, twos, strict=True):
        if one.ndim != two.ndim:
            return None
        differ = [dim for dim in range(one.ndim) if one.shape[dim] != two.shape[dim]]
        if len(differ) > 1 or any(two.shape[dim] != COPIES * one.shape[dim] for dim in differ):
            return None
        dims.append(differ[0] if differ else None)
    return tuple(dims)


def split_cells(value: Any, dims: Dims, cell: int, rows: int) -> Any:
    """The rows of one cell in the output of a run of several."""
    each = iter(dims)

    def part(tensor: torch.Tensor) -> torch.Tensor:
        dim = next(each)
        return tensor if dim is None else tensor.narrow(dim, cell * rows, rows)

    return map_tensors(part, value)


@dataclass
class Repeated:
    """What a call returned in the base run, for runs of several copies; kept between runs."""

    value: Any
    dims: Dims
    _copies: int = 0
    _made: Any = None
    _versions: tuple[int, ...] = ()

    def of(self, copies: int) -> Any:
        """The value for so many copies. What somebody has written to is made again."""
        if self._made is None or self._copies != copies or self._versions != versions(self._made):
            dims = iter(self.dims)
            # Always a copy: the model may write to it, and the recording must stay.
            self._made = map_tensors(lambda t: _own(t, next(dims), copies), self.value)
            self._copies = copies
            self._versions = versions(self._made)
        return self._made


def _own(tensor: torch.Tensor, dim: int | None, copies: int) -> torch.Tensor:
    new = repeated(tensor, dim, copies)
    return new.clone() if new is tensor else new


def versions(value: Any) -> tuple[int, ...]:
    """How often each tensor of a value was written to."""
    return tuple(version_of(t) for _, t in tensors(value) if not t.is_inference())


def noise_of(output: Any) -> float:
    """How far numbers from what a model returned may be off, as a part of them."""
    kinds = {tensor.dtype for _, tensor in tensors(output) if tensor.is_floating_point()}
    return max([_NOISE, *(_OF_PRECISION * torch.finfo(kind).eps for kind in kinds)])


def close(one: torch.Tensor, two: torch.Tensor, noise: float = _NOISE) -> bool:
    """Whether numbers are the same but for the noise of other kernels for other batch sizes."""
    if one.shape != two.shape:
        return False
    one, two = one.double(), two.double()
    scale = max(float(one.abs().nan_to_num(posinf=0).max()), 1e-30) if one.numel() else 1.0
    return torch.allclose(one, two, rtol=noise, atol=noise * scale, equal_nan=True)
