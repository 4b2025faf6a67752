"""`edit`: a scope in which values and gradients at chosen sites are changed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import nn

from nethook.addresses.op_addresses import split_patterns
from nethook.addresses.patterns import find_modules, find_parameters
from nethook.addresses.tree import ParameterSite, Tree
from nethook.editing.answers import Answer, read_answers
from nethook.editing.callbacks.nodes import ChangeNodes, NodeEntry, NodesBegin
from nethook.editing.catalogue import clip_norm
from nethook.editing.changes import (
    Change,
    ChangeCall,
    ChangeInput,
    ChangeInputGradient,
    ChangeOutput,
    ChangeOutputGradient,
    ChangeParameterGradient,
    ClipTogether,
    JoinClipping,
)
from nethook.editing.entries import Entry, Quantity, firings, read
from nethook.editing.ops import ChangeOps, OpEdits
from nethook.editing.parameters import ChangedParameter
from nethook.editing.recipes import save_entries
from nethook.editing.tokens import follow_tokens
from nethook.errors import EditError, ScopeError, UnfiredError
from nethook.hooks.answering import Answers
from nethook.hooks.attachment import Attachment
from nethook.hooks.layouts.fsdp import NO_HOOKS, shards_of
from nethook.hooks.ops.consumer import Met
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.scope import Scope
from nethook.hooks.threads import (
    Threads,
    check_threads,
    others_ran,
)
from nethook.keywords import suggests

_KINDS: dict[str, type[Change]] = {
    "calls": ChangeCall,
    "inputs": ChangeInput,
    "input_grads": ChangeInputGradient,
    "answers": Answer,
    "outputs": ChangeOutput,
    "grads": ChangeOutputGradient,
    "nodes": ChangeNodes,
}
_OF_PARAMETERS: tuple[Quantity, ...] = ("param_grads", "params")


@suggests
def edit(
    model: nn.Module,
    outputs: Mapping[Any, Any] | None = None,
    inputs: Mapping[Any, Any] | None = None,
    grads: Mapping[Any, Any] | None = None,
    input_grads: Mapping[Any, Any] | None = None,
    param_grads: Mapping[Any, Any] | None = None,
    params: Mapping[Any, Any] | None = None,
    *,
    answers: Mapping[Any, Any] | None = None,
    strict: bool = True,
    threads: Threads = "own",
) -> EditScope:
    """Changes values and gradients at chosen places while a block runs.

        with nethook.edit(model, outputs={"fc1": edits.scale(0.5)}, grads={"conv1": torch.relu}):
            ...

    Arguments:
        model: any `nn.Module`.
        outputs, inputs: what modules and operations return and are given.
        grads: the gradients of what modules return, on their way back.
        input_grads: the gradients that modules pass back to what they were given.
        param_grads: the gradients of parameters, before they are added to `.grad`.
        params: parameters and buffers, for the length of the scope. Weights are given to an edit as
            (outputs, inputs, …), however their layer keeps them. They come back bit for bit; what
            an optimizer does to them inside the scope is lost.
        answers: what takes the place of the calls of modules and operations, which do not run: a
            tensor or `edits.answer(value)`, or a function `fn(args, kwargs)` or `fn(args, kwargs,
            compute)`, where `compute(*args, **kwargs)` runs what would have run.
        strict: whether an edit that was never applied is an error at the end of the scope, or a
            warning.
        threads: "own" changes the calls of the thread (with `with`, of the asyncio task) that
            opens the scope; "all" those of every thread. Gradients of parameters are changed in
            every backward pass.

    Each is a mapping from a pattern (as in `select`; `module/op#k` for operations, as in `trace`)
    to an edit, to a list of edits that apply in order, or to a mapping from a path inside the value
    to either: `{"lstm": {"[0]": fn}}`. An edit is one of `nethook.edits`, or any callable
    `fn(value)` that returns the new value, or None for no change; the address of the site is passed
    to a parameter named `site` or to a second required one.

    Returns:
        A scope: use it with `with`, or call `.attach()` and later `.remove()`. What is attached
        later sees what was attached earlier.

    Raises:
        EditError: for an edit that cannot be applied; `InPlaceEditError` for one that wrote to its
            argument; `UnfiredError` on leaving the scope normally, for one that never applied.
    """
    given: dict[Quantity, Mapping[Any, Any] | None] = {
        "outputs": outputs,
        "inputs": inputs,
        "grads": grads,
        "input_grads": input_grads,
        "param_grads": param_grads,
        "params": params,
    }
    entries: list[Entry] = []
    for quantity, edits in given.items():
        if edits is not None:  # nearly all of them are
            entries += read(quantity, edits)
    entries += read_answers(answers)
    if not entries:
        raise EditError(
            "There is nothing to edit: give outputs=, inputs=, grads= or another quantity."
        )
    check_threads(threads)
    return EditScope(model, entries, strict=strict, threads=threads)


class EditScope:
    """The scope of one `edit`."""

    def __init__(
        self, model: nn.Module, entries: list[Entry], *, strict: bool, threads: Threads = "own"
    ) -> None:
        self._threads = threads
        self._model = model
        self._entries = entries
        self._strict = strict
        self._scope: Scope | None = None
        self._attached = False
        self._asked: set[Quantity] = {entry.quantity for entry in entries}
        self._means_ops = True in [_may_mean_ops(entry.pattern) for entry in entries]
        self._ops: OpEdits | None = None
        self._met: Met | None = None

    @property
    def firings(self) -> dict[str, int]:
        """How often each edit was applied, by what was written for it."""
        return firings(self._entries)

    def attach(self) -> Self:
        """Starts changing; `remove` ends it. `with` does both and checks that each edit applied."""
        self._begin(stays=True)
        return self

    def _begin(self, *, stays: bool) -> None:
        """Puts the hooks on."""
        if self._attached:
            raise ScopeError("this edit is attached already: call .remove() first.")
        tree = Tree(self._model)
        self._scope = Scope("nethook.edit", tree, threads=self._threads, stays=stays)
        self._scope.open(lambda hooks: self._attach(tree, hooks))
        self._attached = True

    def _attach(self, tree: Tree, hooks: Attachment) -> None:
        for quantity, kind in _KINDS.items():
            if quantity in self._asked:
                self._attach_modules(tree, hooks, quantity, kind)
        if not self._asked.isdisjoint(_OF_PARAMETERS):
            self._attach_parameters(tree, hooks)
        if self._means_ops:
            self._attach_ops(tree, hooks)
        by_tokens = [e for e in self._entries if e.part and e.part.by_tokens]
        if by_tokens:
            self._follow_tokens(tree, by_tokens, hooks)

    def _follow_tokens(self, tree: Tree, entries: list[Entry], hooks: Attachment) -> None:
        addresses = [address for entry in entries for address in entry.sites]
        for entry in entries:
            for pattern in split_patterns([entry.pattern])[1]:
                addresses += [site.address for site in pattern.sites(tree)]
        calls = follow_tokens(tree, addresses, hooks)
        for entry in entries:
            assert entry.part is not None
            entry.part.calls = calls

    def _attach_modules(
        self, tree: Tree, hooks: Attachment, quantity: str, kind: type[Change]
    ) -> None:
        by_site: dict[str, tuple[nn.Module, list[Entry]]] = {}
        for entry in self._entries:
            if entry.quantity == quantity:
                patterns = [entry.pattern]
                if self._means_ops:
                    patterns, _ = split_patterns(patterns)
                for site, _ in find_modules(tree, patterns).values():
                    by_site.setdefault(site.address, (site.module, []))[1].append(entry)
                    entry.sites.append(site.address)
        if quantity == "answers" and by_site:
            answers = Answers(hooks.owner)
            hooks.add(answers)
            for address, (module, entries) in by_site.items():
                answers.put_on(module, Answer(hooks.owner, address, entries))
            return
        for address, (module, entries) in by_site.items():
            change = kind(hooks.owner, address, entries)
            if isinstance(change, ChangeNodes):
                hooks.forward_pre(module, NodesBegin(change))
            if quantity in ("calls", "inputs", "input_grads"):
                hooks.forward_pre(module, change)
            else:
                hooks.forward(module, change, with_kwargs=quantity in ("grads", "nodes"))

    def _attach_ops(self, tree: Tree, hooks: Attachment) -> None:
        at_ops = [
            (entry, pattern)
            for entry in self._entries
            if entry.quantity in _KINDS
            for pattern in split_patterns([entry.pattern])[1]
        ]
        if at_ops:
            self._ops = OpEdits(tree, at_ops)
            self._met = watch_ops(tree, hooks, ChangeOps(hooks.owner, self._ops)).met

    def _attach_parameters(self, tree: Tree, hooks: Attachment) -> None:
        index = tree.parameters()
        shards = shards_of(tree.root)
        for quantity in _OF_PARAMETERS:
            by_site: dict[int, tuple[ParameterSite, list[Entry]]] = {}
            for entry in self._entries:
                if entry.quantity == quantity:
                    for site, _ in find_parameters(tree, index, [entry.pattern]).values():
                        by_site.setdefault(site.order, (site, []))[1].append(entry)
                        entry.sites.append(site.address)
            for site, entries in by_site.values():
                if quantity == "params":
                    hooks.add(ChangedParameter(site, entries))
                elif id(site.tensor) in shards:
                    raise EditError(
                        f"the gradient of {site.address!r} cannot be edited: {NO_HOOKS}. "
                        "Change that, or the gradients of outputs with grads=."
                    )
                elif site.tensor.requires_grad:
                    alone = [entry for entry in entries if not _is_joint(entry)]
                    change = ChangeParameterGradient(hooks.owner, site.address, alone)
                    hooks.tensor(site.tensor, change)
        for entry in filter(_is_joint, self._entries):
            self._clip_together(tree, entry, hooks)

    def _clip_together(self, tree: Tree, entry: Entry, hooks: Attachment) -> None:
        if entry.quantity != "param_grads":
            raise EditError(
                f"clip_norm(joint=True) at {entry.what} needs all gradients at once, which only "
                "param_grads= has, when a backward pass has ended."
            )
        matches = find_parameters(tree, tree.parameters(), [entry.pattern]).values()
        sites = [site for site, _ in matches if site.tensor.requires_grad]
        together = ClipTogether(entry, [site.tensor for site in sites])
        for site in sites:
            hooks.tensor(site.tensor, JoinClipping(hooks.owner, site.address, together))

    def save(self, path: str | Path) -> None:
        """Writes the edits to a recipe, from which `nethook.edits.load` reads them."""
        save_entries(path, self._entries)

    def remove(self) -> None:
        """Ends the changes. A second call does nothing."""
        if self._scope is not None:
            self._scope.close()
        self._attached = False

    def __enter__(self) -> Self:
        self._begin(stays=False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.remove()
        if error is not None:
            return
        unfired = [entry for entry in self._entries if not entry.fired]
        if unfired:
            if self._strict:
                raise UnfiredError("\n".join(self._why_unfired(entry) for entry in unfired))
            self.warn_of_unfired([0] * len(self._entries))

    def warn_of_unfired(self, before: list[int]) -> None:
        """Warns of edits that have not been applied since they had been applied so often."""
        unfired = [e for e, count in zip(self._entries, before, strict=True) if e.fired == count]
        if unfired:
            warnings.warn("\n".join(self._why_unfired(entry) for entry in unfired), stacklevel=3)

    def _why_unfired(self, entry: Entry) -> str:
        sites = ", ".join(repr(site) for site in entry.sites[:4])
        ops = split_patterns([entry.pattern])[1] if entry.quantity in _KINDS else []
        if entry.seen:
            times = "time" if entry.seen == 1 else "times"
            limits: list[tuple[str, object]] = [("calls", entry.limit)]
            if entry.part is not None:
                names = ("rows", "positions", "phase")
                limits += [(name, getattr(entry.part, name)) for name in names]
            limit = ", ".join(f"{name}={value!r}" for name, value in limits if value is not None)
            why = f"{sites} ran {entry.seen} {times}, and {limit} means none of these calls"
        elif ops and self._ops is not None and not self._ops.met(entry):
            why = self._ops.why_unfired(entry, ops[0], self._met).removesuffix(".")
        elif isinstance(entry, NodeEntry) and entry.kind is not None and entry.made_names:
            made = ", ".join(sorted(entry.made_names))
            why = f"{sites} made no node {entry.kind!r}; it made {made}"
        elif entry.is_without_grad:
            why = (
                f"the values at {sites} did not require a gradient: they were computed under "
                "no_grad or inference_mode, or nothing before them requires one"
            )
        elif entry.quantity.endswith("grads") or entry.quantity == "nodes":
            why = f"no gradient reached {sites} inside the scope: call backward() inside it"
        else:
            why = f"{sites} did not run inside the scope"
        others = "" if self._scope is None else others_ran(self._scope.owner, "edit")
        return f"the edit at {entry.what} was never applied: {why}.{others}"

    def __repr__(self) -> str:
        state = "attached" if self._attached else "not attached"
        edits = ", ".join(f"{what}: {count}" for what, count in self.firings.items())
        return f"<edit ({state}), applied: {edits}>"


def _may_mean_ops(pattern: Any) -> bool:
    return "/" in pattern if isinstance(pattern, str) else isinstance(pattern, tuple | frozenset)


def _is_joint(entry: Entry) -> bool:
    return isinstance(entry.edit, clip_norm) and entry.edit.joint
