"""The figures of tensors: of a tape, a model, or by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nethook.drawing.rendering.render import figure
from nethook.errors import InputsError, NoSuchSiteError
from nethook.figures import tensor_specs
from nethook.figures.tensor_specs import CHANNELS, as_array
from nethook.runs.reading.run import Run, open_run

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def feature_maps(
    tape: Any,
    address: str = "",
    *,
    sample: int = 0,
    channels: int = CHANNELS,
    each: bool = False,
    theme: str = "light",
) -> Figure:
    """What a layer made of one sample: its channels as pictures.

        with nethook.trace(model, "conv1") as tape:
            model(x)
        nethook.figures.feature_maps(tape, "conv1")

    Arguments:
        tape: a tape, or a tensor (samples, channels, height, width) or (channels, height, width).
        address: which layer of the tape; its last call is shown.
        sample: which sample of the batch.
        channels: how many are shown.
        each: every channel on its own scale of colours, so that weak ones are seen too.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure.
    """
    array = as_array(_of(tape, address), "tape")
    spec = tensor_specs.feature_maps_spec(
        array, address, sample=sample, channels=channels, each=each
    )
    return figure(spec, theme)


def filters(
    model: Any,
    address: str = "",
    *,
    most: int = CHANNELS,
    each: bool = False,
    theme: str = "light",
) -> Figure:
    """The weights of a layer as pictures: filters of a convolution, or a matrix.

    Arguments:
        model: a model, or a tensor of weights.
        address: the layer or the parameter (`conv1`, `conv1.weight`).
        most: how many are shown.
        each: every filter on its own scale of colours.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure; filters over three channels are shown in colour.
    """
    weight = _weight(model, address)
    return figure(
        tensor_specs.filters_spec(as_array(weight, "model"), address, most=most, each=each), theme
    )


def attention(
    tape: Any,
    address: str = "",
    *,
    tokens: Sequence[str] | None = None,
    sample: int = 0,
    heads: int = 16,
    theme: str = "light",
) -> Figure:
    """Who looks at whom: the attention of each head as a map from queries to keys.

    Arguments:
        tape: probabilities (samples, heads, queries, keys), or without the first or the first two;
            or a tape with a site that returns them.
        address: which site of the tape; its last call is shown.
        tokens: names of the queries and keys.
        sample: which sample of the batch.
        heads: how many are shown.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure.
    """
    array = as_array(_of(tape, address), "tape")
    spec = tensor_specs.attention_spec(array, address, tokens=tokens, sample=sample, heads=heads)
    return figure(spec, theme)


def activations(tape: Any, *, theme: str = "light") -> Figure:
    """How the outputs of every layer of a tape are spread: median, middle half, 98 %.

    Arguments:
        tape: a tape, or a mapping from names to tensors.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure.
    """
    if not isinstance(tape, Mapping):
        raise InputsError(
            f"`tape` must be a tape or a mapping from names to tensors; got {type(tape).__name__}."
        )
    values = {
        str(name): as_array(value, "tape")
        for name, value in tape.items()
        if getattr(value, "entries", True)  # a site that has not run has nothing to show
    }
    if not values:
        raise InputsError(
            "Nothing in this tape has run yet. Run the model inside `with nethook.trace(...)`."
        )
    return figure(tensor_specs.activations_spec(values), theme)


def snapshots(
    pictures: Mapping[int, Any] | Run | str | Path,
    address: str = "",
    *,
    sample: int = 0,
    channels: int = 12,
    theme: str = "light",
) -> Figure:
    """The same layer at several steps of training, as a strip of pictures.

        kept = {}
        for step in ...:
            with nethook.trace(model, "conv1") as kept[step]:
                model(x)
        nethook.figures.snapshots(kept, "conv1")
        nethook.figures.snapshots("runs/mnist.db", "conv1")     # what watching kept

    Arguments:
        pictures: step -> tape, or step -> tensor (samples, channels, height, width); or a run that
            has snapshots, or its path.
        address: which layer of the tapes or of the run.
        sample: which sample of the batch.
        channels: how many are shown.
        theme: `light` or `dark`.

    Returns:
        A Plotly figure: a row a step, a column a channel, one scale of colours.
    """
    if isinstance(pictures, Run | str | Path):
        pictures = _kept(pictures, address)
    arrays = {
        int(step): as_array(_of(tape, address), "pictures") for step, tape in pictures.items()
    }
    spec = tensor_specs.snapshots_spec(arrays, address, sample=sample, channels=channels)
    return figure(spec, theme)


def _kept(run: Run | str | Path, address: str) -> dict[int, Any]:
    """The snapshots of a layer in a run, by step."""
    kept = (run if isinstance(run, Run) else open_run(run)).snapshots
    if address not in kept:
        there = ", ".join(map(repr, list(kept)[:8])) or "none"
        raise NoSuchSiteError(f"The run has no snapshots of {address!r}; it has {there}.")
    return {shot.step: shot.values for shot in kept[address]}


def _of(tape: Any, address: str) -> Any:
    """A record of a tape; of a tape of one site, that one; a tensor as it is."""
    if not isinstance(tape, Mapping):
        return tape
    if address:
        return tape[address]
    if len(tape) != 1:
        raise InputsError(
            f"`address` must be one of {', '.join(map(repr, list(tape)[:8]))}; got none."
        )
    return next(iter(tape.values()))


def _weight(model: Any, address: str) -> Any:
    from torch import nn

    if not isinstance(model, nn.Module):
        return model
    from nethook.addresses.lookup import get_module, get_parameter

    if address in dict(model.named_modules()):
        weight = getattr(get_module(model, address), "weight", None)
        if weight is None:
            raise InputsError(
                f"`address` must be a parameter or a module with a weight; got {address!r}."
            )
        return weight
    return get_parameter(model, address)
