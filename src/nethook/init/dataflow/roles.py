"""Which part each parameter plays in an operation: weight, bias, scale; and how it is laid out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nethook.addresses.tree import ParameterSite
from nethook.init.dataflow.fans import Layout, layer_weights
from nethook.init.dataflow.recorder import Node, ParamUse, Ref
from nethook.kinds.operations import (
    ATTENTION,
    CONVOLUTIONS,
    LOOKUPS,
    NORMS,
    RECURRENT,
    TRANSPOSED,
)


@dataclass(frozen=True, slots=True)
class Use:
    """One use of one parameter."""

    param: int
    node: int
    role: str
    layout: Layout | None = None  # None where it is no matrix
    fans: tuple[float, float] | None = None
    data: tuple[int, ...] = ()  # the values that it is multiplied with
    why_not: str = ""  # why nethook leaves it alone


class Graph(Protocol):
    """What is known of a forward: all of it, or as far as it has come."""

    @property
    def nodes(self) -> Sequence[Node]:
        """The values, in order of execution."""

    @property
    def parameters(self) -> Sequence[ParameterSite]:
        """The parameters of the model."""


def uses_of(flow: Graph) -> list[Use]:
    """Every use of every parameter, in order of execution."""
    uses: list[Use] = []
    for node in flow.nodes:
        if not node.params and not any(flow.nodes[p].derived for p in node.parents):
            continue
        if node.derived or node.out:  # computed from parameters alone, or counted before
            continue
        uses += uses_at(flow, node)
    return uses


def uses_at(flow: Graph, node: Node) -> list[Use]:
    """The parameters that an operation uses."""
    if node.op in RECURRENT or node.op == ATTENTION:
        by_module = _by_module(flow, node)
        if by_module is not None:
            return by_module
    slots = _slots(node)
    weight = _weight(node, slots)
    uses = []
    if weight is not None:
        use, layout, data = weight
        if isinstance(use, Ref):
            uses += _derived(flow, node, use)
        else:
            uses.append(_matrix(flow, node, use, layout, data))
    for slot, value in slots.items():
        if isinstance(value, ParamUse) and (weight is None or value is not weight[0]):
            uses.append(_other(flow, node, slot, value))
        elif isinstance(value, Ref) and flow.nodes[value.index].derived and weight is None:
            uses += _derived(flow, node, value)
    return uses


def _slots(node: Node) -> dict[str, Any]:
    """The tensors among the arguments, by name or position; those in lists as well."""
    slots: dict[str, Any] = {}

    def add(slot: str, value: Any) -> None:
        if isinstance(value, Ref | ParamUse):
            slots[slot] = value
        elif isinstance(value, list | tuple):
            for position, item in enumerate(value):
                add(f"{slot}.{position}", item)

    for position, value in enumerate(node.args):
        add(str(position), value)
    for name, value in node.kwargs.items():
        add(name, value)
    return slots


def _argument(node: Node, position: int, name: str, default: Any = None) -> Any:
    return node.args[position] if len(node.args) > position else node.kwargs.get(name, default)


def _weight(
    node: Node, slots: dict[str, Any]
) -> tuple[ParamUse | Ref, Layout | None, tuple[int, ...]] | None:
    """The weight of a layer, its layout, and the values that it is multiplied with."""
    if node.op in CONVOLUTIONS or node.op in TRANSPOSED or node.op == "linear":
        x, w = _argument(node, 0, "input"), _argument(node, 1, "weight")
        return (w, _layout(node, w), _refs(x)) if _is_tensor(w) else None
    if node.op in LOOKUPS:
        ids, w = _argument(node, 0, "input"), _argument(node, 1, "weight")
        return (w, Layout("lookup"), _refs(ids)) if _is_tensor(w) else None
    if node.op == "bilinear":
        w = _argument(node, 2, "weight")
        data = _refs(_argument(node, 0, "input1")) + _refs(_argument(node, 1, "input2"))
        return (w, Layout("conv"), data) if _is_tensor(w) else None
    if node.op in ("addmm", "baddbmm"):
        x, w = _argument(node, 1, "mat1"), _argument(node, 2, "mat2")
        return _product(x, w)
    if node.op in ("matmul", "mm", "bmm"):
        return _product(_argument(node, 0, "input"), _argument(node, 1, "other"))
    if node.op == "rmatmul":
        return _product(_argument(node, 1, "other"), _argument(node, 0, "input"))
    if node.op == "einsum" and len(node.params) == 1:
        data = tuple(operand.index for operand in slots.values() if isinstance(operand, Ref))
        return node.params[0], None, data
    return None


def _product(left: Any, right: Any) -> tuple[ParamUse | Ref, Layout | None, tuple[int, ...]] | None:
    if isinstance(right, ParamUse) and isinstance(left, Ref):
        return right, Layout("linear", in_first=not right.transposed), (left.index,)
    if isinstance(left, ParamUse) and isinstance(right, Ref):
        return left, Layout("linear", in_first=left.transposed), (right.index,)
    return None


def _layout(node: Node, weight: Any) -> Layout:
    turned = isinstance(weight, ParamUse) and weight.transposed
    if node.op == "linear":
        return Layout("linear", in_first=turned)
    dims = int(node.op[-2])
    stride = _argument(node, 3, "stride", 1)
    groups = _argument(node, 6, "groups", 1)
    product = math.prod(stride) if isinstance(stride, tuple | list) else int(stride) ** dims
    if isinstance(stride, tuple | list) and len(stride) == 1:
        product = int(stride[0]) ** dims
    form = "conv" if node.op in CONVOLUTIONS else "conv_transpose"
    return Layout(form, groups=int(groups), stride=product)  # type: ignore[arg-type]


def _matrix(
    flow: Graph, node: Node, use: ParamUse, layout: Layout | None, data: tuple[int, ...]
) -> Use:
    shape = tuple(flow.parameters[use.index].tensor.shape)
    role = "embedding" if node.op in LOOKUPS else "weight"
    if not use.whole:
        return Use(use.index, node.index, role, data=data, why_not="only a part of it is used")
    if layout is None:
        fans = _einsum_fans(node, shape)
        if fans is None:
            return Use(
                use.index, node.index, role, data=data, why_not="its einsum is not understood"
            )
        return Use(use.index, node.index, role, None, fans, data)
    understood = len(shape) == 2 or layout.form not in ("linear", "lookup")
    if not understood:
        reason = f"a {node.op} with a weight of {len(shape)} dimensions is not understood"
        return Use(use.index, node.index, role, data=data, why_not=reason)
    return Use(use.index, node.index, role, layout, layout.fans(shape), data)


def _einsum_fans(node: Node, shape: tuple[int, ...]) -> tuple[float, float] | None:
    equation = node.args[0] if node.args and isinstance(node.args[0], str) else None
    if equation is None or "->" not in equation or "." in equation:
        return None
    left, _, right = equation.replace(" ", "").partition("->")
    operands = node.args[1:]
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    for term, operand in zip(left.split(","), operands, strict=False):
        if isinstance(operand, ParamUse) and len(term) == len(shape):
            sizes = dict(zip(term, shape, strict=True))
            fan_in = math.prod(size for letter, size in sizes.items() if letter not in right)
            others = {x for x in left.replace(term, "", 1) if x != ","}
            fan_out = math.prod(size for letter, size in sizes.items() if letter not in others)
            return float(fan_in), float(fan_out)
    return None


def _derived(flow: Graph, node: Node, ref: Ref) -> list[Use]:
    reason = f"{node.op} uses what is computed from it, as a parametrisation does"
    derived = sorted(flow.nodes[ref.index].derived)
    return [
        Use(param, node.index, "part of a computed weight", why_not=reason) for param in derived
    ]


def _other(flow: Graph, node: Node, slot: str, use: ParamUse) -> Use:
    """A parameter that is not the matrix of its operation."""
    shape = tuple(flow.parameters[use.index].tensor.shape)
    data = tuple(node.parents)
    layered = node.op in CONVOLUTIONS | TRANSPOSED | {"linear", "bilinear"}
    if layered or (node.op in ("addmm", "baddbmm") and slot in ("0", "input")):
        return Use(use.index, node.index, "bias", data=data)
    if node.op in NORMS:
        last = slot in ("bias", "4") or (node.op in ("layer_norm", "group_norm") and slot == "3")
        return Use(use.index, node.index, "norm shift" if last else "norm scale", data=data)
    if node.op == "prelu":
        reason = "it is the slope of an activation"
        return Use(use.index, node.index, "activation", data=data, why_not=reason)
    if node.op in ("add", "sub"):
        wide = node.shape[-1:] == shape[-1:] and math.prod(shape) == shape[-1] if shape else True
        if wide:
            return Use(use.index, node.index, "bias", data=data)
        reason = "it is added to the signal as it is, so no fan says how large it should be"
        return Use(use.index, node.index, "learned offset", data=data, why_not=reason)
    if node.op in ("mul", "div", "truediv"):
        return Use(
            use.index,
            node.index,
            "factor",
            data=data,
            why_not="it is a factor of the signal, and kept as the model made it",
        )
    if node.op in ("cat", "stack", "concat", "where"):
        return Use(
            use.index,
            node.index,
            "learned token",
            data=data,
            why_not="it is joined to the signal as it is, so no fan says how large it is",
        )
    reason = f"what {node.op} does with it is not understood"
    return Use(use.index, node.index, "unknown", data=data, why_not=reason)


def _by_module(flow: Graph, node: Node) -> list[Use] | None:
    """Recurrent layers and attention: torch's own, whose parameters have known names."""
    module = node.module
    weights = None if module is None else layer_weights(module)
    if weights is None or module is None:
        return None
    param_of = {id(site.tensor): param for param, site in enumerate(flow.parameters)}
    used = {use.index for use in node.params}
    named = dict(module.named_parameters())
    data = node.parents[:1] if node.op in RECURRENT else node.parents[:3]
    uses = []
    for weight in weights:
        param = param_of.get(id(named.get(weight.name)))
        if param is None or param not in used:
            continue
        shape = tuple(named[weight.name].shape)
        fans = None if weight.layout is None else weight.layout.fans(shape)
        uses.append(Use(param, node.index, weight.role, weight.layout, fans, data))
    return uses


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Ref | ParamUse)


def _refs(value: Any) -> tuple[int, ...]:
    return (value.index,) if isinstance(value, Ref) else ()
