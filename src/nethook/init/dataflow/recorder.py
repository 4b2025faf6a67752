"""What feeds what: the operations of one forward as a graph, with the parameters they use.

The graph is read from the values themselves: a tensor that one operation returns and another takes
is an edge. So functional activations, shared modules, tied weights and control flow are seen as
they ran, and no name of a parameter or a module means anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.tree import ParameterSite, Tree
from nethook.addresses.wrappers import can_be_compiled, inside
from nethook.errors import InitError
from nethook.hooks.layouts.fake import is_fake
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.hooks.ops.consumer import ModuleCall, Op, OpConsumer, Place
from nethook.hooks.ops.watch import recomputing, watch_ops
from nethook.hooks.scope import Scope
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.stats.repeats import once
from nethook.torch_private import base_of, in_transform, is_compiled, is_view, storage_id

_SEED = 0  # the same for every run, so that dropout hides the same elements in a second one


def unreadable() -> bool:
    """Whether what runs now is not part of the forward, or has values that cannot be read.

    A checkpoint that is computed again inside a backward pass was seen before; inside a torch.func
    transform a tensor stands for many.
    """
    return recomputing() or in_transform()


class Ref:
    """Stands for the result of a node in the arguments of a later one.

    No dataclass, as `ParamUse` is none: those are opened when tensors are looked for.
    """

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __repr__(self) -> str:
        return f"Ref({self.index})"


class ParamUse:
    """A parameter among the arguments of an operation."""

    __slots__ = ("index", "transposed", "whole")

    def __init__(self, index: int, *, transposed: bool, whole: bool) -> None:
        self.index = index  # of the parameter, in model order
        self.transposed = transposed  # it came as its transpose
        self.whole = whole  # and not as a part

    def __repr__(self) -> str:
        return f"ParamUse({self.index})"


@dataclass(slots=True)
class Node:
    """A value: an input of the model, a constant, or what an operation returned."""

    index: int
    op: str  # the operation's name; "input", "constant" or "opaque" where there is none
    address: str = ""
    place: Place | None = None
    parents: tuple[int, ...] = ()
    params: tuple[ParamUse, ...] = ()
    derived: frozenset[int] = frozenset()  # parameters that it is computed from, and nothing else
    out: int = 0  # which result it is, of an operation with several
    shape: tuple[int, ...] = ()
    floating: bool = True
    mean_square: float = math.nan
    function: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()  # with Ref and ParamUse in the place of tensors
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def numel(self) -> int:
        """How many elements the value has."""
        return math.prod(self.shape)

    @property
    def module(self) -> nn.Module | None:
        """The module in whose forward it was made."""
        return None if self.place is None else self.place.module


@dataclass(frozen=True, slots=True)
class Flow:
    """All values of one forward, in order of execution, and the parameters of the model."""

    nodes: tuple[Node, ...]
    parameters: tuple[ParameterSite, ...]
    called: frozenset[int]  # ids of the modules that were called


class Recorder(OpConsumer):
    """Builds the graph while a model runs.

    Every tensor is held until the end: an address of memory that is used twice would join two
    values. That is about the memory of a training step.
    """

    def __init__(self, tree: Tree, given: Inputs) -> None:
        sites = [s for s in tree.parameters().sites if isinstance(s.tensor, nn.Parameter)]
        self.parameters = tuple(sites)
        self.nodes: list[Node] = []
        self.called: set[int] = set()
        self._held: list[Any] = []
        self._node_of: dict[int, int] = {}
        self._params = {id(site.tensor): index for index, site in enumerate(sites)}
        self._storages: dict[int, int] = {}
        for index, site in enumerate(sites):
            memory = _storage(site.tensor)
            if memory is not None:
                # Held as well: a model that casts itself on the way has others in their place.
                self._held.append(memory)
                self._storages[storage_id(memory)] = index
        self._entered: list[Any] = []
        for _, tensor in tensors((given.args, dict(given.kwargs))):
            self._leaf(tensor, "input")

    # -- told by the service of operations ----------------------------------------------------

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        """Notes an operation."""
        if not unreadable():
            self.note(op, function, args, kwargs, result)

    def entered(self, call: ModuleCall, args: tuple[Any, ...]) -> None:
        """Notes what a module was called with; the call is looked for again when it returns."""
        module = call.place.module
        self.called.add(id(module))
        self._entered.append((call.place, args))

    def left(self, call: ModuleCall, output: Any) -> None:
        """What a module returns that no operation made came out of it all the same."""
        args: tuple[Any, ...] = ()
        while self._entered:
            entered, args = self._entered.pop()
            if entered is call.place:
                break
        if unreadable():
            return
        unknown = [tensor for _, tensor in tensors(output) if self._find(tensor) is None]
        for tensor in unknown:
            indices = [self.index_of(argument) for _, argument in tensors(args)]
            parents = tuple(index for index in indices if isinstance(index, int))
            node = self._add(tensor, "opaque", parents=parents)
            node.address, node.place = call.place.address, call.place

    # -- building -----------------------------------------------------------------------------

    def note(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> list[Node]:  # fmt: skip
        """Adds the results of an operation as nodes."""
        node = self.trial(op, function, args, kwargs)
        data = [p for p in node.parents if not self._is_fixed(p)]
        derived = frozenset(use.index for use in node.params)
        for parent in node.parents:
            derived |= self.nodes[parent].derived
        made = []
        for out, (_, tensor) in enumerate(tensors(result)):
            if self._parameter(tensor) is not None:
                continue  # a view of a parameter is that parameter
            new = self._add(tensor, op.name, parents=node.parents)
            new.address, new.place, new.out = op.address, op.place, out
            new.params = node.params
            new.derived = frozenset() if data else derived
            new.function, new.args, new.kwargs = function, node.args, node.kwargs
            made.append(new)
        return made

    def trial(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Node:
        """An operation as a node that is not in the graph: what it uses, without its result."""
        parents: list[int] = []
        params: list[ParamUse] = []

        def stand_in(tensor: torch.Tensor) -> Any:
            value = self.index_of(tensor)
            if isinstance(value, ParamUse):
                params.append(value)
            else:
                parents.append(value)
            return value if isinstance(value, ParamUse) else Ref(value)

        node = Node(-1, op.name, op.address, op.place)
        node.args, node.kwargs = map_tensors(stand_in, (args, kwargs))
        node.parents, node.params = tuple(parents), tuple(params)
        return node

    def _is_fixed(self, index: int) -> bool:
        node = self.nodes[index]
        return node.op == "constant" or bool(node.derived)

    def index_of(self, tensor: torch.Tensor) -> int | ParamUse:
        """The node of a tensor, or the parameter that it is; a new constant where it is neither."""
        index = self._find(tensor)
        return self._leaf(tensor, "constant") if index is None else index

    def _find(self, tensor: torch.Tensor) -> int | ParamUse | None:
        index = self._node_of.get(id(tensor))
        return self._parameter(tensor) if index is None else index

    def _parameter(self, tensor: torch.Tensor) -> ParamUse | None:
        index = self._params.get(id(tensor))
        if index is not None:
            return ParamUse(index, transposed=False, whole=True)
        if id(tensor) in self._node_of:
            return None
        # A view of a parameter; or no view, but on its memory: `.data`, `.detach()`.
        base = base_of(tensor) if is_view(tensor) else None
        index = self._params.get(id(base)) if base is not None else None
        if index is None:
            memory = _storage(tensor)
            index = None if memory is None else self._storages.get(storage_id(memory))
        if index is None:
            return None
        whole = self.parameters[index].tensor
        turned = whole.dim() == 2 and tensor.dim() == 2 and tensor.stride() != whole.stride()
        turned = turned and tensor.shape == whole.T.shape
        return ParamUse(index, transposed=turned, whole=whole.numel() == tensor.numel())

    def _leaf(self, tensor: torch.Tensor, kind: str) -> int:
        return self._add(tensor, kind).index

    def _add(self, tensor: torch.Tensor, op: str, parents: tuple[int, ...] = ()) -> Node:
        node = Node(len(self.nodes), op, parents=parents)
        node.shape = tuple(tensor.shape) if not tensor.is_nested else ()
        node.floating = tensor.is_floating_point()
        # A scale without values is as good as any: what depends on it is measured when data pass.
        node.mean_square = 1.0 if is_fake(tensor) else mean_square(tensor)
        self.nodes.append(node)
        self._held.append(tensor)
        self._node_of[id(tensor)] = node.index
        return node

    def flow(self) -> Flow:
        """What was recorded."""
        return Flow(tuple(self.nodes), self.parameters, frozenset(self.called))


def mean_square(tensor: torch.Tensor) -> float:
    """The mean of the squares of a tensor's elements; NaN where it has none."""
    unreadable = tensor.is_meta or tensor.is_nested or tensor.layout is not torch.strided
    if unreadable or not tensor.is_floating_point() or tensor.numel() == 0:
        return math.nan
    with torch.no_grad():
        # Of each row in its own type, then of those in float64: float32 alone would lose digits.
        read = once(tensor.detach())
        squares = read.values.double().square()
        if read.counts is not None:  # windows that overlap show an element more than once
            squares = (squares * (read.counts / read.counts.sum())).sum(-1)
        return float(squares.mean())


