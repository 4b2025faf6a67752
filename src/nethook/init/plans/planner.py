"""`plan`: one forward, and from it what every parameter should be."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from torch import nn

from nethook.addresses.inputs import as_inputs
from nethook.addresses.tree import ParameterSite
from nethook.errors import ActivationError
from nethook.init.dataflow.fans import Layout, gates_of
from nethook.init.dataflow.recorder import Flow, record
from nethook.init.dataflow.residuals import Add, Structure
from nethook.init.dataflow.roles import Use
from nethook.init.gains.conventions import calculate_gain
from nethook.init.plans.methods import Method, find_method
from nethook.init.plans.mirrored import Pairs, pairs_of
from nethook.init.plans.rows import Plan, PlanRow
from nethook.init.plans.sampling import is_distributed
from nethook.init.plans.scales import Scales
from nethook.init.plans.warnings import warnings_of
from nethook.kinds.operations import ATTENTION, LOOKUPS, RECURRENT


def plan(model: nn.Module, inputs: Any, method: str = "auto", *, zero: bool = False) -> Plan:
    """What each parameter of a model should be, and why; the model is not changed.

        plan = nethook.init.plan(model, inputs)
        print(plan)                             # read it
        nethook.init.apply_(model, plan)

    Runs the model once, eagerly, and sees by data flow what feeds each weight
    and what follows it: functional activations, shared and tied weights, residual sums, norms,
    attention. Names of parameters mean nothing.

    Arguments:
        model: any `nn.Module`. On the meta device, too, with inputs that are there.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
        method: "auto", or a rule from the literature: "he", "he_uniform", "glorot",
            "glorot_normal", "lecun", "orthogonal", "delta-orthogonal".
        zero: start every residual branch at zero, by its last norm or its last weight.

    With "auto" every layer's output is to have mean square 1, given what feeds it. The last weight
    of a residual branch is divided by √(number of sums in its stream). Weights are orthogonal, and
    deep plain stretches start in pairs of opposite sign (`docs/init.md`).

    Returns:
        A `Plan`. What it will not touch is listed in it, with the reasons.
    """
    rule = find_method(method)
    return plan_of(model, record(model, as_inputs(inputs)), rule, zero=zero)


def plan_of(model: nn.Module, flow: Flow, rule: Method, *, zero: bool) -> Plan:
    """The plan that follows from a recorded forward."""
    return _Planner(model, flow, rule, zero=zero).plan()


def plan_with_streams(
    model: nn.Module, flow: Flow, rule: Method
) -> tuple[Plan, dict[str, tuple[int, float]]]:
    """A plan, and for each weight that ends a residual branch where its stream begins.

    The mean square of its output should be that of this node, times the number that follows.
    """
    planner = _Planner(model, flow, rule, zero=False)
    return planner.plan(), planner.streams


@dataclass(slots=True)
class _Target:
    """The mean square that a weight's output should have, and what for."""

    square: float = 1.0
    residual: tuple[int, int] | None = None
    reasons: list[str] = field(default_factory=list)
    zero: bool = False
    stream: tuple[int, float] | None = None  # the node whose square it is a share of, and the share


