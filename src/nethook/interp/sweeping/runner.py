"""Runs a model with cells changed, several in one batch, and what comes before them answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.tree import Tree
from nethook.errors import SweepError
from nethook.hooks.answering import Answers, why_unanswerable
from nethook.hooks.attachment import Attachment
from nethook.hooks.compile.eager import without_warning_of_global_hooks
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.layouts.unhookable import routed_modules
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.scope import Scope
from nethook.interp.attention.multihead import parts_of
from nethook.interp.sweeping.answering import answerable, answered_before
from nethook.interp.sweeping.base import BaseRun
from nethook.interp.sweeping.batches import Repeated, close
from nethook.interp.sweeping.cells import Cell, put_all
from nethook.interp.sweeping.changes import At, Change
from nethook.interp.sweeping.joining import Joins, may_join
from nethook.interp.sweeping.sites import Site
from nethook.interp.sweeping.tokens import TokenByToken, worth_a_look


@dataclass(frozen=True)
class Place:
    """A cell of a site, and where its numbers go in the result."""

    site: Site
    cell: Cell
    at: tuple[int, int]


@dataclass
class _Plan:
    """What one run changes and answers."""

    copies: int = 0
    changed: dict[str, list[tuple[int, Cell]]] = field(default_factory=dict)  # by address
    answered: dict[str, Repeated] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    joins: Joins | None = None
    ends_with_base: bool = False  # its last copy has no change

    def joined(self, address: str) -> bool:
        """Whether copies join at a site."""
        return self.joins is not None and address in self.joins.at


class Runner:
    """Runs chunks of cells. Made once for a sweep; `attached` puts its hooks on."""

    def __init__(self, base: BaseRun, sites: Sequence[Site], change: Change) -> None:
        self._base = base
        self._sites = {site.address: site for site in sites}
        self._change = change
        self._plan = _Plan()
        self._repeated: dict[str, Repeated] = {}
        self._inputs: dict[int, Inputs] = {}
        self._new: dict[str, torch.Tensor] = {}
        self._answers: dict[str, list[str]] = {}
        self._tokens: TokenByToken | None = None
        self.runs = 0

    @property
    def spares_tokens(self) -> bool:
        """Whether runs with an unchanged copy at the end compute fewer tokens."""
        return self._tokens is not None

    @contextmanager
    def attached(self, *, single: bool, by_tokens: bool = False) -> Iterator[None]:
        """A block in which chunks can be run; with `single`, of one cell each.

        With `by_tokens` cells are tokens, and modules are given no more of them than they must be.
        """
        base = self._base
        answered: dict[str, nn.Module] = {}
        able = [] if base.whole else answerable(base.recording, base.layout.dims, single=single)
        for site in self._sites.values():
            before = [] if site.is_input else answered_before(site.moment, able)
            self._answers[site.address] = [called.address for called in before]
            for called in before:
                if called.address in answered:
                    continue
                assert called.module is not None
                answered[called.address] = called.module
                dims = base.layout.dims.get(called.address, ())
                self._repeated[called.address] = Repeated(called.outputs[0], dims)
        if by_tokens and not single and not base.whole and not base.layout.inputs:
            self._tokens = TokenByToken(base.rows)
            for address, module in worth_a_look(base.tree, list(self._sites.values())).items():
                if why_unanswerable(module) is None:
                    answered.setdefault(address, module)
        with Scope("nethook.interp", base.tree) as hooks:
            self._attach(base.tree, hooks, answered)
            yield

    def _attach(self, tree: Tree, hooks: Attachment, answered: dict[str, nn.Module]) -> None:
        if answered:
            answers = Answers(hooks.owner)
            hooks.add(answers)
            for address, module in answered.items():
                answers.put_on(module, _Answer(hooks.owner, address, self))
        routed = routed_modules(tree)  # a hook of their own would change what they compute
        everywhere: dict[int, Site] = {}
        for site in self._sites.values():
            if site.module is not None and id(site.module) in routed:
                everywhere[id(site.module)] = site
            elif site.module is not None:
                hooks.forward(site.module, _Changed(hooks.owner, site.address, self))
        if everywhere:
            without_warning_of_global_hooks(hooks)
            hooks.every_forward(_ChangedAnywhere(hooks.owner, self, everywhere))
        if any(site.is_op for site in self._sites.values()):
            watch_ops(tree, hooks, _ChangedOps(self, self._sites))

    def run(self, places: Sequence[Place | None]) -> torch.Tensor:
        """The metric with each of these cells changed, (cells, rows); None changes nothing."""
        plan = _Plan(copies=len(places), ends_with_base=places[-1] is None)
        for slot, place in enumerate(places):
            if place is not None:
                plan.changed.setdefault(place.site.address, []).append((slot, place.cell))
        return self._measured(plan)

    def run_joined(self, places: Sequence[Place]) -> torch.Tensor | None:
        """The same with one copy more, which is the base; None where it cannot be done so.

        Copies join the run at the site of their cell, and places are in the order of sites.
        """
        base = self._base
        plan = _Plan(ends_with_base=True)
        for slot, place in enumerate(places):
            plan.changed.setdefault(place.site.address, []).append((slot, place.cell))
        sites = [self._sites[address] for address in plan.changed]
        if base.whole or not may_join(sites, base.layout.dims):
            return None
        first, *later = plan.changed
        plan.copies = len(plan.changed[first]) + 1
        joining = {address: len(plan.changed[address]) for address in later}
        plan.joins = Joins(joining, base.layout.dims, base.rows)
        try:
            numbers = self._measured(plan)
        except SweepError:
            raise
        except Exception:  # of shapes that do not fit; another one comes again without joining
            return None
        return numbers if close(numbers[-1], base.metric, base.noise) else None

    def _measured(self, plan: _Plan) -> torch.Tensor:
        base = self._base
        changed = [self._sites[address] for address in plan.changed]
        if changed:
            first = min(changed, key=lambda site: site.moment)
            plan.answered = {a: self._repeated[a] for a in self._answers[first.address]}
        self._plan = plan
        inputs = self._given(plan)
        base.start.again()
        self.runs += 1
        output = inputs.call(base.model)
        return base.numbers(output, plan.copies)

    def _given(self, plan: _Plan) -> Inputs:
        base = self._base
        inputs = self._inputs.get(plan.copies)
        if inputs is None or base.start.writes_inputs:
            inputs = base.repeated(plan.copies)
            self._inputs[plan.copies] = inputs
        for address in plan.changed:
            site = self._sites[address]
            if site.is_input:
                args, kwargs = self.changed(site, (inputs.args, dict(inputs.kwargs)))
                return Inputs(args, kwargs)
        return inputs

    def answer(
        self, address: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
        run: Callable[..., Any],
    ) -> Any:  # fmt: skip
        """What a module returned in the base run, for all copies; or what it computes."""
        plan, tokens = self._plan, self._tokens
        known = plan.answered.get(address)
        if known is not None:
            return known.of(plan.copies)
        if tokens is not None and plan.ends_with_base and tokens.may(args, kwargs, plan.copies):
            return tokens.computed(module, args[0], plan.copies, run)
        return run(*args, **kwargs)

    def changes(self, site: Site) -> bool:
        """Whether this run has cells at a site."""
        return bool(self._plan.changed.get(site.address))

    def changed(self, site: Site, output: Any) -> Any:
        """An output with the cells of this run changed; None where there are none."""
        plan = self._plan
        cells = plan.changed.get(site.address)
        if not cells:
            return None
        call = plan.calls.get(site.address, 0)
        plan.calls[site.address] = call + 1
        joined = plan.joined(site.address)
        if joined:
            assert plan.joins is not None
            output = plan.joins.grown(site, output, plan.copies)
            plan.copies += len(cells)
        value = site.tensor(output)
        rows = value.shape[site.batch] // plan.copies
        known = self._known(site, call)
        new = value if joined else value.clone()
        if known is not None:
            put_all(cells, known, new, site.batch)
            return site.replaced(output, new)
        for slot, cell in cells:
            part = value.narrow(site.batch, slot * rows, rows)
            cell.put(
                self._change.new(part, self._at(site, call)),
                new.narrow(site.batch, slot * rows, rows),
            )
        return site.replaced(output, new)

    def _known(self, site: Site, call: int) -> torch.Tensor | None:
        """The new value, once for all cells, where the value is that of the base run."""
        plan = self._plan
        if not (site.is_input or site.address in plan.answered or plan.joined(site.address)):
            return None
        if site.address not in self._new:
            self._new[site.address] = self._change.new(site.values[0], self._at(site, call))
        return self._new[site.address]

    def _at(self, site: Site, call: int) -> At:
        return At(site.address, call, site.batch, site.position_dim)


class _Answer(Hook):
    """In the place of the forward of a module."""

    __slots__ = ("_runner",)

    def __init__(self, owner: Owner, address: str, runner: Runner) -> None:
        super().__init__(owner, address)
        self._runner = runner

    def __call__(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any],
        run: Callable[..., Any],
    ) -> Any:  # fmt: skip
        return self._runner.answer(self.address, module, args, kwargs, run)


class _Changed(Hook):
    """After the forward of a site."""

    __slots__ = ("_runner",)

    def __init__(self, owner: Owner, address: str, runner: Runner) -> None:
        super().__init__(owner, address)
        self._runner = runner

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        return self._runner.changed(self._runner._sites[self.address], output)


class _ChangedAnywhere(Hook):
    """After the forward of any module, for sites that must have no hook of their own."""

    __slots__ = ("_runner", "_sites")

    def __init__(self, owner: Owner, runner: Runner, sites: dict[int, Site]) -> None:
        super().__init__(owner, "*")
        self._runner = runner
        self._sites = sites

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        site = self._sites.get(id(module))
        return None if site is None else self._runner.changed(site, output)


class _ChangedOps(OpConsumer):
    """After an operation that is a site."""

    def __init__(self, runner: Runner, sites: dict[str, Site]) -> None:
        self._runner = runner
        self._sites = sites

    def wants(self, op: Op) -> bool:
        return op.address in self._sites

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> Any:  # fmt: skip
        site = self._sites[op.address]
        if not site.is_multihead:
            return self._runner.changed(site, result)
        if not self._runner.changes(site):
            return None
        parts = parts_of(args, kwargs)
        return parts.put(self._runner.changed(site, parts.heads), result)
