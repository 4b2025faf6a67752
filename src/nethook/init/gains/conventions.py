"""`calculate_gain`: torch's values, which are conventions, and the exact ones."""

from __future__ import annotations

from typing import Literal

from torch import nn

from nethook.errors import OptionError
from nethook.init.gains.activations import Activation, elementwise
from nethook.init.gains.integrals import moments

Convention = Literal["torch", "exact"]

_SLOPES = ("leaky_relu", "lrelu", "prelu")


def calculate_gain(
    name: Activation,
    param: float | None = None,
    *,
    negative_slope: float | None = None,
    convention: Convention = "torch",
) -> float:
    """The recommended gain of an activation: torch's, or the exact one.

        calculate_gain("tanh")                              # 5/3, as torch
        calculate_gain("tanh", convention="exact")          # 1.5925
        calculate_gain("leaky_relu", negative_slope=0.2)    # 1.3868

    Arguments:
        name: an activation, as in `nethook.init.gain`.
        param: its parameter: the slope of leaky_relu, the alpha of elu, the beta of softplus.
        negative_slope: `param` by the name that it has in `nn.LeakyReLU`.
        convention: "torch" gives what `torch.nn.init.calculate_gain` gives, and the exact gain
            where torch knows none (GELU, SiLU, …); "exact" gives `nethook.init.gain` for all.

    `docs/init.md` says why the two differ and which to use when.
    """
    if convention not in ("torch", "exact"):
        raise OptionError(f"`convention` must be 'torch' or 'exact'; got {convention!r}.")
    if negative_slope is not None:
        if param is not None:
            raise OptionError(
                f"`param` must be left out beside `negative_slope`; got {param!r} and "
                f"{negative_slope!r}. They are the same number."
            )
        if not (isinstance(name, str) and name.lower().replace("leakyrelu", "lrelu") in _SLOPES):
            raise OptionError(
                f"`negative_slope` must come with 'leaky_relu'; got {name!r}, which has none."
            )
        param = negative_slope
    if param is not None:
        if not isinstance(name, str):
            raise OptionError(
                f"`param` must come with the name of an activation; got {type(name).__name__}. "
                "A module or function has its own."
            )
        name = f"{name}({float(param)})"
    activation = elementwise(name)
    base = activation.name.partition("(")[0]
    if convention == "torch" and base in _TORCH:
        inside = activation.name[len(base) + 1 : -1]
        slope = float(inside) if base == "leaky_relu" and inside else None
        return float(nn.init.calculate_gain(_TORCH[base], slope))
    return moments(name).gain()


# Our name -> torch's, of those that torch has a value for.
_TORCH: dict[str, Literal["linear", "sigmoid", "tanh", "relu", "leaky_relu", "selu"]] = {
    "identity": "linear",
    "sigmoid": "sigmoid",
    "tanh": "tanh",
    "relu": "relu",
    "leaky_relu": "leaky_relu",
    "selu": "selu",
}