class _Planner:
    def __init__(self, model: nn.Module, flow: Flow, rule: Method, *, zero: bool) -> None:
        self.model = model
        self.flow = flow
        self.rule = rule
        self.zero = zero
        self.structure = Structure(flow)
        self.by_param: dict[int, list[Use]] = {}
        for use in self.structure.uses:
            self.by_param.setdefault(use.param, []).append(use)
        self.chosen = {param: _decides(uses) for param, uses in self.by_param.items()}
        self.wanted: dict[int, float] = {}
        self.scales = Scales(self.structure, self.wanted)
        self.targets: dict[int, _Target] = {}
        self.pairs: Pairs = {}
        self.streams: dict[str, tuple[int, float]] = {}  # by parameter, as in `_Target`

    def plan(self) -> Plan:
        adds = list(self.structure.adds_by_node.values())
        if self.rule.gain == "exact":
            self._share_sums(adds)
            if self.rule.name == "auto":
                self.pairs = pairs_of(self.structure, self._alone())
            self._walk()
        rows = tuple(self._row(param, site) for param, site in enumerate(self.flow.parameters))
        warned = warnings_of(self.model, self.structure, rows, self.pairs)
        residual = sum(add.residual for add in adds)
        return Plan(type(self.model).__name__, self.rule.name, rows, warned, residual)

    # -- targets ------------------------------------------------------------------------------

    def _alone(self) -> dict[int, Use]:
        """The weights that one operation uses, once, and that may be written."""
        return {
            uses[0].node: uses[0]
            for param, uses in self.by_param.items()
            if len(uses) == 1 and not uses[0].why_not and self._why_not(param) is None
            and uses[0].fans is not None
        }  # fmt: skip

    def _share_sums(self, adds: list[Add]) -> None:
        """Divides among the branches of a sum what the sum may have."""
        for add in adds:
            if add.residual:
                continue
            sides = [self.structure.last_scales(side)[0] for side in (add.skip, add.branch)]
            if not all(sides):
                continue
            nodes = {node for side in sides for node in side}
            tied = [square for node in nodes if (square := self._tied_square(node)) is not None]
            for node in nodes:
                target = self.targets.setdefault(node, _Target())
                # What is decided elsewhere sets the scale for the other side.
                target.square = tied[0] if tied else target.square / 2
                target.reasons.append(
                    "as large as what it is added to" if tied else "half of a sum"
                )

    def _tied_square(self, node: int) -> float | None:
        """The mean square of a lookup whose table is the weight of another layer."""
        for use in self.structure.uses_at(node):
            decides = self.chosen[use.param]
            if use.role == "embedding" and decides.role == "weight" and decides.fans is not None:
                return 1.0 / decides.fans[0]
        return None

    def _walk(self) -> None:
        """Goes through the forward once, in order, and settles what each weight is to give."""
        branches: dict[int, list[Add]] = {}
        for add in self.structure.adds_by_node.values():
            if add.residual:
                weights, norms = self.structure.last_scales(add.branch)
                for node in norms or weights:
                    branches.setdefault(node, []).append(add)
        norms_at = {use.node for use in self.structure.uses if use.role == "norm scale"}
        # In order of execution: the scale of a stream, of which a branch gets its share, is that
        # of weights that were settled before.
        for node in sorted({*self.structure.weighted, *norms_at, *branches}):
            target = self.targets.setdefault(node, _Target())
            for add in branches.get(node, [])[:1]:
                self._branch(target, add)
            self.wanted[node] = 0.0 if target.zero else target.square
            if node in self.structure.weighted and not self._is_planned(node):
                del self.wanted[node]  # nobody sets it: it scales what it is given as it did
                tied = self._tied_square(node)
                if tied is not None:
                    self.wanted[node] = tied

    def _branch(self, target: _Target, add: Add) -> None:
        start = self.structure.stream_start(add)
        is_before = start < add.branch  # a projection on the short way may come later
        stream = self.scales.of(start) if is_before else 1.0
        target.stream = (start, target.square / add.adds) if is_before else None
        target.square *= stream / add.adds
        target.residual = (add.number, add.adds)
        target.zero = self.zero
        if self.zero:
            target.reasons.append("the branch starts at zero")
        elif add.adds > 1:
            target.reasons.append(f"1/√{add.adds}: its stream has {add.adds} sums")

    def _is_planned(self, node: int) -> bool:
        matrices = [use for use in self.structure.uses_at(node) if use.fans is not None]
        return bool(matrices) and all(
            self._why_not(use.param) is None and self.chosen[use.param].node == node
            and not self.chosen[use.param].why_not
            for use in matrices
        )  # fmt: skip

    # -- rows ---------------------------------------------------------------------------------

    def _why_not(self, param: int) -> str | None:
        tensor = self.flow.parameters[param].tensor
        if not tensor.requires_grad:
            return "it is frozen (requires_grad=False)"
        if not tensor.is_floating_point():
            return f"it is of type {str(tensor.dtype).removeprefix('torch.')}"
        if not tensor.numel():
            return "it has no elements"
        if is_distributed(tensor):
            return "it is a DTensor: apply the plan before the model is sharded"
        return None

    def _row(self, param: int, site: ParameterSite) -> PlanRow:
        uses = self.by_param.get(param, [])
        shape = tuple(site.tensor.shape)
        base: dict[str, Any] = {"parameter": site.address, "shape": shape, "names": site.names}
        if not uses:
            owner = site.owners[0].module if site.owners else None
            called = owner is None or id(owner) in self.flow.called
            reason = "no operation used it" if called else "its module was never called"
            return PlanRow(role="unused", distribution=None, std=None, reason=reason, **base)
        use = self.chosen[param]
        why_not = self._why_not(param) or use.why_not
        if why_not:
            return PlanRow(role=use.role, distribution=None, std=None, reason=why_not, **base)
        if use.fans is None:
            return self._vector(use, base)
        return self._matrix(use, uses, base)

    def _vector(self, use: Use, base: dict[str, Any]) -> PlanRow:
        if use.role == "norm scale":
            target = self.targets.get(use.node, _Target())
            value = 0.0 if target.zero else math.sqrt(target.square)
            reason = "; ".join(["a norm starts as it is", *target.reasons])
            return PlanRow(
                role=use.role,
                distribution="constant",
                std=value,
                reason=reason,
                residual=target.residual,
                **base,
            )
        module = self.structure.nodes[use.node].module
        lstm = use.role == "recurrent bias ih" and module is not None and gates_of(module) == 4
        ones = None
        if lstm and self.rule.gain == "exact":
            hidden = base["shape"][0] // 4
            ones = (hidden, 2 * hidden)
        reason = "zero, and 1 for the forget gate" if ones else "biases start at zero"
        return PlanRow(
            role=use.role, distribution="constant", std=0.0, reason=reason, ones=ones, **base
        )

    def _matrix(self, use: Use, uses: list[Use], base: dict[str, Any]) -> PlanRow:
        structure, shape = self.structure, base["shape"]
        node = structure.nodes[use.node]
        follows = structure.follows(use.node)
        attends = structure.attention_part(use.node) if use.role == "weight" else ""
        role = {"": use.role, "packed": "query, key, value"}.get(attends, attends)
        block = self._value_block(use.node) if attends == "packed" else None
        if block is not None and use.layout is not None and shape[_outputs(use.layout)] % 3 == 0:
            packed = replace(use.layout, blocks=3)
            use = replace(use, layout=packed, fans=packed.fans(shape))
        assert use.fans is not None
        layout = use.layout or Layout("linear")
        target = self.targets.get(use.node, _Target())
        mirror = self.pairs.get(use.node, (False, False))
        inner = use.role in ("recurrent hidden", "recurrent projection")
        if node.op == ATTENTION and use.role != "attention output":
            target = _Target()  # the sum that follows meets the output projection alone
        if inner:
            target = _Target()
        if target.stream is not None:
            self.streams[base["parameter"]] = target.stream
        reasons: list[str] = []
        std = self._std(use, follows.functions, target, reasons, mirrored=mirror[1], inner=inner)
        tied = len(uses) > 1
        if tied:
            reasons.append(f"used {len(uses)} times: one use decides")
        reasons += target.reasons
        if any(mirror):
            reasons.append("in pairs of opposite sign")
        if follows.norm:
            reasons.append(f"{follows.norm} cancels its scale")
        free = attends in ("query", "key") or follows.norm
        return PlanRow(
            role=role,
            distribution="constant" if target.zero else self._distribution(use, shape, layout),
            std=0.0 if target.zero else std,
            reason="; ".join(reasons),
            fan_in=use.fans[0],
            fan_out=use.fans[1],
            fed_by=self._fed_by(use),
            feeds=self._feeds(use, attends, follows.names),
            residual=target.residual,
            target=None if free else math.sqrt(0.0 if target.zero else target.square),
            cancelled_by=follows.norm,
            layout=use.layout,
            mirror=mirror,
            zero_row=_padding(node, shape) if use.role == "embedding" else None,
            value_block=block,
            not_calibrated=self._why_not_calibrated(use, attends, follows.norm, target, block),
            **base,
        )

    def _distribution(self, use: Use, shape: tuple[int, ...], layout: Layout) -> Any:
        return "normal" if use.layout is None else self.rule.drawn_from(shape, layout)

    def _std(
        self, use: Use, functions: list[int], target: _Target, reasons: list[str], *,
        mirrored: bool, inner: bool,
    ) -> float:  # fmt: skip
        assert use.fans is not None
        composites = self.structure.composites
        if self.rule.gain != "exact":
            name = composites.name(functions[0]) if functions and not inner else "linear"
            gain = 1.0
            if self.rule.gain == "torch" and use.role not in ("embedding",):
                gain = self._torch_gain(name, functions)
            reasons.append(
                f"{self.rule.name}, gain {gain:.4g}" + (f" of {name}" if functions else "")
            )
            return self.rule.std(gain, use.fans)
        if use.role == "embedding":
            reasons.append("a lookup: one weight per output")
            return math.sqrt(target.square)
        if len(self.by_param[use.param]) > 1 and use.role == "weight" and self._is_tied(use):
            reasons.append("tied to an embedding")
            return math.sqrt(target.square / use.fans[0])
        square = 1.0 if inner or use.role == "attention output" else self._square_in(use, mirrored)
        gain = 1.0 / math.sqrt(max(square, 1e-12))
        reasons.append(f"gain {gain:.4g}" + (f" of {self._fed_by(use)}" if use.data else ""))
        return math.sqrt(target.square) * gain / math.sqrt(use.fans[0])

    def _torch_gain(self, name: str, functions: list[int]) -> float:
        if not functions:
            return 1.0
        try:
            return calculate_gain(name)
        except ActivationError:
            moments = self.structure.composites.moments(functions[0], 1.0)
            return 1.0 if moments is None else moments.gain()

    def _is_tied(self, use: Use) -> bool:
        return any(other.role == "embedding" for other in self.by_param[use.param])

    def _square_in(self, use: Use, mirrored: bool) -> float:
        """The mean square of what a weight is multiplied with."""
        if not use.data:
            return 1.0
        squares = [self.scales.of(value) for value in use.data]
        square = math.prod(squares) if self._op(use) == "bilinear" else max(squares)
        if mirrored:
            origin = self.structure.origin(use.data[0])
            function = self._function_before(origin)
            if function is not None:
                source = self.scales.of(self.structure.composites.source[function])
                odd = self.structure.composites.odd_moments(function, source)
                whole = self.structure.composites.moments(function, source)
                if odd is not None and whole is not None:
                    square *= 2 * odd.second / whole.second
        return square

    def _op(self, use: Use) -> str:
        return self.structure.nodes[use.node].op

    def _function_before(self, index: int) -> int | None:
        composites = self.structure.composites
        while not composites.is_function(index):
            parents = self.structure.nodes[index].parents
            if len(parents) != 1 or index in self.structure.weighted:
                return None
            index = self.structure.origin(parents[0])
        return index

    def _fed_by(self, use: Use) -> str:
        if not use.data:
            return ""
        if use.role in ("recurrent hidden", "recurrent projection"):
            return "hidden state"
        if use.role == "attention output":
            return "attention"
        origin = self.structure.origin(use.data[0])
        node = self.structure.nodes[origin]
        if self.structure.composites.is_function(origin):
            return self.structure.composites.name(origin)
        if self.structure.is_norm(origin):
            return "norm" if node.op == "mul" else node.op
        add = self.structure.adds_by_node.get(origin)
        if add is not None:
            return f"residual add {add.number} of {add.adds}" if add.residual else "sum"
        return node.op

    def _feeds(self, use: Use, attends: str, names: list[str]) -> str:
        if attends:
            return f"attention ({attends})"
        if self._op(use) == ATTENTION and use.role != "attention output":
            return "attention"
        return ", ".join(names)

    def _value_block(self, node: int) -> int | None:
        """Which third of a packed projection holds the values: the one that goes to slot 2."""
        for index in self.structure.children[node]:
            child = self.structure.nodes[index]
            splits = [child] if child.op in ("split", "chunk") else []
            deeper = [self.structure.nodes[c] for c in self.structure.children[index]]
            for split in splits + [d for d in deeper if d.op in ("split", "chunk")]:
                if self.structure.attention_part(split.index) == "value":
                    return split.out
        return None

    def _why_not_calibrated(
        self, use: Use, attends: str, norm: str, target: _Target, block: int | None
    ) -> str:
        op = self._op(use)
        if norm:
            return f"no effect: {norm} cancels its scale"
        if target.zero:
            return "it is zero"
        if op in LOOKUPS:
            return "an embedding: its plan is exact"
        if op in RECURRENT:
            return "recurrent: its output depends on it through time, so the plan's scale stands"
        if attends in ("query", "key") or use.role in ("query", "key"):
            return "a query or key: only their product matters, and the plan's scale stands"
        if attends == "packed" and block is None:
            return "query, key and value in one: which part holds the values was not seen"
        return ""


def _outputs(layout: Layout) -> int:
    return 1 if layout.in_first else 0


def _decides(uses: list[Use]) -> Use:
    """The use that says what a parameter should be: a product before a lookup, then the first."""
    order = {"weight": 0, "embedding": 1}
    return min(uses, key=lambda use: (bool(use.why_not), order.get(use.role, 0), use.node))


def _padding(node: Any, shape: tuple[int, ...]) -> int | None:
    index = node.kwargs.get("padding_idx", node.args[2] if len(node.args) > 2 else None)
    return index % shape[0] if isinstance(index, int) and -shape[0] <= index < shape[0] else None
