"""Putting a watch on: the run file, the plan of its series, and every hook."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.addresses.lazy_parameters import first_unmade
from nethook.addresses.patterns import Pattern
from nethook.addresses.select import select_sites
from nethook.addresses.tree import ParameterSite, Site, Tree
from nethook.addresses.wrappers import can_be_compiled
from nethook.errors import InputsError, OptionError
from nethook.hooks.attachment import Attachment, Resting, put_last
from nethook.hooks.autograd.leftovers import sweep_at_the_end
from nethook.hooks.compile.eager import WhenCompiling, around_compiled_call, check_hooks_in_graphs
from nethook.hooks.compile.graph import shown
from nethook.hooks.hook import Owner
from nethook.hooks.layouts.unhookable import RouterPair, routed_modules
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.process.export import export_without_hooks
from nethook.hooks.process.optimizers import on_every_step
from nethook.hooks.process.origins import was_filled, was_loaded
from nethook.hooks.scope import Scope
from nethook.hooks.threads import Threads
from nethook.kinds.keras_layers import is_keras_class
from nethook.runs.writing.listening import Listener
from nethook.runs.writing.provenance import command
from nethook.runs.writing.writer import RunWriter
from nethook.stats.memory import sizes
from nethook.stats.shards import is_shared
from nethook.torch_private import compiled_call_of, is_compiled, parameters_of
from nethook.watching.clock.clock import Clock
from nethook.watching.examinations.recorder import Examinations
from nethook.watching.facts.facts import Facts, SiteFacts
from nethook.watching.facts.op_order import OpOrder
from nethook.watching.facts.start import is_untouched
from nethook.watching.hooks.doors import Doors
from nethook.watching.hooks.root_hooks import RootBegins, RootEnds
from nethook.watching.hooks.step_hooks import StepBegins, StepEnds
from nethook.watching.hooks.wrappers import wrap_loop
from nethook.watching.journal import Journal, Options
from nethook.watching.loop.loose_tensors import LooseTensors, is_trained
from nethook.watching.loop.optimizers import Optimizers
from nethook.watching.loop.rebinding import Resolver
from nethook.watching.measuring.loader_passes import LoaderPasses
from nethook.watching.measuring.parameter_facts import ParameterFacts
from nethook.watching.measuring.snapshots import Snapshots, SnapshotTap, checked
from nethook.watching.measuring.taps import OutputTap, RoutedTap, described
from nethook.watching.measuring.window import QUEUE
from nethook.watching.recorder import Recorder
from nethook.watching.schedule import Schedule
from nethook.watching.session import Session
from nethook.watching.threads import (
    CallsOfThreads,
    OptimizersOfThreads,
    SessionOfThreads,
    SharedOutputTap,
    SharedRootBegins,
    SharedRootEnds,
    SharedStepBegins,
    SharedStepEnds,
    TurnsOfThreads,
)

OWNER = "nethook.watch"


def given_models(model: Any) -> dict[str, nn.Module]:
    """The models by name; "" for an only one."""
    if isinstance(model, nn.Module):
        return {"": model}
    if isinstance(model, Mapping):
        models = dict(model)
    elif isinstance(model, Sequence) and not isinstance(model, str):
        models = {str(number): module for number, module in enumerate(model)}
    else:
        raise InputsError(
            f"`model` must be an nn.Module, or a list or dict of them; got {type(model).__name__}. "
            "Pass the network itself, not what it returns."
        )
    for name, module in models.items():
        if not isinstance(module, nn.Module):
            raise InputsError(
                f"`model` must contain only nn.Modules; got {type(module).__name__} as {name!r}. "
                "Leave it out."
            )
        if not isinstance(name, str) or not name or "." in name or name.startswith("@"):
            raise OptionError(
                f"`model` must have names without dots, and not beginning with '@'; got {name!r}. "
                "Name it, for instance, 'generator'."
            )
    if not models:
        raise OptionError(
            "`model` must contain at least one nn.Module; got none. Pass the network."
        )
    return models


def _check_made(models: Mapping[str, nn.Module]) -> None:
    for name, model in models.items():
        unmade = first_unmade(model)
        if unmade is not None:
            address = f"{name}.{unmade}" if name else unmade
            raise InputsError(
                f"{address!r} has no shape before the first forward: run the model once, "
                "model(inputs), then watch it."
            )


def given_optimizers(optimizer: Any) -> list[torch.optim.Optimizer]:
    """The optimizers as a list."""
    if optimizer is None:
        return []
    optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)
    for candidate in optimizers:
        if not isinstance(candidate, torch.optim.Optimizer):
            raise InputsError(
                f"`optimizer` must be a torch.optim.Optimizer, a list of them, or None; got "
                f"{type(candidate).__name__}. With None nethook finds the optimizers by itself."
            )
    return optimizers


def attach(
    models: Mapping[str, nn.Module],
    optimizers: Sequence[torch.optim.Optimizer],
    path: str | Path,
    *,
    resume: bool,
    step: int | None,
    include: Pattern | None,
    exclude: Pattern | None,
    wanted: tuple[str, ...],
    budget: float | None,
    phases: tuple[str, ...],
    snapshots: Mapping[str, int],
    batches: int,
    threads: Threads,
    keep_args: bool = False,
    examine: bool = False,
    listener: Listener | None = None,
) -> tuple[Session, Attachment]:
    """Opens the run and puts every hook on; if anything fails, nothing is left behind."""
    _check_made(models)
    trees = {name: Tree(model) for name, model in models.items()}
    chosen = {name: _leaves(tree, include, exclude) for name, tree in trees.items()}
    parameters = {name: _parameters(tree) for name, tree in trees.items()}
    series = sum(2 * len(sites) for sites in chosen.values())
    series += sum(7 * len(sites) for sites in parameters.values())
    rank, world = _rank()
    writer = RunWriter(
        path, resume=resume, step=step, model=_model(trees, parameters),
        rank=rank, world_size=world, capacity=QUEUE, listener=None if rank else listener,
        info={
            **({"command": command(keep_args=True)} if keep_args else {}),
            "watch": {
                "quantities": list(wanted), "budget": budget, "phases": list(phases),
                "batches": batches, "snapshots": dict(snapshots),
            },
            "loaded": any(was_loaded(model) for model in models.values()),
            "models": {
                name: {
                    "type": type(tree.root).__name__,
                    "parameters": sum(site.tensor.numel() for site in parameters[name]),
                }
                for name, tree in trees.items()
            },
        },
    )  # fmt: skip

    def put_on(hooks: Attachment) -> tuple[Session, Attachment]:
        own = threads == "own"
        first = writer.next_step
        clock = (
            Clock(first) if own else Clock(first, calls=CallsOfThreads(), turns=TurnsOfThreads())
        )
        clock.calls.nobody = all(isinstance(model, LooseTensors) for model in models.values())
        journal = Journal(
            writer, clock, Schedule(budget, wanted, first), Options(wanted, phases, world),
            capacity=series + 128 + 64 * len(models),
        )  # fmt: skip
        session = (Session if own else SessionOfThreads)(journal, models, batches)
        if session.locked:  # whose answers are compared is not known
            session.recorders.scores.turn_off()
        _Builder(session, hooks, trees, chosen, parameters, optimizers).build()
        _put_snapshots(session, hooks, trees, checked(snapshots))
        passes = LoaderPasses(journal, hooks.owner)
        session.recorders.add(passes)
        hooks.add(passes.loaders)
        if examine:
            _put_examinations(session, hooks)
        return session, hooks

    try:
        # Compiled models stay compiled: hooks become a part of their graphs.
        return Scope(OWNER, None, threads=threads, stays=True).open(put_on)
    except BaseException:
        writer.close()
        raise


def _leaves(tree: Tree, include: Pattern | None, exclude: Pattern | None) -> list[Site]:
    if include is None and exclude is None:
        return tree.leaves()
    if include is None:
        kept = {id(site.module) for _, site in select_sites(tree, "**", exclude=exclude)}
        return [site for site in tree.leaves() if id(site.module) in kept]
    return [site for _, site in select_sites(tree, include, exclude=exclude)]


def _parameters(tree: Tree) -> list[ParameterSite]:
    return [site for site in tree.parameters().sites if is_trained(tree.root, site.tensor)]


def _model(
    trees: Mapping[str, Tree], parameters: Mapping[str, list[ParameterSite]]
) -> dict[str, tuple[str, list[int] | None]]:
    """What the run is of: every module with its type, every parameter with its shape."""
    layout: dict[str, tuple[str, list[int] | None]] = {}
    seen_ids: set[int] = set()
    for name, tree in trees.items():
        prefix = f"{name}." if name else ""
        for site in tree.sites:
            layout[f"{prefix}{site.address}".rstrip(".")] = type(site.module).__name__, None
        for parameter in parameters[name]:
            if id(parameter.tensor) not in seen_ids:
                seen_ids.add(id(parameter.tensor))
                layout[f"{prefix}{parameter.address}"] = "Parameter", sizes(parameter.tensor)
    return layout


def _rank() -> tuple[int, int]:
    """Rank and size of the process group, if there is one; nothing is asked of it."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _put_snapshots(
    session: Session, hooks: Attachment, trees: Mapping[str, Tree], wanted: Mapping[str, int]
) -> None:
    journal = session.journal
    store = Snapshots(journal)
    session.recorders.add(store)
    routers = RouterPair(hooks)
    for pattern, samples in wanted.items():
        name, _, rest = pattern.partition(".") if "" not in trees else ("", "", pattern)
        if name not in trees:
            raise OptionError(
                f"`snapshots` must begin with the name of a model; got {pattern!r}. "
                f"The models are {', '.join(trees)}."
            )
        tree = trees[name]
        routed = routed_modules(tree)
        prefix = f"{name}." if name else ""
        for _, site in select_sites(tree, rest):
            address = f"{prefix}{site.address}".rstrip(".")
            tap = SnapshotTap(hooks.owner, address, journal, store, samples)
            target = routers if id(site.module) in routed else hooks
            target.forward(site.module, tap)


