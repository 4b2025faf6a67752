"""Baselines: what stands for “nothing is there”, which only the user can know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import replace, tensors
from nethook.errors import OptionError
from nethook.interp.attributions.subject import Subject, recorded
from nethook.interp.devices import moved_inputs
from nethook.interp.results.places import FEATURES, PIXELS, SIGNAL

_EXAMPLES = (
    "baseline=0, baseline=data.mean(0), a tensor of the value's shape, or at a site the inputs of "
    "a run, such as padding tokens"
)


def baseline_of(subject: Subject, given: Any) -> tuple[torch.Tensor, str]:
    """A baseline as a value for every row, and in words."""
    value = subject.value
    if given is None:
        _check_zero_is_neutral(subject)
        return torch.zeros_like(value), "0"
    if isinstance(given, bool):
        raise OptionError(f"`baseline` must be a number, a tensor or inputs; got {given!r}.")
    if isinstance(given, int | float):
        return torch.full_like(value, float(given)), f"{given:g}"
    if isinstance(given, torch.Tensor):
        return _of_tensor(subject, given)
    if subject.point is not None and isinstance(given, Inputs | Mapping | tuple):
        return _of_run(subject, as_inputs(given))
    raise OptionError(f"`baseline` must be {_EXAMPLES}; got {type(given).__name__}.")


def several_baselines(subject: Subject, given: Any) -> torch.Tensor:
    """Rows to draw baselines from, of the value's shape without its rows."""
    value = subject.value
    if not isinstance(given, torch.Tensor) or given.ndim == 0:
        raise OptionError(
            "`baseline` must be rows of data to draw from, a tensor (rows, …); got "
            f"{type(given).__name__}."
        )
    if not given.is_floating_point() and subject.point is not None:
        return recorded(subject.model, _ids_in_place(subject, given), subject.point)[0]
    if given.shape[1:] != value.shape[1:]:
        raise OptionError(
            f"`baseline` must be rows of data of the shape (…, {_shape(value[:1])}); got "
            f"{tuple(given.shape)}."
        )
    return given.to(value).detach()


def _check_zero_is_neutral(subject: Subject) -> None:
    """Zero is taken silently only for pictures and signals whose values reach it."""
    ends = float(subject.value.min()), float(subject.value.max())
    if subject.point is not None:
        why = f"zero means nothing at {subject.address!r}"
    elif subject.kind == FEATURES:
        why = "zero is a value like another in a table of features"
    elif subject.kind not in (PIXELS, SIGNAL):
        why = "zero may mean anything in such an input"
    elif _is_far_from_zero(*ends):
        why = f"zero is outside the input, {ends[0]:.3g} … {ends[1]:.3g}"
    else:
        return
    raise OptionError(f"`baseline` must be named, because {why}; got None. Give {_EXAMPLES}.")


def _is_far_from_zero(low: float, high: float) -> bool:
    near = 0.1 * (high - low)
    return low > near or high < -near


def _of_tensor(subject: Subject, given: torch.Tensor) -> tuple[torch.Tensor, str]:
    value = subject.value
    if subject.point is not None:
        fits_inputs = _first_like(subject, given) is not None
        if not given.is_floating_point() and fits_inputs:
            return _of_run(subject, _ids_in_place(subject, given))
        if given.is_floating_point() and fits_inputs and _fits(given, value):
            raise OptionError(
                "`baseline` must be clear; got a tensor of the shape "
                f"{tuple(given.shape)}, which may be the value at {subject.address!r} or an input. "
                "Write nethook.inputs(tensor) for an input, or give a value of one row less."
            )
        if given.is_floating_point() and fits_inputs:
            return _of_run(subject, _ids_in_place(subject, given))
    if not _fits(given, value):
        raise OptionError(
            f"`baseline` must have the shape of the value, {tuple(value.shape)}, or of one row; "
            f"got {tuple(given.shape)}."
        )
    given = given.detach().to(value)
    if not bool(given.isfinite().all()):
        raise OptionError("`baseline` must be finite; got infinity or NaN.")
    words = f"{float(given.reshape(-1)[0]):g}" if given.numel() == 1 else "given"
    return given.expand_as(value).clone(), words


def _fits(given: torch.Tensor, value: torch.Tensor) -> bool:
    try:
        return bool(torch.broadcast_shapes(given.shape, value.shape) == value.shape)
    except RuntimeError:
        return False


def _first_like(subject: Subject, given: torch.Tensor) -> Any:
    """The path of the input that a tensor stands for: of the same kind and shape; None: none."""
    there = tensors((subject.inputs.args, dict(subject.inputs.kwargs)))
    fitting = [
        path
        for path, tensor in there
        if tensor.is_floating_point() == given.is_floating_point()
        and (tensor.shape == given.shape or tensor.shape[1:] == given.shape[1:])
    ]
    named = [path for path in fitting if "input_ids" in str(path[-1])]
    return next(iter([*named, *fitting]), None)


def _ids_in_place(subject: Subject, given: torch.Tensor) -> Inputs:
    """The inputs with one tensor exchanged; all else, such as a mask, is the same."""
    path = _first_like(subject, given)
    if path is None:
        raise OptionError(f"`baseline` must have the shape of an input; got {tuple(given.shape)}.")
    device = subject.value.device
    args, kwargs = replace((subject.inputs.args, dict(subject.inputs.kwargs)), path, given)
    return moved_inputs(Inputs(args, kwargs), device)


def _of_run(subject: Subject, inputs: Inputs) -> tuple[torch.Tensor, str]:
    assert subject.point is not None
    value, _ = recorded(subject.model, moved_inputs(inputs, subject.value.device), subject.point)
    subject.runs += 1
    if value.shape != subject.value.shape:
        raise OptionError(
            f"`baseline` must give the shape of the value at {subject.address!r}, "
            f"{tuple(subject.value.shape)}; got {tuple(value.shape)} from its run."
        )
    return value, "of other inputs"


def _shape(value: torch.Tensor) -> str:
    return ", ".join(str(length) for length in value.shape[1:])
