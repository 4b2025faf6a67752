"""The edits that are plain data, public as `nethook.edits`.

Each is a small frozen object that is called with a tensor and returns the new one. It can be
printed, compared, saved in a recipe and loaded again without running code. Every edit takes
`calls=`: the number of the one call, or the slice of calls, of a site that it applies to; `rows=`
and `positions=`: the rows of the batch, and the tokens by their absolute position, that it changes;
`phase=`: tokens of the prompt, tokens that were generated, or all but padding.

    edits.scale(0.5)
    edits.clamp(min=0, calls=slice(1, None))     # from the second call on
    edits.zero(rows=0, positions=[3, -1])        # the fourth and the last token of the first text
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

import torch

from nethook.addresses.nested import tensors
from nethook.editing.limits import Places, check_phase, check_places
from nethook.errors import EditError, OptionError

Number: TypeAlias = float | int
Value: TypeAlias = float | int | torch.Tensor
Limit: TypeAlias = int | slice | None


@dataclass(frozen=True, eq=False, repr=False)
class Edit:
    """An edit that is plain data."""

    calls: Limit = dataclasses.field(default=None, kw_only=True)
    rows: Places = dataclasses.field(default=None, kw_only=True)
    positions: Places = dataclasses.field(default=None, kw_only=True)
    phase: str | None = dataclasses.field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_places("rows", self.rows)
        check_phase(self.phase)
        check_places("positions", self.positions)
        if self.calls is not None and type(self.calls) is not int and type(self.calls) is not slice:
            raise OptionError(
                f"`calls` must be the number of a call or a slice of calls; got {self.calls!r}. "
                "Write calls=0 or calls=slice(1, None)."
            )

    def check(self) -> None:
        """Raises `OptionError` where an argument is not of its type."""
        hints = get_type_hints(type(self))
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not _is(value, hints[field.name]):
                raise OptionError(
                    f"`{field.name}` of {type(self).__name__} must be of type "
                    f"{_type_name(hints[field.name])}; got {value!r:.80}."
                )

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The new value."""
        raise TypeError(f"{type(self).__name__} is not an edit by itself")

    def __eq__(self, other: object) -> bool:
        """Whether `other` is the same edit, tensors compared bit by bit."""
        if type(other) is not type(self):
            return NotImplemented
        fields = (field.name for field in dataclasses.fields(self))
        return all(_same(getattr(self, name), getattr(other, name)) for name in fields)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = ((field.name, getattr(self, field.name)) for field in dataclasses.fields(self))
        limits = ("rows", "positions", "phase")  # which most edits do not have
        given = [f"{n}={v!r}" for n, v in shown if v is not None or n not in limits]
        return f"{type(self).__qualname__}({', '.join(given)})"


