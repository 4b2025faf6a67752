"""Which of the networks in a process are being trained, and what they are called.

A network that is trained has parameters in an optimizer. That tells it from all else that is called
like one: losses and metrics (no parameters of their own), frozen teachers, averages of the weights,
networks that only make features. What is trained is followed from its highest owner: a
LightningModule, and not the part of it that happens to be called.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.utils.parametrize import ParametrizationList
from torch.optim import Optimizer

from nethook.addresses.wrappers import unwrap
from nethook.hooks.autograd.leaves import leaves_of
from nethook.hooks.process.optimizers import objects_by_age, of_kinds, with_subclasses
from nethook.stats.native import kernel
from nethook.torch_private import CHILDREN
from nethook.watching.loop.loose_tensors import LooseTensors


class Census(NamedTuple):
    """The modules and optimizers that are alive.

    Arguments:
        roots: modules that are in no other module.
        above: id of a module -> the modules that have it as a part.
        optimizers: all optimizers.
    """

    roots: tuple[nn.Module, ...]
    above: dict[int, list[nn.Module]]
    optimizers: tuple[Optimizer, ...]

    def owners(self, module: nn.Module) -> list[nn.Module]:
        """The highest owners of a module: itself, where it is in no other."""
        highest, waiting, seen = [], [module], {id(module)}
        while waiting:
            owner = waiting.pop()
            parents = self.above.get(id(owner), [])
            if not parents:
                highest.append(owner)
            for parent in parents:
                if id(parent) not in seen:
                    seen.add(id(parent))
                    waiting.append(parent)
        return highest

    def trained(self) -> set[int]:
        """The ids of all parameters that an optimizer holds."""
        return {
            id(parameter) for optimizer in self.optimizers for parameter in parameters_of(optimizer)
        }


def take_census() -> Census:
    """Every module and optimizer that is alive. Takes some ten milliseconds."""
    pick = of_kinds if kernel.functions is None else kernel.functions.of_kinds
    return census_of(objects_by_age(with_subclasses(nn.Module) | with_subclasses(Optimizer), pick))


def census_of(objects: Iterable[object]) -> Census:
    """The modules and optimizers among some objects."""
    alive: list[Any] = list(objects)
    kinds, steppers = with_subclasses(nn.Module), with_subclasses(Optimizer)
    modules: list[nn.Module] = [candidate for candidate in alive if type(candidate) in kinds]
    above: dict[int, list[nn.Module]] = {}
    for module in modules:
        # Read without `__getattr__`: a module that is half built has none of its attributes.
        for child in (vars(module).get(CHILDREN) or {}).values():
            if child is not None and child is not module:
                above.setdefault(id(child), []).append(module)
    roots = tuple(module for module in modules if id(module) not in above)
    return Census(
        roots, above, tuple(candidate for candidate in alive if type(candidate) in steppers)
    )


def parameters_of(optimizer: Optimizer) -> Iterator[Any]:
    """The parameters that an optimizer holds; none where it is half built."""
    groups: Any = getattr(optimizer, "param_groups", None)
    for group in groups if isinstance(groups, list) else ():
        yield from group.get("params", ())


def trainees(census: Census, called: nn.Module | None, covered: set[int]) -> list[nn.Module]:
    """The networks that are trained and not followed yet, from their highest owners.

    Arguments:
        census: what is alive.
        called: the module that is being called, if one is.
        covered: the ids of parameters that are followed already.

    Returns:
        Where an optimizer holds anything that is not covered: the owners of it, the fewest that
        have it all. Where there is no optimizer at all, the owner of what is called, if it could be
        trained: its optimizer may be made later, or its weights be changed by hand. The same where
        what the optimizer holds is in no module any more and has the shapes of what is called: the
        model was made anew after its optimizer.
    """
    trained = census.trained()
    if not trained:
        if called is None or not torch.is_grad_enabled():
            return []
        owners = [owner for owner in census.owners(called) if _could_train(owner)]
        return [owner for owner in owners[:1] if not covered & _parameters(owner)]
    missing = trained - covered
    mine = {id(owner) for owner in census.owners(called)} if called is not None else set()
    candidates = [(root, _parameters(root) & missing) for root in census.roots]
    # Of two that own the same, the one that is called, and then the smaller one, is meant.
    candidates.sort(key=lambda pair: (-len(pair[1]), id(pair[0]) not in mine, _size(pair[0])))
    chosen: list[nn.Module] = []
    for root, parameters in candidates:
        if parameters & missing and not _cannot_be_followed(root):
            chosen.append(root)
            missing -= parameters
    if not chosen and called is not None:
        chosen = _made_again(census, called, missing, covered)
    # What is called comes first, then the others in the order in which they were made.
    made = {id(root): position for position, root in enumerate(census.roots)}
    return sorted(chosen, key=lambda root: (id(root) not in mine, made[id(root)]))


def leaves_behind(roots: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    """The tensors that a backward pass brings gradients to, by id; not its own roots."""
    ends = {id(root) for root in roots}
    return {id(leaf): leaf for leaf in leaves_of(roots).tensors if id(leaf) not in ends}


def unheld(census: Census, leaves: Mapping[int, torch.Tensor]) -> dict[str, nn.Module]:
    """The networks that have leaves of a graph, where no optimizer has any of these.

    Their weights may be moved by hand, or their optimizer may hold what they had before. Returns
    them by name; tensors of no module are one network, `LooseTensors`.
    """
    if leaves.keys() & census.trained():
        return {}
    owners = [
        root
        for root in census.roots
        if not _cannot_be_followed(root) and _parameters(root) & leaves.keys()
    ]
    if owners:
        return {name_of(root): root for root in owners}
    # Of two names the first one that was given: the other may be the variable of a loop.
    names = {
        id(value): name
        for name, value in reversed(list(vars(sys.modules["__main__"]).items()))
        if isinstance(value, torch.Tensor) and name.isidentifier()
    }
    named: dict[str, torch.Tensor] = {}
    for number, (key, tensor) in enumerate(leaves.items()):
        named[names.get(key, f"tensor{number}")] = tensor
    return {"tensors": LooseTensors(named)}


def name_of(root: nn.Module) -> str:
    """What a network is called: its variable in the script, its attribute, or else its class.

    Local variables of functions are not looked at: reading those of a frame would keep all of them
    alive for as long as the function runs.
    """
    wanted = [root] if unwrap(root) is root else [root, unwrap(root)]
    spaces: list[Any] = [vars(sys.modules["__main__"])]
    for referrer in gc.get_referrers(*wanted):
        if isinstance(referrer, dict):
            spaces.append(referrer)
        elif not isinstance(referrer, FrameType | nn.Module | list | tuple):
            spaces.append(getattr(referrer, "__dict__", {}))
    for space in spaces:
        for name, value in list(space.items()):
            if (
                any(value is model for model in wanted)
                and isinstance(name, str)
                and name.isidentifier()
                and not name.startswith("_")
            ):
                return name
    return type(unwrap(root)).__name__


def _made_again(
    census: Census, called: nn.Module, orphans: set[int], covered: set[int]
) -> list[nn.Module]:
    """The owner of what is called, where an optimizer holds the parameters of its predecessor."""
    if not orphans or not torch.is_grad_enabled():
        return []
    held = [
        parameter
        for optimizer in census.optimizers
        for parameter in parameters_of(optimizer)
        if id(parameter) in orphans
    ]
    shapes = {tuple(parameter.shape) for parameter in held}
    return [
        owner
        for owner in census.owners(called)[:1]
        if _could_train(owner)
        and not covered & _parameters(owner)
        and shapes <= {tuple(parameter.shape) for parameter in _of(owner)}
    ]


def _parameters(root: nn.Module) -> set[int]:
    return {id(parameter) for parameter in _of(root)}


def _size(root: nn.Module) -> int:
    return sum(1 for _ in _of(root))


def _could_train(root: nn.Module) -> bool:
    return not _cannot_be_followed(root) and any(parameter.requires_grad for parameter in _of(root))


def _cannot_be_followed(root: nn.Module) -> bool:
    """A script has no hooks, and a parametrization is called when it is made, before it is used."""
    return isinstance(root, torch.jit.ScriptModule | ParametrizationList)


def _of(root: nn.Module) -> Iterator[nn.Parameter]:
    """Parameters of a module; none of one that is half built."""
    return root.parameters() if "_parameters" in vars(root) else iter(())
