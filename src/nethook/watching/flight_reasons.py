"""Why an operation gives NaN or infinities, in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from nethook.hooks.quiet import unrecorded
from nethook.watching.flight_look import range_of

Operand = Any  # a tensor or a number


def forward_reason(operation: str, operands: Sequence[Operand], result: Any) -> str:
    """Why an operation that was given these operands returned something that is not finite.

    Arguments:
        operation: its name, `log` for torch.log and for a LogBackward0 alike.
        operands: tensors and numbers, in order.
        result: what it returned, if that is at hand.
    """
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    special = _RULES.get(operation.lower())
    if special is not None:
        said = unrecorded(special)(list(operands))
        if said:
            return said
    return _general(tensors, result)


def _general(tensors: list[torch.Tensor], result: Any) -> str:
    looks = [look for each in tensors if (look := range_of(each)) is not None]
    out = range_of(result) if isinstance(result, torch.Tensor) else None
    if any(look.nan for look in looks):
        return "it was given NaN"
    if any(look.posinf or look.neginf for look in looks):
        if out is not None and out.nan:
            return "infinite operands: ∞ − ∞, 0 · ∞ or ∞ / ∞"
        return "it was given infinities"
    largest = max((max(abs(look.min), abs(look.max)) for look in looks), default=0.0)
    if out is not None and (out.posinf or out.neginf):
        return f"{_overflow(out.dtype)}; its operands reach {largest:.4g}"
    dtype = looks[0].dtype if looks else ""
    if largest > _limit(dtype) ** 0.5:
        return f"{_overflow(dtype)}: its operands reach {largest:.4g}, and it squares them"
    return "NaN from finite operands"


def _limit(dtype: str) -> float:
    """The largest number of a type; infinite where it has none."""
    known = getattr(torch, dtype, None)
    if isinstance(known, torch.dtype) and known.is_floating_point:
        return torch.finfo(known).max
    return math.inf


def _overflow(dtype: str) -> str:
    limit = _limit(dtype)
    largest = f", whose largest number is {limit:.5g}" if math.isfinite(limit) else ""
    return f"overflow of {dtype}{largest}"


# -- one rule an operation -------------------------------------------------------------------------


def _tensor(operands: list[Operand], at: int = 0) -> torch.Tensor | None:
    """An operand as a tensor; a number becomes one."""
    if at >= len(operands):
        return None
    value = operands[at]
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.tensor(float(value)) if isinstance(value, int | float) else None


def _log(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    if x is None:
        return None
    if bool((x < 0).any()):
        return f"log of a negative number: its operand goes down to {_least(x):.4g}"
    zeros = int((x == 0).sum())
    return f"log of 0: {zeros:,} of {x.numel():,} elements are 0" if zeros else None


def _log1p(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    said = None if x is None else _log([x + 1])
    return said and said.replace("log of 0", "log1p of −1")


def _div(operands: list[Operand]) -> str | None:
    first, second = _tensor(operands), _tensor(operands, 1)
    if second is None:
        return None
    zero = second == 0
    if not bool(zero.any()):
        return None
    if first is not None and bool((zero & (first == 0)).any()):
        return f"0/0: {_count(zero & (first == 0))} are 0 in both operands"
    return f"division by 0: {_count(zero)} of the divisor are 0"


def _reciprocal(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    return "division by 0" if x is not None and bool((x == 0).any()) else None


def _sqrt(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    if x is not None and bool((x < 0).any()):
        return f"root of a negative number: its operand goes down to {_least(x):.4g}"
    return None


def _rsqrt(operands: list[Operand]) -> str | None:
    return _sqrt(operands) or _reciprocal(operands)


def _pow(operands: list[Operand]) -> str | None:
    base, exponent = _tensor(operands), _tensor(operands, 1)
    if base is None or exponent is None:
        return None
    if bool(((base == 0) & (exponent < 0)).any()):
        return "0 to a negative power"
    if bool(((base < 0) & (exponent != exponent.round())).any()):
        return "a negative number to a power that is not whole"
    return None


def _exp(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    if x is None or not x.is_floating_point():
        return None
    most = float(torch.where(torch.isfinite(x), x, 0).max())
    limit = float(torch.log(torch.tensor(torch.finfo(x.dtype).max, dtype=torch.float64)))
    if most <= limit:
        return None
    dtype = str(x.dtype).removeprefix("torch.")
    return f"exp of {most:.4g} overflows {dtype}, which ends at exp({limit:.4g})"


def _softmax(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    if x is None:
        return None
    dim = operands[1] if len(operands) > 1 and isinstance(operands[1], int) else -1
    if bool((x == float("-inf")).all(dim).any()):
        return "softmax of a row in which everything is −Inf: all of it is masked"
    return None


def _mean(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    return "mean of no elements (0/0)" if x is not None and not x.numel() else None


def _spread(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    if x is not None and (x.numel() == 1 or 1 in x.shape):
        return "deviation of a single element: the unbiased one divides by 0"
    return None


def _arc(operands: list[Operand]) -> str | None:
    x = _tensor(operands)
    if x is not None and bool((x.abs() > 1).any()):
        return "its operand is outside of −1 … 1"
    return None


def _nll(operands: list[Operand]) -> str | None:
    scores = _tensor(operands)
    if scores is not None and bool((scores == float("-inf")).any()):
        return "the probability of a wanted class is 0, and its log −Inf"
    return None


def _sub(operands: list[Operand]) -> str | None:
    first, second = _tensor(operands), _tensor(operands, 1)
    if first is None or second is None:
        return None
    if bool((torch.isinf(first) & torch.isinf(second)).any()):
        return "∞ − ∞"
    return None


def _mul(operands: list[Operand]) -> str | None:
    first, second = _tensor(operands), _tensor(operands, 1)
    if first is None or second is None:
        return None
    if bool((((first == 0) & torch.isinf(second)) | (torch.isinf(first) & (second == 0))).any()):
        return "0 · ∞"
    return None


_RULES: Final[dict[str, Callable[[list[Operand]], str | None]]] = {
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


def _count(which: torch.Tensor) -> str:
    number = int(which.sum())
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
    x = _tensor(list(operands))
    if x is not None and x.is_floating_point():
        if name in _INFINITE_AT_ZERO and bool((x == 0).any()):
            return f"the derivative of {name} at 0 is infinite: {_count(x == 0)} are 0"
        if name == "pow" and len(operands) > 1 and bool((x == 0).any()):
            return "the derivative of a power below 1 at 0 is infinite"
        if name in {"acos", "asin", "arccos", "arcsin"} and bool((x.abs() >= 1).any()):
            return f"the derivative of {name} at ±1 is infinite"
        if name in {"div", "truediv"}:
            said = _div(list(operands))
            if said:
                return f"{said}, which its derivative divides by once more"
    if name in {"where", "mul"}:
        return "0 · ∞ behind a mask: the branch that was not taken is not finite"
    looks = [look for each in grads if isinstance(each, torch.Tensor) and (look := range_of(each))]
    dtype = looks[0].dtype if looks else "the type"
    return f"{_overflow(dtype)} or infinite derivative of {name}"
