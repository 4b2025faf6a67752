"""What a graph means for scales: what feeds a weight, what follows it, residual adds, norms."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from nethook.init.dataflow.composites import Composites
from nethook.init.dataflow.recorder import Flow, Node
from nethook.init.dataflow.roles import Use, uses_of
from nethook.kinds.operations import (
    ATTENTION,
    FUSED_ATTENTION,
    NORMS,
    PASS,
    REDUCTIONS,
    WEIGHTED,
)


@dataclass(slots=True)
class Add:
    """A sum of two values; residual where one is a short way from what the other comes from."""

    node: int
    skip: int
    branch: int
    residual: bool
    chain: int = -1  # which stream it belongs to
    number: int = 0  # its place in the stream, from 1
    adds: int = 1  # how many the stream has


@dataclass(slots=True)
class Follows:
    """What follows a weight: activations, norms, sums, other layers."""

    names: list[str] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)  # values that are its activations
    norm: str = ""  # the norm that cancels its scale, if all of it goes there


class Structure:
    """The graph of a forward, read for scales."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.nodes = flow.nodes
        self.composites = Composites(flow)
        self.uses = uses_of(flow)
        self.weighted = {use.node for use in self.uses if self.nodes[use.node].op in WEIGHTED}
        self.children: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for parent in dict.fromkeys(node.parents):
                self.children[parent].append(node.index)
        self.uses = [self._as_norm(use) for use in self.uses]

    def _as_norm(self, use: Use) -> Use:
        """The factor of a norm that is written out is the scale of a norm."""
        if use.role in ("factor", "bias") and self.is_norm_scale(self.nodes[use.node]):
            role = "norm scale" if use.role == "factor" else "norm shift"
            return replace(use, role=role, why_not="")
        return use

    # -- going back ---------------------------------------------------------------------------

    def origin(self, index: int) -> int:
        """The value that another one is a copy, a cast, a view or a part of."""
        while True:
            node = self.nodes[index]
            if node.op == "opaque" and len(node.parents) == 1:
                return index
            if node.op not in PASS or not node.parents:
                return index
            index = node.parents[0]

    @cached_property
    def ancestors(self) -> list[int]:
        """Of each value, the values it was computed from, as the bits of one number.

        `ancestors[a] >> b & 1` asks whether `a` comes from `b`. Whole numbers of any length make
        that, and what two values have in common, one operation each, at one bit per pair of nodes.
        """
        ancestors: list[int] = []
        for node in self.nodes:
            bits = 1 << node.index
            for parent in node.parents:
                bits |= ancestors[parent]
            ancestors.append(bits)
        return ancestors

    def is_norm(self, index: int) -> bool:
        """Whether a value is normalised: by a function of torch's, or written out."""
        node = self.nodes[index]
        return node.op in NORMS or index in self._written_norms or self.is_norm_scale(node)

    @cached_property
    def _written_norms(self) -> dict[int, int]:
        """Norms that are written out: the product, and the value that it normalises."""
        norms = {}
        for node in self.nodes:
            if node.op not in ("mul", "div", "truediv") or len(node.parents) != 2:
                continue
            for value, factor in (node.parents, node.parents[::-1]):
                whole, statistic = self.nodes[value], self.nodes[factor]
                smaller = statistic.numel < whole.numel and whole.shape == node.shape
                if smaller and self._is_statistic_of(factor, value):
                    norms[node.index] = value
        return norms

    def _is_statistic_of(self, index: int, value: int) -> bool:
        """Whether a value is computed from another one's mean or spread, without any weight."""
        # x · rsqrt(mean(x²)), or (x − mean) · rsqrt(var(x)): the value itself, or what it was
        # centred from, is where the search for a reduction ends.
        start = self.origin(value)
        base = {start, *(self.origin(p) for p in self.nodes[start].parents)}
        reduced, left, seen = False, [index], set()
        while left:
            current = left.pop()
            if current in seen or self.origin(current) in base:
                continue
            seen.add(current)
            if current in self.weighted:
                return False
            reduced = reduced or self.nodes[current].op in REDUCTIONS
            left += self.nodes[current].parents
        return reduced and bool(self.ancestors[index] >> start & 1 or len(base) > 1)

    # -- going forward ------------------------------------------------------------------------

    def consumers(self, index: int) -> list[int]:
        """The operations that use a value, or a view or part of it."""
        consumers, left, seen = [], [index], set()
        while left:
            for child in self.children[left.pop()]:
                if child in seen:
                    continue
                seen.add(child)
                if self.nodes[child].op in PASS:
                    left.append(child)
                else:
                    consumers.append(child)
        return sorted(consumers)

    def follows(self, index: int) -> Follows:
        """What follows a value."""
        result = Follows()
        direct = self.consumers(index)
        if not direct:
            result.names.append("output")
        norms = [child for child in direct if self.is_norm(child)]
        rest = [child for child in direct if child not in norms]
        if norms and all(any(self.ancestors[n] >> child & 1 for n in norms) for child in rest):
            result.norm = self.nodes[norms[0]].address
            result.names.append(self.nodes[norms[0]].op if rest == [] else "norm")
            return result
        for child in direct:
            if self.composites.source[child] != child:
                result.functions += self._ends(child)
            else:
                result.names.append(self._kind(child))
        result.functions = sorted(set(result.functions))
        names = [self.composites.name(function) for function in result.functions]
        result.names = list(dict.fromkeys([*names, *result.names]))
        return result

    def _ends(self, index: int) -> list[int]:
        """The last values of a function that begins here: those that something else uses."""
        source = self.composites.source[index]
        ends, left, seen = [], [index], set()
        while left:
            current = left.pop()
            if current in seen:
                continue
            seen.add(current)
            after = self.children[current]
            inner = [c for c in after if self.composites.source[c] == source]
            left += inner
            if len(inner) < len(after) or not after:
                ends.append(current)
        return [current for current in ends if self.composites.is_function(current)]

    def _kind(self, index: int) -> str:
        node = self.nodes[index]
        if node.op == "add" and index in self.adds_by_node:
            add = self.adds_by_node[index]
            return f"residual add {add.number} of {add.adds}" if add.residual else "sum"
        return node.op

    # -- residual sums ------------------------------------------------------------------------

    @cached_property
    def adds_by_node(self) -> dict[int, Add]:
        """Every sum of two signals, by its node."""
        adds: dict[int, Add] = {}
        for node in self.nodes:
            if node.op == "add" and not self.composites.is_function(node.index):
                add = self._sum(node)
                if add is not None:
                    adds[node.index] = add
        self._chains(adds)
        return adds

    def _sum(self, node: Node) -> Add | None:
        if len(node.parents) != 2 or node.params or not node.floating or node.derived:
            return None
        a, b = node.parents
        fixed = [self.nodes[p].op == "constant" or bool(self.nodes[p].derived) for p in (a, b)]
        if any(fixed) or a == b:
            return None
        # Nodes are numbered in order of execution, so the highest common bit is the latest value
        # that both sides come from: where a stream and its branch part.
        common = self.ancestors[a] & self.ancestors[b]
        start = common.bit_length() - 1
        while start >= 0 and not self.is_signal(start):
            common &= ~(1 << start)
            start = common.bit_length() - 1
        if start < 0:
            return Add(node.index, a, b, residual=False)
        weights_a, weights_b = self._weights_between(a, start), self._weights_between(b, start)
        if weights_a == weights_b:
            return Add(node.index, a, b, residual=False) if weights_a else None
        # The side with fewer weights is the short way; it may have one (a projection).
        skip, branch = (a, b) if weights_a < weights_b else (b, a)
        return Add(node.index, skip, branch, residual=True)

    def is_signal(self, index: int) -> bool:
        """Whether a value depends on the input: no constant, and not made of parameters alone."""
        node = self.nodes[index]
        return node.floating and node.op != "constant" and not node.derived

    def _weights_between(self, index: int, start: int) -> int:
        """The fewest weights on a way from `start` to a value."""
        fewest: dict[int, int] = {start: 0}

        for current in range(start + 1, index + 1):
            if not self.ancestors[current] >> start & 1 or not self.ancestors[index] >> current & 1:
                continue
            ways = [fewest[p] for p in self.nodes[current].parents if p in fewest]
            if ways:
                fewest[current] = min(ways) + (current in self.weighted)
        return fewest.get(index, 0)

    def _chains(self, adds: dict[int, Add]) -> None:
        """Joins sums into streams: the skip of one leads to another, past no norm or weight."""
        residual = [add for add in adds.values() if add.residual]
        for add in residual:
            before = self._stream_before(add.skip, adds)
            if before is None:
                add.chain, add.number = add.node, 1
            else:
                add.chain, add.number = before.chain, before.number + 1
        for add in residual:
            add.adds = max(other.number for other in residual if other.chain == add.chain)

    def _stream_before(self, index: int, adds: dict[int, Add]) -> Add | None:
        while True:
            add = adds.get(index)
            if add is not None and add.residual:
                return add
            node = self.nodes[index]
            if index in self.weighted or self.is_norm(index) or not node.parents:
                return None
            data = [p for p in node.parents if self.is_signal(p)]
            if not data:
                return None
            index = max(data, key=lambda p: self.nodes[p].numel)

    def stream_start(self, add: Add) -> int:
        """The value with which the stream of a residual sum begins."""
        first = next(
            other for other in self.adds_by_node.values()
            if other.residual and other.chain == add.chain and other.number == 1
        )  # fmt: skip
        return first.skip

    def last_scales(self, index: int) -> tuple[list[int], list[int]]:
        """The weights, and the norms, that set the scale of a value: nodes, going back from it."""
        weights: list[int] = []
        norms: list[int] = []
        left, seen = [index], set()
        while left:
            current = left.pop()
            if current in seen:
                continue
            seen.add(current)
            node = self.nodes[current]
            if current in self.weighted:
                weights.append(current)
            elif self.is_norm(current):
                norms.append(current)
            elif node.op in ("mul", "div", "truediv") and len(node.parents) > 1:
                # Of a gate and what it gates, the latter; a gate has the shape of a factor.
                whole = [p for p in node.parents if self.nodes[p].numel == node.numel]
                left += whole[:1] if self.is_norm_scale(node) else whole
            elif node.op != "constant":
                left += [p for p in node.parents if self.is_signal(p)]
        return weights, norms

    def is_norm_scale(self, node: Node) -> bool:
        """Whether a product is that of a normalised value and a parameter."""
        if not node.params or node.op not in ("mul", "add"):
            return False
        return any(self.is_norm(self.origin(p)) for p in node.parents)

    # -- attention ----------------------------------------------------------------------------

    def attention_part(self, index: int) -> str:
        """Whether a weight's output is a query, key or value: "query", "key", "value", "packed"."""
        parts = set()
        for reached in self._reached(index):
            node = self.nodes[reached]
            if node.op == FUSED_ATTENTION:
                for slot, name in enumerate(("query", "key", "value")):
                    if len(node.parents) > slot and self._leads(index, node.parents[slot]):
                        parts.add(name)
            elif node.op in ("matmul", "bmm", "einsum", "baddbmm") and not node.params:
                softmax = self._leads_to_softmax(reached)
                for slot, parent in enumerate(node.parents[:2]):
                    if self._leads(index, parent):
                        parts.add(("query", "key")[slot] if softmax else "value")
        if len(parts) > 1:
            return "packed"
        return parts.pop() if parts else ""

    def _reached(self, index: int) -> list[int]:
        """What a value reaches without a weight between; through functions and norms."""
        reached, left, seen = [], [index], set()
        while left:
            for child in self.children[left.pop()]:
                if child in seen:
                    continue
                seen.add(child)
                reached.append(child)
                op = self.nodes[child].op
                stops = child in self.weighted or op in (FUSED_ATTENTION, ATTENTION, "softmax")
                add = self.adds_by_node.get(child)
                stops = stops or (add is not None and add.residual)
                if not stops and op not in ("matmul", "bmm", "einsum", "baddbmm"):
                    left.append(child)
        return reached

    def _leads(self, index: int, value: int) -> bool:
        """Whether a value is computed from another one without a weight in between."""
        left, seen = [value], set()
        while left:
            current = left.pop()
            if current == index:
                return True
            if current in seen or current < index or current in self.weighted:
                continue
            seen.add(current)
            left += self.nodes[current].parents
        return False

    def _leads_to_softmax(self, index: int) -> bool:
        # Breadth first and bounded: a softmax that belongs to these scores is a few operations
        # away (a scale, a mask), and without a bound the search would walk the rest of the network.
        left, steps = [index], 0
        while left and steps < 64:
            steps += 1
            for child in self.children[left.pop(0)]:
                if self.nodes[child].op == "softmax":
                    return True
                if child not in self.weighted and self.nodes[child].op != "matmul":
                    left.append(child)
        return False

    def uses_at(self, index: int) -> list[Use]:
        """The parameters that an operation uses."""
        return [use for use in self.uses if use.node == index]
