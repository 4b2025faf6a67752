"""The sites of a sweep: which of what ran is meant, in order of execution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import get, replace, tensors
from nethook.addresses.op_addresses import OpPattern, split_patterns
from nethook.addresses.paths import Path, parse_path, show_path
from nethook.addresses.patterns import find_modules
from nethook.addresses.tree import Tree
from nethook.errors import SweepError
from nethook.interp.sweeping.recording import Called, Recording

INPUT = "input"
"""The address of what the model itself is given."""


@dataclass(eq=False)
class Site:
    """A place whose value is changed: the output of a module or operation, or the input."""

    address: str
    module: nn.Module | None
    path: Path
    called: Called
    batch: int = 0  # the dimension of rows
    position_dim: int | None = None  # that of tokens, where cells are positions
    merged: int = 0  # heads that share the first dimension with rows
    is_multihead: bool = False  # an operation that also mixes its heads

    @property
    def is_input(self) -> bool:
        """Whether it is what the model is given."""
        return self.address == INPUT and self.module is None and not self.called.began

    @property
    def is_op(self) -> bool:
        """Whether it is an operation."""
        return self.module is None and not self.is_input

    @property
    def moment(self) -> int:
        """When its value is there; before that nothing differs from the base run."""
        return self.called.ended[0] if self.called.ended else 0

    @property
    def values(self) -> list[torch.Tensor]:
        """Its values in the base run, one for each call."""
        return [self.tensor(output) for output in self.called.outputs]

    def tensor(self, value: Any) -> torch.Tensor:
        """The tensor that is meant in an output."""
        found = get(value, self.path) if self.path else value
        if not isinstance(found, torch.Tensor):
            raise SweepError(f"the value at {self.address!r} is a {type(found).__name__}.")
        return found.unflatten(0, (-1, self.merged)) if self.merged else found

    def replaced(self, value: Any, new: torch.Tensor) -> Any:
        """An output with another tensor in that place."""
        new = new.flatten(0, 1) if self.merged else new
        return replace(value, self.path, new) if self.path else new


class Wanted:
    """What `at` asks for, read against a model before it runs."""

    def __init__(self, tree: Tree, at: object, over: str) -> None:
        self.at = at
        self.paths: dict[str, Path] = {}
        if isinstance(at, Mapping):
            self.paths = {str(name): parse_path(path) for name, path in at.items()}
            at = list(at)
        modules, self.ops = split_patterns([] if at is None else [at])
        self.modules = [site.address for site, _ in find_modules(tree, modules).values()]
        self.heads = over == "heads"
        self.by_tokens = over == "positions"
        self.is_input = at is None

        inside = [site.address for pattern in self.ops for site in pattern.sites(tree)]
        if self.heads and self.modules:
            inside += [
                address
                for address in tree.addresses
                if any(is_inside(address, module) for module in self.modules)
            ]
        self.around = list(dict.fromkeys([*self.modules, *inside]))
        """The sites, and the modules in which operations are sites."""

    def recorded(self, tree: Tree) -> set[str]:
        """The modules to be watched: the sites, what is around them, and what runs beside these.

        The rest is inside a module that runs beside: if anything there is answered, that is.
        """
        if self.is_input:
            return set()
        ancestors = {""}
        for address in self.around:
            parts = address.split(".")
            ancestors |= {".".join(parts[:n]) for n in range(1, len(parts))}
        ancestors |= {a for a in self.around if a not in self.modules or self.heads}
        return {
            address
            for address in tree.addresses
            if address in ancestors
            or address in self.modules
            or address.rpartition(".")[0] in ancestors
        }


def is_inside(address: str, module: str) -> bool:
    """Whether an address is that of a module or of something in it."""
    return not module or address == module or address.startswith(f"{module}.")


def found_sites(wanted: Wanted, recording: Recording, inputs: Inputs) -> list[Site]:
    """The sites that ran, in order of execution."""
    if wanted.is_input:
        return [_input_site(inputs)]
    if wanted.heads:
        addresses = _attention(wanted, recording)
    else:
        meant = set(wanted.modules)
        addresses = [
            address
            for address, called in recording.calls.items()
            if called.ended and (address in meant or _means(wanted.ops, called))
        ]
    if not addresses:
        if wanted.heads:
            _check_heads(wanted, recording)
        raise SweepError(
            f"`at` must mean something that runs; nothing of {wanted.at!r} ran with base"
            + (
                ", or it has no attention whose heads are dimension 1. Name the operation, as in "
                'at="**/scaled_dot_product_attention".'
                if wanted.heads
                else ". nethook.sites(model, base) lists what does."
            )
        )
    sites = [_site(wanted, recording.calls[address]) for address in addresses]
    known = {} if recording.attentions is None else recording.attentions.found
    for site in sites:
        attention = known.get(site.address)
        if attention is not None:
            site.merged = attention.heads if attention.merged else 0
            site.is_multihead = attention.form == "nn.MultiheadAttention"
    return sorted(sites, key=lambda site: site.moment)


def _means(patterns: Sequence[OpPattern], called: Called) -> bool:
    if called.module is not None or not patterns:
        return False
    module, _, op = called.address.rpartition("/")
    name, _, number = op.partition("#")
    return any(p.means_module([module]) and p.matches(name, int(number)) for p in patterns)


def _site(wanted: Wanted, called: Called) -> Site:
    path = wanted.paths.get(called.address)
    if path is None:
        inner = tensors(called.outputs[0])
        if not inner:
            raise SweepError(
                f"{called.address!r} returned no tensor that could be changed. Name a module or an "
                "operation that returns one."
            )
        path = inner[0][0]  # of a nested output the rest are states beside it
    return Site(called.address, called.module, path, called)


def _input_site(inputs: Inputs) -> Site:
    for path, tensor in tensors((inputs.args, dict(inputs.kwargs))):
        if tensor.is_floating_point():
            called = Called(INPUT, None, outputs=[(inputs.args, dict(inputs.kwargs))])
            return Site(INPUT, None, path, called)
    raise SweepError(
        "`at` must name sites where base holds whole numbers alone, such as tokens; without it the "
        "first tensor of floating-point numbers in base is changed."
    )


def _attention(wanted: Wanted, recording: Recording) -> list[str]:
    """Attention inside the modules, and operations as they were named."""
    named = [a for a, called in recording.calls.items() if _means(wanted.ops, called)]
    assert recording.attentions is not None
    found = [
        each.op
        for each in recording.attentions.found.values()
        if any(is_inside(each.module, module) for module in wanted.modules)
    ]
    return list(dict.fromkeys([*named, *found]))


def _check_heads(wanted: Wanted, recording: Recording) -> None:
    """An error where there is attention, but no value in which its heads can be changed."""
    assert recording.attentions is not None
    for module, address in recording.attentions.unsplit.items():
        if any(is_inside(module, each) for each in wanted.modules):
            raise SweepError(
                f'over="heads" needs heads in a dimension of their own; {address!r} has rows and '
                'heads in one dimension. Sweep its module over="units" or over="positions" instead.'
            )


def label(site: Site) -> str:
    """How a site is called in a result: its address, and the part of its value if it is nested."""
    return (
        f"{site.address}{show_path(site.path)}" if site.path and not site.is_input else site.address
    )
