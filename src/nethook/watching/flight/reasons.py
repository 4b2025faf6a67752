"""Why an operation gives NaN or infinities, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from nethook.hooks.modes import unrecorded
from nethook.stats.native import readable
from nethook.watching.flight.ranges import range_of

Operand = Any  # a tensor or a number


class Operands(list[Operand]):
    """What an operation was given, without what is only repeated.

    Attributes:
        times: how often everything that is left is repeated.
        sizes: how many elements each operand had.
    """

    def __init__(self, given: Sequence[Operand]) -> None:
        super().__init__(given)
        self.times = 1
        self.sizes = [
            operand.numel() if isinstance(operand, torch.Tensor) else 1 for operand in given
        ]


def _is_real(tensor: torch.Tensor) -> bool:
    """Whether its elements can be read, and held against zero."""
    return readable.is_readable(tensor) and not tensor.is_complex()


def _compact(operands: Sequence[Operand]) -> Operands:
    """Operands with one element of each dimension along which all of them are expanded."""
    compact = Operands(operands)
    places = [index for index, operand in enumerate(compact) if isinstance(operand, torch.Tensor)]
    most = max((compact[index].dim() for index in places), default=0)
    for dim in range(-most, 0):
        having = [
            index
            for index in places
            if compact[index].dim() >= -dim and compact[index].shape[dim] > 1
        ]
        if having and all(compact[index].stride(dim) == 0 for index in having):
            compact.times *= compact[having[0]].shape[dim]
            for index in having:
                compact[index] = compact[index].narrow(dim, 0, 1)
    return compact


def forward_reason(operation: str, operands: Sequence[Operand], result: Any) -> str:
    """Why an operation that was given these operands returned something that is not finite.

    Arguments:
        operation: its name, `log` for torch.log and for a LogBackward0 alike.
        operands: tensors and numbers, in order.
        result: what it returned, if that is at hand.
    """
    tensors = [operand for operand in operands if isinstance(operand, torch.Tensor)]
    special = _RULES.get(operation.lower())
    if special is not None and all(map(_is_real, tensors)):
        said = unrecorded(special)(_compact(operands))
        if said:
            return said
    return _general(tensors, result)


def _general(tensors: list[torch.Tensor], result: Any) -> str:
    ranges = [one for tensor in tensors if (one := range_of(tensor)) is not None]
    out = range_of(result) if isinstance(result, torch.Tensor) else None
    if any(given.nan for given in ranges):
        return "it was given NaN"
    if any(given.posinf or given.neginf for given in ranges):
        if out is not None and out.nan:
            return "infinite operands: ∞ − ∞, 0 · ∞ or ∞ / ∞"
        return "it was given infinities"
    largest = max((max(abs(given.min), abs(given.max)) for given in ranges), default=0.0)
    if out is not None and (out.posinf or out.neginf):
        # No sum of products of what was given is larger than this: it took more than one
        # operation, as of a layer that repeats itself or of a whole network.
        most = largest**2 * max((math.prod(given.shape) for given in ranges), default=1)
        other = "" if max(most, largest) >= _limit(out.dtype) else _INSIDE
        return f"{_overflow(out.dtype)}{other}; its operands reach {largest:.4g}"
    dtype = ranges[0].dtype if ranges else ""
    if largest > _limit(dtype) ** 0.5:
        return f"{_overflow(dtype)}: its operands reach {largest:.4g}, and it squares them"
    return "NaN from finite operands"


_INSIDE: Final = ", or a division by 0 or the log of 0 inside of it"


def _limit(dtype: str) -> float:
    """The largest number of a type; infinite where it has none."""
    torch_dtype = getattr(torch, dtype, None)
    if isinstance(torch_dtype, torch.dtype) and torch_dtype.is_floating_point:
        return torch.finfo(torch_dtype).max
    return math.inf


def _overflow(dtype: str) -> str:
    limit = _limit(dtype)
    largest = f", whose largest number is {limit:.5g}" if math.isfinite(limit) else ""
    return f"overflow of {dtype}{largest}"


# -- one rule an operation -------------------------------------------------------------------------


def _tensor(operands: Operands, index: int = 0) -> torch.Tensor | None:
    """An operand as a tensor; a number becomes one."""
    if index >= len(operands):
        return None
    value = operands[index]
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.tensor(float(value)) if isinstance(value, int | float) else None


def _log(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is None:
        return None
    if bool((x < 0).any()):
        return f"log of a negative number: its operand goes down to {_least(x):.4g}"
    zeros, elements = int((x == 0).sum()) * operands.times, x.numel() * operands.times
    return f"log of 0: {zeros:,} of {elements:,} elements are 0" if zeros else None


def _log1p(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is None:
        return None
    raised = Operands([x + 1])
    raised.times = operands.times
    said = _log(raised)
    return said and said.replace("log of 0", "log1p of −1")


def _div(operands: Operands) -> str | None:
    first, second = _tensor(operands), _tensor(operands, 1)
    if second is None:
        return None
    zero = second == 0
    if not bool(zero.any()):
        return None
    if first is not None and bool((zero & (first == 0)).any()):
        both = _count(zero & (first == 0), operands.times)
        return f"0/0: {both} are 0 in both operands"
    # It may be smaller than what it divides.
    repeated = operands.times if second.numel() * operands.times <= operands.sizes[1] else 1
    return f"division by 0: {_count(zero, repeated)} of the divisor are 0"


def _reciprocal(operands: Operands) -> str | None:
    x = _tensor(operands)
    return "division by 0" if x is not None and bool((x == 0).any()) else None


def _sqrt(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is not None and bool((x < 0).any()):
        return f"root of a negative number: its operand goes down to {_least(x):.4g}"
    return None


def _rsqrt(operands: Operands) -> str | None:
    return _sqrt(operands) or _reciprocal(operands)


def _pow(operands: Operands) -> str | None:
    base, exponent = _tensor(operands), _tensor(operands, 1)
    if base is None or exponent is None:
        return None
    if bool(((base == 0) & (exponent < 0)).any()):
        return "0 to a negative power"
    if bool(((base < 0) & (exponent != exponent.round())).any()):
        return "a negative number to a power that is not whole"
    return None


def _exp(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is None or not x.is_floating_point():
        return None
    most = float(torch.where(torch.isfinite(x), x, 0).max())
    limit = float(torch.log(torch.tensor(torch.finfo(x.dtype).max, dtype=torch.float64)))
    if most <= limit:
        return None
    dtype = str(x.dtype).removeprefix("torch.")
    return f"exp of {most:.4g} overflows {dtype}, which ends at exp({limit:.4g})"


def _softmax(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is None:
        return None
    dim = operands[1] if len(operands) > 1 and isinstance(operands[1], int) else -1
    if bool((x == float("-inf")).all(dim).any()):
        return "softmax of a row in which everything is −Inf: all of it is masked"
    return None


def _mean(operands: Operands) -> str | None:
    x = _tensor(operands)
    return "mean of no elements (0/0)" if x is not None and not x.numel() else None


def _spread(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is not None and operands.times == 1 and (x.numel() == 1 or 1 in x.shape):
        return "deviation of a single element: the unbiased one divides by 0"
    return None


def _arc(operands: Operands) -> str | None:
    x = _tensor(operands)
    if x is not None and bool((x.abs() > 1).any()):
        return "its operand is outside of −1 … 1"
    return None


def _nll(operands: Operands) -> str | None:
    scores = _tensor(operands)
    if scores is not None and bool((scores == float("-inf")).any()):
        return "the probability of a wanted class is 0, and its log −Inf"
    return None


def _sub(operands: Operands) -> str | None:
    first, second = _tensor(operands), _tensor(operands, 1)
    if first is None or second is None:
        return None
    if bool((torch.isinf(first) & torch.isinf(second)).any()):
        return "∞ − ∞"
    return None


def _mul(operands: Operands) -> str | None:
    first, second = _tensor(operands), _tensor(operands, 1)
    if first is None or second is None:
        return None
    if bool((((first == 0) & torch.isinf(second)) | (torch.isinf(first) & (second == 0))).any()):
        return "0 · ∞"
    return None


_RULES: Final[dict[str, Callable[[Operands], str | None]]] = {
    "log": _log, "log2": _log, "log10": _log, "log1p": _log1p, "xlogy": _log,
    "div": _div, "truediv": _div, "divide": _div, "floor_divide": _div, "remainder": _div,
    "reciprocal": _reciprocal, "sqrt": _sqrt, "rsqrt": _rsqrt, "pow": _pow,
    "exp": _exp, "exp2": _exp, "expm1": _exp, "cosh": _exp, "sinh": _exp,
    "softmax": _softmax, "log_softmax": _softmax, "logsoftmax": _softmax,
    "mean": _mean, "std": _spread, "var": _spread, "var_mean": _spread, "std_mean": _spread,
    "acos": _arc, "asin": _arc, "arccos": _arc, "arcsin": _arc, "atanh": _arc,
    "nll_loss": _nll, "nllloss": _nll, "nllloss2d": _nll,
    "sub": _sub, "add": _sub, "mul": _mul,
}  # fmt: skip


def _least(x: torch.Tensor) -> float:
    return float(torch.where(torch.isfinite(x), x, 0).min())


def _count(which: torch.Tensor, times: int = 1) -> str:
    number = int(which.sum()) * times
    return "1 element" if number == 1 else f"{number:,} elements"


# -- backward --------------------------------------------------------------------------------------

_INFINITE_AT_ZERO: Final = {"sqrt", "rsqrt", "log", "log2", "log10", "reciprocal", "xlogy"}


@unrecorded
def backward_reason(operation: str, operands: Sequence[Operand], grads: Sequence[Any]) -> str:
    """Why an operation turned finite gradients into ones that are not.

    Arguments:
        operation: its name.
        operands: what it was given in the forward.
        grads: the gradients that arrived at its result.
    """
    name = operation.lower()
    looked = _compact(operands)
    x = _tensor(looked)
    if x is not None and x.is_floating_point() and readable.is_readable(x):
        if name in _INFINITE_AT_ZERO and bool((x == 0).any()):
            zeros = _count(x == 0, looked.times)
            return f"the derivative of {name} at 0 is infinite: {zeros} are 0"
        if name == "pow" and len(operands) > 1 and bool((x == 0).any()):
            return "the derivative of a power below 1 at 0 is infinite"
        if name in {"acos", "asin", "arccos", "arcsin"} and bool((x.abs() >= 1).any()):
            return f"the derivative of {name} at ±1 is infinite"
        if name in {"div", "truediv"}:
            said = _div(looked)
            if said:
                return f"{said}, which its derivative divides by once more"
    if name in {"where", "mul"}:
        return "0 · ∞ behind a mask: the branch that was not taken is not finite"
    ranges = [one for grad in grads if isinstance(grad, torch.Tensor) and (one := range_of(grad))]
    dtype = ranges[0].dtype if ranges else "the type"
    return f"{_overflow(dtype)} or infinite derivative of {name}"
