"""`trace`: a scope in which the values and gradients of chosen sites are recorded."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

import torch
from torch import nn

from nethook.addresses.op_addresses import OpPattern, split_patterns
from nethook.addresses.patterns import Pattern
from nethook.addresses.select import select_sites
from nethook.addresses.tree import ParameterSite, Site, Tree
from nethook.errors import ScopeError
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook
from nethook.hooks.layouts.fsdp import NO_HOOKS, shards_of
from nethook.hooks.layouts.unhookable import RouterPair, routed_modules, why_not_called
from nethook.hooks.ops.consumer import OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.scope import Scope
from nethook.hooks.threads import Threads
from nethook.keywords import suggests
from nethook.tracing.early_stop import StopPlan
from nethook.tracing.ops import CallOps, EveryOutput, OutputOps
from nethook.tracing.options import Calls, Copy, Options
from nethook.tracing.tape.op_records import OpRecords
from nethook.tracing.tape.record import ParameterRecord, Record
from nethook.tracing.tape.state import State, StateOfThreads
from nethook.tracing.tape.tape import Tape
from nethook.tracing.taps import (
    Add,
    CallTap,
    ForwardBegins,
    ForwardEnds,
    InputTap,
    OutputTap,
    ParameterTap,
    Unfinished,
)

_SPELT: Final = frozenset({str, re.Pattern})


@suggests
def trace(
    model: nn.Module,
    *patterns: Pattern,
    inputs: bool = False,
    grads: bool = False,
    input_grads: bool = False,
    param_grads: bool = False,
    nodes: bool = False,
    copy: Copy = "lazy",
    detach: bool = True,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
    transform: Callable[[torch.Tensor], Any] | None = None,
    calls: Calls = "all",
    stop: bool = False,
    threads: Threads = "own",
) -> TraceScope:
    """Records what passes through chosen sites while a block runs. The run is not changed.

        with nethook.trace(model, "conv*", "fc1", grads=True) as tape:
            criterion(model(x), y).backward()
        tape["conv1"].output
        tape["conv1"].grad

    Arguments:
        model: any `nn.Module`, in any mode.
        patterns: which modules, as in `select`, and which operations inside them, as
            `module/op#k`: `"conv1/relu#0"`, `"/add"` (all of the model itself), `"**/softmax"`.
            None given means every leaf module.
        inputs: also record the arguments of each call (`.input`, `.args`, `.kwargs`), as they
            were before the call.
        grads: also record the gradient of each output (`.grad`), in backward passes inside the
            scope or after it.
        input_grads: also record the gradients of the arguments (`.input_grads`). The gradient of
            a tensor counts all its uses, also those outside the module.
        param_grads: also record the gradients of the modules' parameters, in backward passes
            inside the scope: `tape.params["fc1.weight"].grad`. Without patterns, of all parameters.
        nodes: also keep the autograd node that made each output (`.node`), and let
            `autograd_graph` tell which call made a node. A node holds the graph behind it, with
            what that saved for backward, until the tape is cleared or gone.
        copy: "lazy" keeps lazy copies, which later in-place writes cannot reach and which cost
            memory only when such a write happens; where torch cannot make one, a reference is
            kept, and reading it after a write raises `OverwrittenError`. "now" copies at once,
            "reference" keeps references. (Older code says None, True and False.)
        detach: False keeps the tensors inside their graph (as references), so that
            `torch.autograd.grad` can be taken of them.
        device, dtype: where to move what is recorded, and to which floating-point type.
        transform: a function applied to each tensor before it is kept; what it returns is kept
            instead, whatever it is.
        calls: "all", "last", or how many of the latest calls of each module to keep.
        stop: ends the forward once every module asked for has been seen. The block is then left
            at that line, without an exception.
        threads: "own" records the calls of the thread (or asyncio task) that opens the scope;
            "all" those of every thread.

    Returns:
        A context manager. Entering it gives the `Tape`, a mapping from address to record.

    Raises:
        NoSuchSiteError: on entering, where a pattern matches nothing.

    Cost: a small multiple of a hand-written hook per module; `python benchmarks/trace.py` measures
    it. Memory: what the recorded tensors take, as long as the tape lives; they keep no graph
    alive (unless `detach=False` or `nodes=True`).
    """
    options = Options(
        inputs=inputs,
        grads=grads,
        input_grads=input_grads,
        param_grads=param_grads,
        nodes=nodes,
        copy=copy,
        detach=detach,
        device=device,
        dtype=dtype,
        transform=transform,
        calls=calls,
        stop=stop,
        threads=threads,
    )
    return TraceScope(model, patterns, options)


class TraceScope:
    """The scope of one `trace`. Enter it once."""

    def __init__(self, model: nn.Module, patterns: tuple[Pattern, ...], options: Options) -> None:
        self._model = model
        self._patterns = patterns
        self._state = State(options) if options.threads == "own" else StateOfThreads(options)
        self._plan: StopPlan | None = None
        self._unfinished = Unfinished()
        self._scope: Scope | None = None

    def __enter__(self) -> Tape:
        if self._scope is not None:
            raise ScopeError("this trace was entered before: call nethook.trace(...) again.")
        tree = Tree(self._model)
        self._state.model = weakref.ref(tree.root)
        sites, op_patterns = self._chosen(tree)
        ops = OpRecords(tree, op_patterns, self._state) if op_patterns else None
        if self._state.options.stop:
            self._plan = _stop_plan(tree, sites, ops)
        self._scope = Scope("nethook.trace", tree, threads=self._state.options.threads)
        self._state.owner = self._scope.owner
        return self._scope.open(lambda hooks: self._attach(tree, sites, ops, hooks))

    def _chosen(self, tree: Tree) -> tuple[list[Site], list[OpPattern]]:
        patterns = self._patterns
        if _SPELT.issuperset(map(type, patterns)):
            orders, ops = tree.once(("trace", patterns), lambda: _choose(tree, patterns))
        else:
            orders, ops = _choose(tree, patterns)  # a function may answer otherwise the next time
        return tree.sites_at(orders), ops

    def _attach(
        self, tree: Tree, sites: list[Site], ops: OpRecords | None, hooks: Attachment
    ) -> Tape:
        builder = _Builder(tree, hooks, self._state, self._plan, self._unfinished)
        builder.watch_begin()
        records = builder.watch(sites)
        builder.watch_end()  # after the root's own tap, which must know its forward
        if ops is not None:
            builder.watch_ops(ops)
        parameters: list[ParameterRecord] = []
        if self._state.options.param_grads:
            inside = {id(parameter) for site in sites for parameter in site.module.parameters()}
            parameters = [
                builder.watch_parameter(parameter)
                for parameter in tree.parameters().sites
                if isinstance(parameter.tensor, nn.Parameter)
                and (not self._patterns or id(parameter.tensor) in inside)
            ]
        return Tape(self._state, records, parameters, ops)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._scope is None:
            raise ScopeError("this trace was not entered.")
        self._scope.close()
        self._unfinished.give_up(every=True)
        if self._plan is None or error is not self._plan.error:
            return False
        self._state.stopped_at = self._plan.stopped_at
        # The plan holds the error, whose traceback would hold every tensor of the stopped forward.
        self._plan.error.__traceback__ = None
        return True


def _choose(tree: Tree, patterns: tuple[Pattern, ...]) -> tuple[list[int], list[OpPattern]]:
    """The modules that patterns mean, by their order, and the operations."""
    modules, ops = split_patterns(patterns)
    if modules or (patterns and not ops):
        sites = [site for _, site in select_sites(tree, *(modules or patterns))]
    else:
        sites = [] if ops else tree.leaves()
    return [site.order for site in sites], ops


def _stop_plan(tree: Tree, sites: list[Site], ops: OpRecords | None) -> StopPlan:
    asked = [site.address for site in sites]
    if ops is None:
        return StopPlan(tree.root, frozenset(asked))
    if ops.open_ended:
        asked += [pattern.text for pattern in ops.patterns]
    asked += ops.records
    return StopPlan(tree.root, frozenset(asked), open_ended=ops.open_ended)


class _Builder:
    """Puts the taps of one scope on a model."""

    def __init__(
        self, tree: Tree, hooks: Attachment, state: State, plan: StopPlan | None,
        unfinished: Unfinished,
    ) -> None:  # fmt: skip
        options = state.options
        self._unfinished = unfinished
        self._tree = tree
        self._hooks = hooks
        self._state = state
        self._plan = plan
        self._keep = options.keep()
        self._most = options.most_calls()
        self._wants_inputs = options.inputs or options.input_grads or options.nodes
        self._simple = not (self._wants_inputs or options.grads or options.stop)
        self._routed = routed_modules(tree)
        self._shards = shards_of(tree.root) if options.param_grads else {}
        self._routers = RouterPair(hooks)

    def watch(self, sites: list[Site]) -> list[Record]:
        """Puts the taps on modules."""
        state, owner, keep, most = self._state, self._hooks.owner, self._keep, self._most
        records: list[Record] = []
        before: list[tuple[nn.Module, Hook]] = []
        after: list[tuple[nn.Module, Hook]] = []
        for site in sites:
            module = site.module
            names = site.names + site.long
            record = Record(state, site.address, names, type(module).__name__)
            records.append(record)
            add = record.writer(most)
            if id(module) in self._routed:
                record.why = why_not_called(self._tree, site.address)
                first, last = self._taps(record, add)
                if first is not None:
                    self._routers.forward_pre(module, first)
                self._routers.forward(module, last)
            elif self._simple:
                after.append((module, OutputTap(owner, record, add, keep)))
            else:
                first, last = self._taps(record, add)
                if first is not None:
                    before.append((module, first))
                after.append((module, last))
        if before:
            self._hooks.forward_pre_each(before)
        if after:
            self._hooks.forward_each(after, with_kwargs=not self._simple)
        return records

    def _taps(self, record: Record, add: Add) -> tuple[InputTap | None, CallTap]:
        """The taps before and after a module, where more than its output is asked for."""
        owner, before = self._hooks.owner, None
        if self._wants_inputs:
            before = InputTap(owner, record, self._keep)
            self._unfinished.add(before, add)
        return before, CallTap(owner, record, add, self._keep, self._plan, before)

    def watch_ops(self, ops: OpRecords) -> None:
        """Sees the operations that are asked for."""
        taps: OpConsumer
        if self._simple and self._most is None:
            taps = (EveryOutput if ops.everything else OutputOps)(ops, self._keep)
        else:
            taps = CallOps(self._hooks.owner, ops, self._keep, self._most, self._plan)
        self._state.met = watch_ops(self._tree, self._hooks, taps).met

    def watch_parameter(self, site: ParameterSite) -> ParameterRecord:
        """Puts a tap on one parameter."""
        tensor = site.tensor
        names = site.names + site.long
        record = ParameterRecord(site.address, names, requires_grad=tensor.requires_grad)
        if id(tensor) in self._shards:
            record.why = NO_HOOKS
        elif tensor.requires_grad:
            self._hooks.tensor(tensor, ParameterTap(self._hooks.owner, record, self._keep))
        return record

    def watch_begin(self) -> None:
        """Counts the forwards of the model itself."""
        root = self._tree.root
        routed = id(root) in self._routed
        begins = ForwardBegins(
            self._hooks.owner, self._state, self._unfinished, may_nest=not routed
        )
        hooks = self._routers if routed else self._hooks
        hooks.forward_pre(root, begins)

    def watch_end(self) -> None:
        """Notices when a forward of the model itself ends."""
        root = self._tree.root
        ends = ForwardEnds(self._hooks.owner, self._state, self._plan)
        if id(root) in self._routed:
            self._routers.forward(root, ends)
        else:
            self._hooks.forward(root, ends, always_call=True)
