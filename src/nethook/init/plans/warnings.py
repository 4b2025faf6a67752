"""What may go wrong at the start: cloned layers, layers that never ran, scales that run away."""

from __future__ import annotations

import torch
from torch import nn

from nethook.init.dataflow.residuals import Structure
from nethook.init.plans.mirrored import Pairs
from nethook.init.plans.rows import PlanRow
from nethook.kinds.operations import PASS, POOLS
from nethook.stats.sampling import sampled

_DEEP = 10  # layers in a row over which an unstable slope matters: 1.14 to the tenth is 4


def warnings_of(
    model: nn.Module, structure: Structure, rows: tuple[PlanRow, ...], pairs: Pairs
) -> tuple[str, ...]:
    """Sentences for a person, most urgent first."""
    told = []
    cloned = cloned_parameters(structure)
    if cloned:
        shown = "; ".join(
            " = ".join(group[:3]) + (" = …" if len(group) > 3 else "") for group in cloned[:3]
        )
        more = f" and {len(cloned) - 3} more groups" if len(cloned) > 3 else ""
        told.append(
            f"layers that start as copies of one another: {shown}{more}. apply_ draws each anew."
        )
    idle = _never_called(model, structure)
    if idle:
        shown = ", ".join(repr(name) for name in idle[:4])
        more = f" and {len(idle) - 4} more" if len(idle) > 4 else ""
        told.append(f"never called in this forward: {shown}{more}.")
    told += _unstable(structure, pairs)
    shared = [row.parameter for row in rows if "times: one use decides" in row.reason]
    if shared:
        told.append(f"used more than once, so one scale serves all: {', '.join(shared[:4])}.")
    return tuple(told)


def cloned_parameters(structure: Structure) -> list[list[str]]:
    """Groups of different parameters with the very same values, as a deep copy leaves them."""
    groups: dict[tuple[object, ...], list[tuple[str, torch.Tensor]]] = {}
    for site in structure.flow.parameters:
        tensor = site.tensor.detach()
        if (
            tensor.dim() < 2
            or tensor.is_meta
            or tensor.layout is not torch.strided
            or tensor.is_quantized
            or tensor.numel() < 4
            or type(tensor) is not torch.Tensor
        ):
            continue
        some = sampled(tensor, 64, step=1).cpu()
        some = some.to(torch.complex128 if some.is_complex() else torch.float64)
        if bool((some == some[0]).all()):  # zeros are alike and no copies
            continue
        key = (tuple(tensor.shape), tensor.dtype, tuple(some.tolist()))
        groups.setdefault(key, []).append((site.address, tensor))
    clones = []
    for members in groups.values():
        first = members[0][1]
        same = [name for name, tensor in members if torch.equal(tensor, first)]
        if len(same) > 1:
            clones.append(same)
    return clones


def _never_called(model: nn.Module, structure: Structure) -> list[str]:
    used = {id(structure.flow.parameters[use.param].tensor) for use in structure.uses}
    never: list[str] = []
    for name, module in model.named_modules():
        own = list(module.parameters())
        idle = (
            own and not any(id(p) in used for p in own) and id(module) not in structure.flow.called
        )
        if idle and not any(name == above or name.startswith(f"{above}.") for above in never):
            never.append(name)
    return never


def _unstable(structure: Structure, pairs: Pairs) -> list[str]:
    """Stretches of layers without a norm or a residual sum whose activation repels its scale."""
    run: dict[int, int] = {}
    worst: tuple[int, str, float] | None = None
    slopes: dict[int, float] = {}
    for node in sorted(structure.weighted):
        before = _function_before(structure, node)
        if before is None:
            run[node] = 0
            continue
        function, weight = before
        if function not in slopes:
            moments = structure.composites.moments(function, 1.0)
            slopes[function] = 1.0 if moments is None else moments.slope
        mirrored = pairs.get(node, (False, False))[1]
        unstable = slopes[function] > 1 + 1e-6 and not mirrored
        run[node] = run.get(weight, 0) + 1 if unstable else 0
        if run[node] >= _DEEP and (worst is None or run[node] > worst[0]):
            worst = (run[node], structure.composites.name(function), slopes[function])
    if worst is None:
        return []
    count, name, slope = worst
    told = (
        f"{name} repels its own scale (slope {slope:.3f} > 1), and {count} layers follow one "
        "another without a norm or a residual sum: no fixed gain keeps them. Call "
        "nethook.init.calibrate_(model, inputs) after apply_."
    )
    return [told]


def _function_before(structure: Structure, node: int) -> tuple[int, int] | None:
    """The activation that feeds a weight, and the weight that feeds that activation."""
    uses = [use for use in structure.uses_at(node) if use.data and use.fans is not None]
    if not uses:
        return None
    current = uses[0].data[0]
    function = None
    while current not in structure.weighted:
        if structure.composites.is_function(current):
            function = current if function is None else function
            current = structure.composites.source[current]
        elif structure.nodes[current].op in PASS | POOLS and structure.nodes[current].parents:
            current = structure.nodes[current].parents[0]
        else:
            return None
    return None if function is None else (function, current)
