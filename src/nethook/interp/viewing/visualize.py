"""`visualize`: an input that a unit of a network responds to most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from nethook.addresses.lookup import get_module
from nethook.drawing.data import Spec
from nethook.errors import OptionError
from nethook.extracting.features import home
from nethook.extracting.progress import Bar
from nethook.interp.results.result import Result
from nethook.interp.viewing.images import fourier, jittered, pixels
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table
from nethook.tracing.scope import trace

# Where they are zero they have no gradient, and a search that begins there stays grey.
_RECTIFIERS = (nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.ELU, nn.Softplus)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Visualisation(Result):
    """The result of `interp.visualize`: the image (channels, …), and the objective per step."""

    _FORMAT: ClassVar[str] = "nethook_visualisation"

    site: str
    unit: int
    image: torch.Tensor
    objective: torch.Tensor

    def spec(self) -> Spec:
        """The figure as plain data: the image."""
        from nethook.drawing.data import Picture
        from nethook.drawing.pictures import colour_mosaic, mosaic

        title = f"What unit {self.unit} of {self.site} responds to"
        image = self.image.double().numpy()
        if image.ndim == 3 and len(image) == 3:
            return colour_mosaic(title, [image])
        if image.ndim == 3 and len(image) == 1 and image.min() >= 0:  # a picture in grey
            return colour_mosaic(title, [image.repeat(3, 0)])
        planes = image if image.ndim == 3 else image.reshape(1, -1, image.shape[-1])
        shown = [Picture(f"channel {n}", plane) for n, plane in enumerate(planes)]
        return mosaic(title, shown, signed=True)

    def table(self) -> Table:
        """The objective at the start, and at the end."""
        title = f"visualisation of unit {self.unit} of {self.site}, {tuple(self.image.shape)}"
        steps = sorted({0, len(self.objective) // 2, len(self.objective) - 1})
        rows = [(str(step), f"{float(self.objective[step]):.4g}") for step in steps]
        return Table(title, ("step", "objective"), rows, frozenset({"step", "objective"}))


def visualize(
    model: nn.Module,
    at: str,
    unit: int,
    *,
    shape: Sequence[int] = (3, 128, 128),
    parameters: Literal["fourier", "pixels"] | None = None,
    jitter: bool | None = None,
    norm: float | None = None,
    prepare: Callable[[torch.Tensor], torch.Tensor] | None = None,
    position: Sequence[int] | None = None,
    steps: int = 512,
    lr: float = 0.05,
    seed: int = 0,
    progress: bool | None = None,
) -> Visualisation:
    """An input that makes a unit as large as it can be (feature visualisation).

        picture = interp.visualize(model, at="layer3.0.conv2", unit=7, shape=(3, 128, 128))
        picture.figure()

    Arguments:
        model: any `nn.Module`, in evaluation; everything is left as it was.
        at: the address of the site. At a rectifier (`nn.ReLU`, …) its input is taken: behind a unit
            that is off there is no gradient.
        unit: which channel: dimension 1 of the value.
        shape: of one input: (channels, height, width) for an image.
        parameters: "fourier" (images of three dimensions; the default for them) or "pixels".
        jitter: whether each step sees the image shifted, scaled and turned a little; None: with
            "fourier".
        norm: the length that an input is held to; None: an image of Fourier coefficients goes
            through a sigmoid, into 0 … 1, and pixels are free.
        prepare: from the image to the model's input, such as a normalisation of colours.
        position: the place in the value's space; None is the mean over it.
        steps, lr: of Adam.
        seed: of the start and of the moves.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `Visualisation`.

    Cost: a forward up to the site and a backward per step.
    """
    size = tuple(int(each) for each in shape)
    kind = parameters or ("fourier" if len(size) == 3 else "pixels")
    if kind not in ("fourier", "pixels") or (kind == "fourier" and len(size) != 3):
        raise OptionError(
            '`parameters` must be "pixels", or "fourier" for images (channels, height, width); got '
            f"{parameters!r} with the shape {size}."
        )
    if type(steps) is not int or steps < 1:
        raise OptionError(f"`steps` must be a positive number; got {steps!r}.")
    moves = kind == "fourier" if jitter is None else jitter
    draw = torch.Generator().manual_seed(seed)
    start, make = (fourier if kind == "fourier" else pixels)(size, draw)
    inward = isinstance(get_module(model, at), _RECTIFIERS)
    weights = start.to(home(model) or start.device).requires_grad_()
    adam = torch.optim.Adam([weights], lr=lr)
    history = []

    def image() -> torch.Tensor:
        made = make(weights)
        if norm is not None:
            held: torch.Tensor = norm * made / made.norm().clamp(min=1e-12)
            return held
        return torch.sigmoid(made) if kind == "fourier" else made

    bar = Bar(steps, 0, shown=progress, label="visualizing", unit="steps")
    with unchanged(model, evaluation=True), torch.enable_grad(), bar:
        for _ in range(steps):
            shown = jittered(image(), draw) if moves else image()
            given = shown if prepare is None else prepare(shown)
            value = _value(model, given, at, inward=inward)
            score = _score(value, unit, position, at)
            (weights.grad,) = torch.autograd.grad(-score, [weights])
            history.append(float(score.detach()))
            adam.step()
            bar.advance(1)
        found = image().detach()[0].cpu()
    return Visualisation(site=at, unit=unit, image=found, objective=torch.tensor(history).double())


def _value(model: nn.Module, given: torch.Tensor, at: str, *, inward: bool) -> torch.Tensor:
    with trace(model, at, inputs=inward, detach=False, stop=not inward, copy=inward) as tape:
        model(given)
    record = tape[at]
    value = record.input if inward else record.output
    if not isinstance(value, torch.Tensor) or value.ndim < 2:
        raise OptionError(f"`at` must be a site that gives one tensor with units; got {at!r}.")
    return value


def _score(value: torch.Tensor, unit: int, position: Sequence[int] | None, at: str) -> torch.Tensor:
    if not -value.shape[1] <= unit < value.shape[1]:
        raise OptionError(
            f"`unit` must lie between 0 and {value.shape[1] - 1} at {at!r}; got {unit}."
        )
    mine = value[:, unit]
    if position is not None:
        space = tuple(mine.shape[1:])
        place = tuple(int(each) for each in position)
        if len(place) != len(space) or not all(
            0 <= p < n for p, n in zip(place, space, strict=True)
        ):
            raise OptionError(f"`position` must be a place in {space} at {at!r}; got {place}.")
        where: tuple[Any, ...] = (slice(None), *place)
        mine = mine[where]
    return mine.mean()