def _is(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as far as the types of edits go."""
    if get_origin(hint) in (Union, UnionType):
        return any(_is(value, option) for option in get_args(hint))
    if get_origin(hint) in (Sequence, tuple):
        inner = get_args(hint)[0]
        return isinstance(value, list | tuple) and all(_is(item, inner) for item in value)
    if hint is float:
        return type(value) is float
    return type(value) is hint if hint is int else isinstance(value, hint)


def _type_name(hint: Any) -> str:
    """A type as it is written in code."""
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(_type_name(option) for option in get_args(hint))
    if isinstance(hint, type) and not get_args(hint):
        return "None" if hint is type(None) else hint.__name__
    return str(hint).removeprefix("collections.abc.")


def _same(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
        return one.dtype == two.dtype and torch.equal(one, two)
    return type(one) is type(two) and bool(one == two)


@dataclass(frozen=True, eq=False, repr=False)
class zero(Edit):  # noqa: N801  used like a function
    """Zeros."""

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """Zeros of the same shape; nothing flows back through them."""
        return torch.zeros_like(value)


@dataclass(frozen=True, eq=False, repr=False)
class scale(Edit):  # noqa: N801
    """The value times a factor (a number, or a tensor that broadcasts)."""

    factor: Value

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The product, in the type of the value."""
        return _in_type(value * _like(self.factor, value), value)


@dataclass(frozen=True, eq=False, repr=False)
class add(Edit):  # noqa: N801
    """The value plus another (a number, or a tensor that broadcasts)."""

    other: Value

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The sum, in the type of the value."""
        return _in_type(value + _like(self.other, value), value)


@dataclass(frozen=True, eq=False, repr=False)
class clamp(Edit):  # noqa: N801
    """The value, kept between bounds."""

    min: Number | None = None
    max: Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min is None and self.max is None:
            raise OptionError(
                "`min` or `max` must be a number; got None for both. Write clamp(min=0)."
            )

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The bounded value."""
        return torch.clamp(value, self.min, self.max)


@dataclass(frozen=True, eq=False, repr=False)
class clip_norm(Edit):  # noqa: N801
    """The value, shortened where its norm is larger than `max_norm`.

    With `joint=True` the norm is taken over all sites of the pattern together, as
    `torch.nn.utils.clip_grad_norm_` does over parameters; that needs all of them at once, and so
    works on gradients of parameters only.
    """

    max_norm: Number
    norm_type: Number = 2.0
    joint: bool = False

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The value times min(1, max_norm / (norm + 1e-6))."""
        return value * self.factor(torch.linalg.vector_norm(value, self.norm_type)).to(value.dtype)

    def factor(self, norm: torch.Tensor) -> torch.Tensor:
        """By how much a value of that norm is shortened."""
        # 1e-6 as in `torch.nn.utils.clip_grad_norm_`: the same gradients give the same numbers.
        return (self.max_norm / (norm + 1e-6)).clamp(max=1.0)


@dataclass(frozen=True, eq=False, repr=False)
class noise(Edit):  # noqa: N801
    """The value plus normal noise; with a seed, the same at every application."""

    std: Number
    seed: int | None = None

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The noisy value. Without a seed the noise is drawn from torch's random state."""
        generator = None
        if self.seed is not None:
            generator = torch.Generator(value.device).manual_seed(self.seed)
        drawn = torch.randn(
            value.shape, generator=generator, device=value.device, dtype=value.dtype
        )
        return value + self.std * drawn


@dataclass(frozen=True, eq=False, repr=False)
class replace(Edit):  # noqa: N801
    """Another value altogether: a tensor of a shape that broadcasts to it, or a number."""

    value: Value

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The other value, in the shape and type of the one that was there."""
        other = _like(self.value, value)
        if not isinstance(other, torch.Tensor):
            return torch.full_like(value, other)
        try:
            return other.to(value.dtype).expand(value.shape).clone()
        except RuntimeError:
            raise EditError(
                f"`value` of replace must have a shape that broadcasts to {tuple(value.shape)}; "
                f"got {tuple(other.shape)}. Reshape it, or give a number."
            ) from None


@dataclass(frozen=True, eq=False, repr=False)
class patch(Edit):  # noqa: N801
    """The value that was recorded at the same site and call of another run.

        with nethook.trace(model, "h.3") as clean:
            model(one)
        with nethook.edit(model, outputs={"h.3": edits.patch(clean["h.3"].output)}):
            model(other)

    `source` is a tensor, or several for the calls of a site in their order. `index` limits what
    is taken over, as an index of the value: `(slice(None), 3)` is position 3 of every sample.
    """

    source: torch.Tensor | Sequence[torch.Tensor]
    index: tuple[int | slice, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        index: Any = self.index
        if isinstance(index, list):  # of a recipe; to torch, a list of numbers means rows
            object.__setattr__(self, "index", tuple(index))

    def __call__(self, value: torch.Tensor, call: int = 0) -> torch.Tensor:
        """The recorded value of that call, or the value with a part of it taken over."""
        source = self.source if isinstance(self.source, torch.Tensor) else self._of_call(call)
        if source.shape != value.shape:
            raise EditError(
                f"`source` of patch must have the shape of the value, {tuple(value.shape)}; got "
                f"{tuple(source.shape)}. Record it with inputs of the same shape."
            )
        source = source.to(value.device, value.dtype)
        if self.index is None:
            return source.clone()
        patched = value.clone()
        patched[self.index] = source[self.index]
        return patched

    def _of_call(self, call: int) -> torch.Tensor:
        if call >= len(self.source):
            raise EditError(
                f"`source` of patch must have a value for call {call}; got {len(self.source)} "
                f"values. Limit the edit: calls=slice({len(self.source)})."
            )
        return self.source[call]


@dataclass(frozen=True, eq=False, repr=False)
class answer(Edit):  # noqa: N801
    """What a call returns, without running it: for `edit(..., answers=...)`.

    A tensor, or several, which are returned as a tuple.
    """

    value: torch.Tensor | Sequence[torch.Tensor]

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """Refuses to change a value: an answer takes the place of a call."""
        raise EditError(
            "edits.answer takes the place of a call: give it to answers=. To change what was "
            "computed, write edits.replace(value)."
        )

    def returned(self, given: object) -> Any:
        """What the call returns, on the device of what it was given; the model may write to it."""
        devices = [tensor.device for _, tensor in tensors(given)]

        def own(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(devices[0] if devices else tensor.device, copy=True)

        if isinstance(self.value, torch.Tensor):
            return own(self.value)
        return tuple(own(tensor) for tensor in self.value)


@dataclass(frozen=True, eq=False, repr=False)
class only(Edit):  # noqa: N801
    """A function, limited as the edits of this module are: `only(fn, rows=0, positions=[3])`."""

    function: Callable[..., Any]

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """What the function makes of the value."""
        new = self.function(value)
        return value if new is None else new


@dataclass(frozen=True, eq=False, repr=False)
class mask(Edit):  # noqa: N801
    """The value where a mask is True, and zero elsewhere; the mask broadcasts."""

    keep: torch.Tensor

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The masked value."""
        return torch.where(self.keep.to(value.device).bool(), value, torch.zeros_like(value))


@dataclass(frozen=True, eq=False, repr=False)
class add_low_rank(Edit):  # noqa: N801
    """A weight plus `left @ right`, of low rank. For `edit(..., params=...)`.

    `left` has a row for each output of the layer, (outputs, rank), and `right` a column for each
    of its inputs, (rank, inputs); vectors stand for rank one. How a layer lays its weight out
    (`nn.Linear`, the `Conv1D` of transformers, convolutions, embeddings) makes no difference.
    """

    left: torch.Tensor
    right: torch.Tensor

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The sum for a weight of (outputs, inputs, …)."""
        left = self.left.unsqueeze(1) if self.left.ndim == 1 else self.left
        right = self.right.unsqueeze(0) if self.right.ndim == 1 else self.right
        outputs, inputs = value.shape[0], value[0].numel() if len(value) else 0
        if left.shape[0] != outputs or right.shape[1] != inputs or left.shape[1] != right.shape[0]:
            raise EditError(
                f"`left` and `right` must have shapes ({outputs}, rank) and (rank, {inputs}) for a "
                f"weight with {outputs} outputs and {inputs} inputs; got {tuple(self.left.shape)} "
                f"and {tuple(self.right.shape)}."
            )
        delta = left.to(value.device, value.dtype) @ right.to(value.device, value.dtype)
        return value + delta.reshape(value.shape)


@dataclass(frozen=True, eq=False, repr=False)
class steer(Edit):  # noqa: N801
    """The value, moved along a direction of its last dimension: `value + strength * direction`.

        edits.steer(direction, 4.0, phase="decode")     # in generate: the tokens that are made
        edits.steer(direction, 4.0, phase="all")        # every token, and no padding

    Under `phase="decode"` the first generated token comes from the last token of the prompt, which
    is not changed.
    """

    direction: torch.Tensor
    strength: Number = 1.0

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The moved value."""
        return (value + self.strength * _vector(self.direction, value)).to(value.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class project_out(Edit):  # noqa: N801
    """The value without its part along a direction of its last dimension."""

    direction: torch.Tensor

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The rest, orthogonal to the direction."""
        direction = _vector(self.direction, value)
        unit: torch.Tensor = direction / torch.linalg.vector_norm(direction)
        along: torch.Tensor = (value * unit).sum(-1, keepdim=True)
        return (value - along * unit).to(value.dtype)


@dataclass(frozen=True, eq=False, repr=False)
class erase(Edit):  # noqa: N801
    """The value without what its last dimension says of a concept: `interp.erase` makes it.

    `value - left @ (right @ (value - mean))`; `left` is (features, rank), `right` (rank, features).
    """

    left: torch.Tensor
    right: torch.Tensor
    mean: torch.Tensor

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The value, moved as little as possible."""
        mean = _vector(self.mean, value)
        left = self.left.to(value.device, value.dtype)
        right = self.right.to(value.device, value.dtype)
        return value - (value - mean) @ right.T @ left.T


@dataclass(frozen=True, eq=False, repr=False)
class swap_subspace(Edit):  # noqa: N801
    """The value with its part in a subspace taken from a source: `interp.das` finds such a basis.

    `value + (source - value) @ basis @ basis.T`; `basis` has orthonormal columns, (features, size).
    """

    source: torch.Tensor
    basis: torch.Tensor

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The value of the source inside the subspace, and its own outside."""
        if self.basis.ndim != 2 or self.basis.shape[0] != value.shape[-1]:
            raise EditError(
                f"`basis` must have the shape ({value.shape[-1]}, size) for a value of shape "
                f"{tuple(value.shape)}; got {tuple(self.basis.shape)}."
            )
        basis = self.basis.to(value.device, value.dtype)
        source = self.source.to(value.device, value.dtype)
        return value + (source - value) @ basis @ basis.T


@dataclass(frozen=True, eq=False, repr=False)
class zero_units(Edit):  # noqa: N801
    """The value with some units set to zero. `dim` is the dimension of the units."""

    units: Sequence[int]
    dim: int = 1

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """The value without those units."""
        return value.index_fill(self.dim, _index(self.units, value, self.dim), 0)


@dataclass(frozen=True, eq=False, repr=False)
class keep_units(Edit):  # noqa: N801
    """The value with all units but these set to zero. `dim` is the dimension of the units."""

    units: Sequence[int]
    dim: int = 1

    def __call__(self, value: torch.Tensor) -> torch.Tensor:
        """Those units alone."""
        kept = set(_index(self.units, value, self.dim).tolist())
        others = [unit for unit in range(value.shape[self.dim]) if unit not in kept]
        return value.index_fill(self.dim, _index(others, value, self.dim), 0)


def _like(other: Value, value: torch.Tensor) -> Value:
    if type(other) is float or type(other) is int:  # quicker than to ask whether it is a tensor
        return other
    return other.to(value.device) if isinstance(other, torch.Tensor) else other


def _in_type(new: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A new value in the type of the old one. Asking is quicker than a cast that does nothing."""
    return new if new.dtype is value.dtype else new.to(value.dtype)


def _vector(direction: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    if direction.shape != value.shape[-1:]:
        raise EditError(
            f"`direction` must have the shape of the value's last dimension, "
            f"{tuple(value.shape[-1:])}; got {tuple(direction.shape)}. The value has shape "
            f"{tuple(value.shape)}."
        )
    return direction.to(value.device, value.dtype)


def _index(units: Sequence[int], value: torch.Tensor, dim: int) -> torch.Tensor:
    count = value.shape[dim]
    wrong = [unit for unit in units if not -count <= unit < count]
    if wrong:
        raise EditError(
            f"`units` must lie between {-count} and {count - 1}, for there are {count} units along "
            f"dimension {dim}; got {wrong[0]}. `dim` says where the units are."
        )
    return torch.tensor([unit % count for unit in units], device=value.device, dtype=torch.long)
