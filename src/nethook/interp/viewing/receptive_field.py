"""`receptive_field`: which part of the input a value inside a network depends on.

The theoretical field: a NaN in the input spreads to everything that depends on it, whatever skips,
dilation and pooling lie between. The effective field: the mean size of the gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from nethook.drawing.data import Spec
from nethook.errors import OptionError
from nethook.extracting.features import home, moved
from nethook.extracting.progress import Bar
from nethook.interp.results.result import Result
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table
from nethook.tracing.scope import trace

_ROWS = 32


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReceptiveField(Result):
    """The result of `interp.receptive_field`.

    Attributes:
        site: the site.
        position: the place in the site's output whose field this is.
        reads: per axis of the input, which lines the place depends on at all.
        effective: the mean size of its gradient, over rows and channels: the shape of the input's
            space.
        clipped: whether the field reaches the border of the input: it may be larger than `size`.
    """

    _FORMAT: ClassVar[str] = "nethook_receptive_field"

    site: str
    position: tuple[int, ...]
    reads: dict[str, torch.Tensor]
    effective: torch.Tensor
    clipped: bool

    @property
    def box(self) -> tuple[tuple[int, int], ...]:
        """Per axis, the first line that is read and the one after the last."""
        found = [lines.nonzero().flatten() for lines in self.reads.values()]
        return tuple((int(lines[0]), int(lines[-1]) + 1) if len(lines) else (0, 0)
                     for lines in found)  # fmt: skip

    @property
    def size(self) -> tuple[int, ...]:
        """Per axis, how far the field extends."""
        return tuple(end - start for start, end in self.box)

    def effective_size(self, share: float = 0.95) -> tuple[int, ...]:
        """Per axis, the shortest stretch that holds this share of the gradient."""
        if not 0 < share <= 1:
            raise OptionError(f"`share` must lie between 0 and 1; got {share!r}.")
        sizes = []
        for axis in range(self.effective.ndim):
            others = [other for other in range(self.effective.ndim) if other != axis]
            line = self.effective.sum(others) if others else self.effective
            sums = torch.cat([torch.zeros(1).double(), line.cumsum(0)])
            inside = sums[None, :] - sums[:, None]  # between any two places
            enough = (inside >= share * float(sums[-1]) * (1 - 1e-12)).nonzero()
            sizes.append(int((enough[:, 1] - enough[:, 0]).min()) if len(enough) else 0)
        return tuple(sizes)

    def spec(self) -> Spec:
        """The figure as plain data: the effective field, with the theoretical one as a frame."""
        from nethook.drawing.studies.fields import field_map

        shown = self.effective if self.effective.ndim > 1 else self.effective[None]
        if shown.ndim > 2:
            shown = shown.sum(tuple(range(shown.ndim - 2)))
        (top, bottom), (left, right) = (((0, 1), *self.box) if len(self.box) == 1 else self.box)[
            -2:
        ]
        return field_map(
            f"What {self.site} at {self.position} depends on", shown.numpy(),
            (top, bottom, left, right),
        )  # fmt: skip

    def table(self) -> Table:
        """Axis by axis."""
        sizes = self.effective_size()
        rows = [
            (axis, str(extent), str(int(lines.sum())), f"{start} … {end - 1}", str(near))
            for (axis, lines), extent, (start, end), near in zip(
                self.reads.items(), self.size, self.box, sizes, strict=True
            )
        ]
        end = "; it reaches the border, and may be larger" if self.clipped else ""
        columns = ("axis", "size", "lines read", "from … to", "95 % of the gradient")
        title = f"receptive field of {self.site or 'the output'} at {self.position}{end}"
        return Table(title, columns, rows, frozenset(columns[1:]))


def receptive_field(
    model: nn.Module,
    x: Any,
    at: str,
    *,
    position: Sequence[int] | None = None,
    progress: bool | None = None,
) -> ReceptiveField:
    """Which part of the input one place of a site depends on, in theory and in effect.

        field = interp.receptive_field(model, images, at="layer3")
        field.size, field.effective_size(), field.figure()

    Arguments:
        model: any `nn.Module`, in evaluation.
        x: an input of floats, (rows, channels, …space): a signal, an image, a volume.
        at: the address of the site; "" is the output.
        position: the place in the site's space; None is its middle.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `ReceptiveField`.

    Cost: a forward of one sample for every line of the input along each of its axes, twice (with a
    NaN, and with another number, for models that compare), and a backward for every row of `x`.
    """
    if not isinstance(x, torch.Tensor) or x.ndim < 3 or not x.is_floating_point():
        got = f"{x.dtype} {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
        raise OptionError(f"`x` must be a tensor of floats, (rows, channels, …space); got {got}.")
    x = moved(x, home(model))
    study = _Study(model, at)
    with unchanged(model, x, evaluation=True), _plain_kernels():
        place = study.place(x, position)
        names = ("time",) if x.ndim == 3 else ("depth", "height", "width")[5 - x.ndim :]
        names = names if x.ndim <= 5 else tuple(f"axis {n}" for n in range(x.ndim - 2))
        bar = Bar(x.ndim - 2, 0, shown=progress, label="reading lines", unit="lines")
        reads = {}
        with bar:
            for axis, name in enumerate(names):
                reads[name] = study.lines(x[:1], axis + 2, place)
                bar.advance(x.shape[axis + 2])
        effective = study.gradient(x, place)
    ends = any(bool(lines[0]) or bool(lines[-1]) for lines in reads.values())
    return ReceptiveField(site=at, position=place, reads=reads, effective=effective, clipped=ends)


class _Study:
    """Runs of a model up to a site."""

    def __init__(self, model: nn.Module, at: str) -> None:
        self._model = model
        self._at = at

    def _value(self, x: torch.Tensor, *, grad: bool = False) -> torch.Tensor:
        with torch.set_grad_enabled(grad), trace(
            self._model, self._at, detach=not grad, stop=True
        ) as tape:  # fmt: skip
            self._model(x)
        value = tape[self._at].output
        if not isinstance(value, torch.Tensor) or value.ndim < 2:
            raise OptionError(f"`at` must be a site that gives one tensor; got {self._at!r}.")
        return value

    def place(self, x: torch.Tensor, position: Sequence[int] | None) -> tuple[int, ...]:
        """The place that is asked about."""
        space = self._value(x[:1]).shape[2:]
        if position is None:
            return tuple(length // 2 for length in space)
        place = tuple(int(each) for each in position)
        fits = len(place) == len(space) and all(
            0 <= p < n for p, n in zip(place, space, strict=True)
        )
        if not fits:
            raise OptionError(
                f"`position` must be a place in the site's space, {tuple(space)}; got {place}."
            )
        return place

    def lines(self, x: torch.Tensor, axis: int, place: tuple[int, ...]) -> torch.Tensor:
        """For each line across an axis, whether the place depends on it."""
        where: tuple[Any, ...] = (slice(None), slice(None), *place)
        plain = self._value(x)[where]
        found = torch.zeros(x.shape[axis], dtype=torch.bool)
        for start in range(0, x.shape[axis], _ROWS):
            chosen = range(start, min(x.shape[axis], start + _ROWS))
            for filled in (torch.nan, 1.0):
                rows = x.repeat(len(chosen), *[1] * (x.ndim - 1))
                for row, line in enumerate(chosen):
                    part = rows[row].select(axis - 1, line)
                    part.copy_(part * 0 + torch.nan if filled != filled else part + filled)
                value = self._value(rows)[where]
                there = value.isnan() if filled != filled else _differs(value, plain)
                found[start : start + len(chosen)] |= there.flatten(1).any(1).cpu()
        return found

    def gradient(self, x: torch.Tensor, place: tuple[int, ...]) -> torch.Tensor:
        """The mean size of the gradient of the place, over rows and channels of the input."""
        total = torch.zeros(x.shape[2:], dtype=torch.double)
        draw = torch.Generator().manual_seed(0)
        for row in x.detach().split(1):
            given = row.clone().requires_grad_()
            where: tuple[Any, ...] = (slice(None), slice(None), *place)
            value = self._value(given, grad=True)[where]
            # Channels count with random signs, so that none cancels another by chance of sign.
            signs = torch.randint(0, 2, value.shape, generator=draw).to(value) * 2 - 1
            (grad,) = torch.autograd.grad((value * signs).sum(), given)
            total += grad.detach().abs().double().mean((0, 1)).cpu()
        return total / len(x)


def _differs(value: torch.Tensor, plain: torch.Tensor) -> torch.Tensor:
    """Whether numbers differ by more than kernels round."""
    scale = plain.abs().amax().clamp(min=1e-30)
    return (value - plain).abs() > 1e-3 * scale


@contextmanager
def _plain_kernels() -> Iterator[None]:
    """Kernels that multiply nothing with what they do not read: those of FFT and Winograd do.

    NNPACK and cuDNN choose such kernels by the size of a batch; oneDNN does not.
    """
    backends: tuple[Any, ...] = (torch.backends.nnpack, torch.backends.cudnn)
    with ExitStack() as stack:
        for backend in backends:
            stack.enter_context(backend.flags(enabled=False))
        yield
