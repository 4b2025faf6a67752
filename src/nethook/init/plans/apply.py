"""`apply_`: a plan, carried out."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import nn

from nethook.addresses.tree import ParameterSite, Tree
from nethook.errors import InitError
from nethook.init.dataflow.fans import Layout
from nethook.init.plans.rows import Plan, PlanRow
from nethook.init.plans.sampling import draw, why_not_fillable

Model = TypeVar("Model", bound=nn.Module)


@torch.no_grad()
def apply_(model: Model, plan: Plan, generator: torch.Generator | int | None = None) -> Model:
    """Writes into a model what a plan says, in place, all or nothing.

        nethook.init.apply_(model, nethook.init.plan(model, inputs), generator=0)

    Arguments:
        model: the model that the plan was made for, or one like it.
        plan: from `nethook.init.plan`, or `Plan.from_json`.
        generator: a seed or a `torch.Generator`; the same one gives the same weights, whatever
            the type and the device of the parameters. Without one, torch's own is used.

    Parameters with `requires_grad=False` stay as they are. Parameters without memory (meta) and
    DTensors are refused, with what to do instead, before anything is written.

    Returns:
        The model.
    """
    parameters = Tree(model).parameters()
    todo: list[tuple[PlanRow, ParameterSite]] = []
    for row in plan.rows:
        if not row.touched:
            continue
        site = parameters.find(row.parameter)
        if site is None or tuple(site.tensor.shape) != row.shape:
            there = "is not there" if site is None else f"has shape {tuple(site.tensor.shape)}"
            raise InitError(
                f"`plan` must be for this model; got one with {row.parameter!r} of shape "
                f"{row.shape}, which {there} here. Make one with nethook.init.plan(model, inputs)."
            )
        reason = why_not_fillable(site.tensor)
        if reason is not None:
            raise InitError(f"{row.parameter!r} cannot be initialised: {reason}.")
        if site.tensor.requires_grad:
            todo.append((row, site))
    if isinstance(generator, int):
        generator = torch.Generator().manual_seed(generator)
    for row, site in todo:
        site.tensor.copy_(values_of(row, site.tensor, generator))
    return model


def values_of(row: PlanRow, like: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """What a row says, drawn."""
    layout = row.layout or Layout("linear")
    assert row.distribution is not None
    std = row.std or 0.0
    if any(row.mirror):
        made = _mirrored(row, layout, like, generator)
    else:
        made = draw(
            row.shape,
            row.distribution,
            std,
            layout,
            generator,
            device=like.device,
            dtype=like.dtype,
        )
    if row.ones is not None:
        made[row.ones[0] : row.ones[1]] = 1.0
    if row.zero_row is not None:
        made[row.zero_row] = 0.0
    return made


def _mirrored(
    row: PlanRow, layout: Layout, like: torch.Tensor, generator: torch.Generator | None
) -> torch.Tensor:
    """[[M, −M], [−M, M]]: outputs, inputs or both in pairs of opposite sign."""
    assert row.distribution is not None
    outputs, inputs = (1, 0) if layout.in_first else (0, 1)
    shape = list(row.shape)
    for dimension, paired in ((outputs, row.mirror[0]), (inputs, row.mirror[1])):
        if paired:
            shape[dimension] //= 2
    made = draw(
        tuple(shape), row.distribution, row.std or 0.0, layout, generator,
        device=like.device, dtype=like.dtype,
    )  # fmt: skip
    for dimension, paired in ((outputs, row.mirror[0]), (inputs, row.mirror[1])):
        if paired:
            made = torch.cat([made, -made], dim=dimension)
    return made