def _storage(tensor: torch.Tensor) -> torch.UntypedStorage | None:
    """What holds the tensor's memory; a fake tensor has none, but has this."""
    try:
        storage = tensor.untyped_storage()
        return storage if storage_id(storage) else None
    except (RuntimeError, NotImplementedError, ValueError):  # it has none: sparse, a subclass, lazy
        return None


def run_with(
    model: nn.Module, given: Inputs, consumer: OpConsumer, owner: str,
    then: Callable[[Any], Any] = lambda output: output, *, parameters: bool = True,
) -> Any:  # fmt: skip
    """Runs a model once with its operations watched, and leaves everything as it was.

    The training flag of each module stays what it is: normalisation over the batch is part of what
    a network does at its start. `then` is called with the output before running statistics are put
    back, which a backward pass may still need. With `parameters=False` weights may be written.
    """
    tree = Tree(model)
    for site in tree.parameters().sites:
        if isinstance(site.tensor, UninitializedTensorMixin):
            raise InitError(
                f"{site.address!r} has no shape before the first forward: run the model once, "
                "then initialise it."
            )
    with (
        unchanged(model, given, parameters=parameters, seed=_SEED),
        layer_by_layer(),  # a fused encoder layer would hide what feeds what
        Scope(owner, tree) as hooks,
    ):
        watch_ops(tree, hooks, consumer)
        return then(given.call(_uncompiled(model)))


def _uncompiled(model: nn.Module) -> nn.Module:
    """What was compiled, itself: nothing is to be compiled for one forward."""
    while can_be_compiled() and is_compiled(model):
        wrapped = inside(model)
        if wrapped is None:
            break
        model = wrapped[1]
    return model


def record(model: nn.Module, given: Inputs) -> Flow:
    """The graph of one forward; everything is left as it was."""
    given = own_inputs(given)
    recorder = Recorder(Tree(model), given)
    run_with(model, given, recorder, "nethook.init.plan")
    return recorder.flow()