def _put_examinations(session: Session, hooks: Attachment) -> None:
    """Steps are examined, where one thread is followed."""
    if session.locked:
        why = ["several threads are followed"]
        session.journal.writer.info(examination={"seconds": 0.0, "not_examined": why})
        return
    recorders = session.recorders
    examinations = Examinations(
        session.journal,
        recorders,
        lambda: (len(recorders.losses.lines), len(session.optimizers.tracks)),
        lambda: session.optimizers.by_name().values(),
        hooks.owner,
    )
    recorders.add(examinations)
    hooks.add(examinations)
    session.journal.on_give_up.append(examinations.turn_off)


class _Builder:
    """Puts the parts of one watch on."""

    def __init__(
        self,
        session: Session,
        hooks: Attachment,
        trees: Mapping[str, Tree],
        chosen: Mapping[str, list[Site]],
        parameters: Mapping[str, list[ParameterSite]],
        optimizers: Sequence[torch.optim.Optimizer],
    ) -> None:
        self._session = session
        self._hooks = hooks
        self._trees = trees
        self._chosen = chosen
        self._parameters = parameters
        self._optimizers = optimizers
        self._routers = RouterPair(hooks)
        self._sites: list[SiteFacts] = []
        self._op_lists: dict[str, Any] = {}

    def build(self) -> None:
        """Everything."""
        session, hooks = self._session, self._hooks
        journal, schedule, recorders = session.journal, session.schedule, session.recorders
        journal.on_give_up.insert(0, hooks.remove)
        # A graph that was compiled with hooks in it is compiled anew without them.
        if schedule.budget.share is not None and not any(map(_compiled, self._trees.values())):
            schedule.resting = Resting(hooks.owner)
        check_hooks_in_graphs(hooks)
        export_without_hooks(hooks)
        hooks.add(_Shown(schedule))
        hidden = schedule.hidden
        hooks.add(WhenCompiling(lambda: hidden.compiles(True), lambda: hidden.compiles(False)))
        for name, tree in self._trees.items():
            self._model(name, tree)
        self._put_doors()
        sweep_at_the_end(hooks.owner)
        facts: list[tuple[ParameterFacts, ParameterSite, dict[str, Any]]] = []
        seen_ids: set[int] = set()
        for name, sites in self._parameters.items():
            for site in sites:
                if id(site.tensor) not in seen_ids:
                    seen_ids.add(id(site.tensor))
                    facts.append(self._parameter(name, site))
        listed = [entry for entry, _, _ in facts]
        resolver = Resolver(journal, session.models, listed)
        optimizers = (OptimizersOfThreads if session.locked else Optimizers)(
            journal, recorders.numbers, recorders.flight, listed,
            self._optimizers, resolver,
        )  # fmt: skip
        known = Facts(
            journal, optimizers, recorders.device_flags, recorders.numbers.pending, self._sites,
            facts,
        )  # fmt: skip
        session.follow(optimizers, known, hooks.owner)
        begins, ends = (
            (SharedStepBegins, SharedStepEnds) if session.locked else (StepBegins, StepEnds)
        )
        on_every_step(hooks, begins(hooks.owner, session), ends(hooks.owner, session))
        wrap_loop(hooks, session)

    def _model(self, name: str, tree: Tree) -> None:
        session, hooks = self._session, self._hooks
        prefix = f"{name}." if name else ""
        routed = routed_modules(tree)
        root = _entry(tree)
        hooks.owner.roots += (weakref.ref(root),)
        every = session.locked
        begins = (SharedRootBegins if every else RootBegins)(hooks.owner, name, session, name, root)
        ends = (SharedRootEnds if every else RootEnds)(hooks.owner, name, session, name, root)
        outside = around_compiled_call(root, hooks, begins, ends)
        if not outside:
            (self._routers if id(root) in routed else hooks).forward_pre(root, begins)
        leaves = {id(site.module) for site in tree.leaves()}
        taps: dict[int, OutputTap] = {}
        wanted = session.journal.options.wanted
        if "outputs" in wanted or "grads" in wanted:
            for site in self._chosen[name]:
                address = f"{prefix}{site.address}".rstrip(".")
                layers = session.recorders.layers
                tap = (SharedOutputTap if every else OutputTap)(hooks.owner, address, layers, site)
                taps[id(site.module)] = tap
                if id(site.module) in routed:
                    self._routers.forward(site.module, RoutedTap(tap))
                else:
                    hooks.forward(site.module, tap, resting=session.schedule.resting)
        session.recorders.add(_AfterRedistribution(list(taps.values())))
        if id(root) in taps:
            session.recorders.batches.leaves.add(name)
        if not outside:
            if id(root) in routed:
                self._routers.forward(root, ends)
            else:
                hooks.forward(root, ends, always_call=True)
        for site in tree.sites:
            address = f"{prefix}{site.address}".rstrip(".")
            own = [f"{prefix}{key}" for key in _own(site, self._parameters[name])]
            leaf = id(site.module) in leaves
            self._sites.append(SiteFacts(address, site, leaf, own, taps.get(id(site.module))))
        if not _compiled(tree):
            ops = Attachment(Owner(OWNER))
            order = OpOrder(session.journal, prefix, ops, self._op_lists)
            session.recorders.add(order)
            watch_ops(tree, ops, order)
            # Its hooks are on every module: code that is compiled with them would be compiled
            # again when they go.
            ops.add(WhenCompiling(order.compiled))
            hooks.add(ops)

    def _put_doors(self) -> None:
        """Where a part of a model is called, and never the model: that part serves as the model."""
        session, hooks = self._session, self._hooks
        parts: dict[str, list[nn.Module]] = {}
        for name, tree in self._trees.items():
            routed = routed_modules(tree)
            if not _compiled(tree):
                parts[name] = [
                    site.module
                    for site in tree.sites
                    if site.module is not tree.root and id(site.module) not in routed
                ]
        if not any(parts.values()) or session.locked:
            return

        def found(name: str, module: nn.Module) -> None:
            address = next(
                site.address for site in self._trees[name].sites if site.module is module
            )
            session.journal.writer.info(called_part={name: address})
            hooks.forward_pre(module, RootBegins(hooks.owner, name, session, name, module))
            ends = RootEnds(hooks.owner, name, session, name, module)
            hooks.forward(module, ends, always_call=True)
            if module in [site.module for site in self._trees[name].leaves()]:
                session.recorders.batches.leaves.add(name)

        session.recorders.add(Doors(session.journal, hooks, parts, found))

    def _parameter(
        self, model: str, site: ParameterSite
    ) -> tuple[ParameterFacts, ParameterSite, dict[str, Any]]:
        prefix = f"{model}." if model else ""
        tensor = site.tensor
        fixed = {
            "order": site.order,
            "names": list(site.names),
            "owners": [f"{prefix}{owner.address}".rstrip(".") for owner in site.owners],
            **described(tensor),
            "elements": tensor.numel(),
            "filled": was_filled(tensor),
        }
        if not tensor.requires_grad:
            fixed["untouched"] = is_untouched(tensor)
        return ParameterFacts(f"{prefix}{site.address}", tensor), site, fixed


