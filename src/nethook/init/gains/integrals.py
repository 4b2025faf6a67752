"""What an activation does to the scale of a signal and of a gradient: its moments and gains."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch

from nethook.errors import ActivationError, OptionError
from nethook.init.gains.activations import Activation, Function, elementwise
from nethook.init.gains.quadrature import REACH, Floats, normal_means

Kind = Literal["forward", "backward", "variance"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_WORST = 1e-6  # a mean that is known less well is not given


@dataclass(frozen=True, slots=True)
class Moments:
    """Means of an activation f over a normal input z of mean square q.

    `mean` is E f(z), `second` E f(z)², `derivative` E f'(z)² (NaN where it does not exist).

    `slope` says what becomes of a small error in scale over many layers that each have the forward
    gain: below 1 it dies out, above 1 it grows, layer by layer. `chi` is the factor by which the
    mean square of the gradient changes per layer then.
    """

    name: str
    q: float
    mean: float
    second: float
    derivative: float
    slope: float
    error: float  # how far the last refinement of the quadrature moved `mean` and `second`

    @property
    def variance(self) -> float:
        """E f² − (E f)²."""
        return self.second - self.mean**2

    @property
    def chi(self) -> float:
        """What the mean square of a gradient is multiplied with per layer, at the forward gain."""
        return self.q * self.derivative / self.second

    @property
    def stable(self) -> bool:
        """Whether a deep plain network of forward gains keeps its scale by itself."""
        return self.slope <= 1 + 1e-6

    def gain(self, kind: Kind = "forward") -> float:
        """As `nethook.init.gain`."""
        if kind not in KINDS:
            kinds = ", ".join(map(repr, KINDS))
            # As in torch.nn.init.calculate_gain, where it is the second argument.
            slope = (
                f" A slope belongs to the activation: gain(nn.LeakyReLU({kind})), or "
                f"init.calculate_gain('leaky_relu', {kind})."
                if isinstance(kind, int | float)  # type: ignore[redundant-expr]
                else ""
            )
            raise OptionError(f"`kind` must be one of {kinds}; got {kind!r}.{slope}")
        if kind == "backward":
            if math.isnan(self.derivative):
                raise ActivationError(
                    f"{self.name!r} has no backward gain: its derivative has no finite mean square "
                    "that could be computed."
                )
            return self._root(1.0, self.derivative, "its derivative is zero for every input")
        if kind == "variance":
            # The rounding of a difference, not a variance.
            flat = self.variance <= 1e-14 * self.second
            return self._root(self.q, 0.0 if flat else self.variance, "it is a constant")
        return self._root(self.q, self.second, "it is zero for every input")

    def _root(self, above: float, below: float, reason: str) -> float:
        if below <= 0:
            raise ActivationError(f"{self.name!r} has no such gain: {reason}.")
        return math.sqrt(above / below)

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the fields, and what follows from them."""
        more = {"variance": self.variance, "chi": self.chi, "stable": self.stable}
        return {**asdict(self), **more}


def moments(f: Activation, q: float = 1.0) -> Moments:
    """The moments of an activation over a normal input of mean square `q`.

        nethook.init.moments("gelu").slope          # 1.144: scales run away in a deep plain network
        nethook.init.moments(lambda x: x.relu() ** 2)

    Arguments:
        f: the name of an activation, with numbers where it takes some (`"leaky_relu(0.2)"`), a
            module, or any function of a tensor that acts on each element.
        q: the mean square of the input.

    Raises:
        ActivationError: where `f` does not act on each element by itself (softmax, GLU), is random,
            or has no finite mean square.

    Deterministic, exact to 1e-10 (for functions that compute in float64), a few milliseconds.
    """
    if not _is_scale(q):
        raise OptionError(f"`q` must be a number above 0, the mean square of the input; got {q!r}.")
    activation = elementwise(f)
    measured = [_measure(activation.name, function, float(q)) for function in activation.functions]
    mean, second, derivative, curved, error = np.mean(measured, axis=0).tolist()
    # d/dq E g(√q x) = E[g(√q x) (x² − 1)] / 2q for any g, also with jumps; here g = f².
    slope = curved / (2 * second) if second > 0 else math.nan
    return Moments(activation.name, float(q), mean, second, derivative, slope, error)


def gain(f: Activation, kind: Kind = "forward", q: float = 1.0) -> float:
    """The factor by which the weights after (or before) an activation keep a scale.

        nethook.init.gain("gelu")                            # 1.5335
        nethook.init.gain(nn.LeakyReLU(0.2))                 # 1.3868
        nethook.init.gain(my_function, kind="backward")

    Arguments:
        f: as in `moments`.
        kind: "forward" is 1 / √(E f²): with weights of that gain times 1 / √fan_in, what follows
            the activation has the mean square that its input had. "backward" is 1 / √(E f'²), which
            does the same for gradients with 1 / √fan_out. "variance" is 1 / √(Var f), for weights
            that are blind to the mean (weight standardisation).
        q: the mean square of the activation's input.
    """
    return moments(f, q).gain(kind)


def _is_scale(q: object) -> bool:
    return isinstance(q, int | float) and 0 < q < math.inf


def _measure(name: str, function: Function, q: float) -> list[float]:
    """E f, E f², E f'², E f² (x² − 1), and the error."""
    root = math.sqrt(q)

    def rows(points: Floats) -> Floats:
        value, slope = _evaluate(function, points * root)
        square = value**2
        return np.stack([value, square, slope**2, square * (points**2 - 1)])

    with np.errstate(over="ignore", invalid="ignore"):
        edge = rows(np.array([-REACH, REACH])) * math.exp(-(REACH**2) / 2)
        means = normal_means(rows)
    mean, second, derivative, curved = means.values.tolist()
    unsure = means.errors / np.maximum(np.abs(means.values), 1e-12)
    if not (math.isfinite(second) and unsure[1] < _WORST and np.abs(edge[1]).max() < 1e-9):
        raise ActivationError(
            f"{name!r} has no gain: the mean of its square over a normal input is not finite, or "
            "it is too rough to be integrated."
        )
    if not math.isfinite(derivative) or unsure[2] > _WORST:
        derivative = math.nan
    error = float(means.errors[:2].max())
    return [mean, second, derivative, curved, error]


def _evaluate(function: Function, points: Floats) -> tuple[Floats, Floats]:
    """F and f' at some points. f' is what autograd gives: what a backward pass would use."""
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.from_numpy(points).clone().requires_grad_()
        y = function(x.clone())  # a copy: some activations write into their argument
        value = y.detach().double().cpu().numpy()
        if not y.requires_grad:
            return value, np.full_like(value, np.nan)
        try:
            (slope,) = torch.autograd.grad(y.sum(), x, allow_unused=True, materialize_grads=True)
        except RuntimeError:  # torch knows no derivative of it
            return value, np.full_like(value, np.nan)
    return value, slope.numpy()