class _AfterRedistribution(Recorder):
    """A layer that was made parallel after it was tapped returns a sum over ranks to our hook.

    A hook of torch's, registered later, makes of it what the caller gets: ours goes behind it.
    """

    def __init__(self, taps: Sequence[OutputTap]) -> None:
        self._taps = taps

    def first_call(self) -> None:
        """Layers are what they will be."""
        for tap in self._taps:
            module = tap.module()
            if module is not None and any(map(is_shared, parameters_of(module).values())):
                put_last(module, tap)


def _entry(tree: Tree) -> nn.Module:
    """What is called from outside: of a compiled model its wrapper, which runs in no graph.

    There, whole calls are seen, and so are inputs, outputs and what becomes of them in a loss.
    """
    if can_be_compiled():
        for address, wrapper in tree.wrappers:
            if not address and is_compiled(wrapper):
                return wrapper
    return tree.root


def _own(site: Site, parameters: Sequence[ParameterSite]) -> list[str]:
    """The names of a module's own parameters; of a layer of Keras torch does not know them."""
    if is_keras_class(type(site.module)):
        return [each.address for each in parameters if site in each.owners]
    prefix = f"{site.address}." if site.address else ""
    known = {name for each in parameters for name in each.names}
    own = [f"{prefix}{key}" for key, held in parameters_of(site.module).items() if held is not None]
    return [name for name in own if name in known]  # what Keras keeps for a layer is the layer's


def _compiled(tree: Tree) -> bool:
    if not can_be_compiled():
        return False
    return any(is_compiled(module) for _, module in tree.wrappers) or any(
        compiled_call_of(module) is not None for module in tree.modules
    )


class _Shown:
    """A handle: compiled graphs show what is inside while it is on."""

    __slots__ = ("_schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    def remove(self) -> None:
        shown.leave(self._schedule)
