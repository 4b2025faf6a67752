"""Which tensor each parameter is now.

Models change while they are watched: `fully_shard` and `parallelize_module` put sharded tensors in
the place of parameters, `load_state_dict(assign=True)` others, a module is replaced, another
optimizer takes over. What an optimizer holds is what is measured; where that is not what the model
has, its steps do not change the model, and that is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from nethook.addresses.tree import Tree
from nethook.hooks.layouts.fsdp import shards_of
from nethook.runs import names
from nethook.torch_private import children_of, parameters_of
from nethook.watching.journal import Journal
from nethook.watching.loop.loose_tensors import is_trained
from nethook.watching.measuring.parameter_facts import ParameterFacts

SHOWN = 20
"""Addresses that an event names."""


class Resolver:
    """Finds the tensors of the parameters by their addresses.

    Arguments:
        journal: where events go.
        models: the watched models by name.
        facts: of every parameter.
    """

    def __init__(
        self, journal: Journal, models: Mapping[str, nn.Module], facts: Sequence[ParameterFacts]
    ) -> None:
        self._journal = journal
        self._models = dict(models)
        self._facts = list(facts)
        self._holders: list[tuple[ParameterFacts, nn.Module, str]] = []
        self._modules: list[tuple[nn.Module, str, nn.Module, str]] = []
        self._told: set[str] = set()
        self._note()

    def find(self) -> dict[str, torch.Tensor]:
        """Every parameter that the models have now, by each of its names."""
        parameters: dict[str, torch.Tensor] = {}
        for model, root in self._models.items():
            prefix = f"{model}." if model else ""
            sharded = shards_of(root)
            for site in Tree(root).parameters().sites:
                if is_trained(root, site.tensor):
                    for name in site.names:
                        parameters[prefix + name] = sharded.get(id(site.tensor), site.tensor)
        return parameters

    def update(self, held: set[int]) -> list[ParameterFacts]:
        """Takes the tensors that the models have now, for all that an optimizer has to do with.

        Arguments:
            held: ids of the tensors in an optimizer that nethook did not know.

        Returns:
            The parameters that are other tensors than before.
        """
        now = self.find()
        changed = []
        for facts in self._facts:
            tensor = now.get(facts.address)
            if tensor is not None and tensor is not facts.parameter and id(tensor) in held:
                facts.parameter = tensor
                facts.settle()
                changed.append(facts)
        if changed:
            self._tell(changed, "are other tensors now, and an optimizer holds them")
            self._tell_modules()
            self._note()
        return changed

    def changed(self) -> bool:
        """Whether any parameter or module is not where it was; some 50 ns for each."""
        return any(
            parameters_of(module).get(key) is not facts.parameter
            for facts, module, key in self._holders
        ) or any(
            children_of(parent).get(key) is not child for parent, key, child, _ in self._modules
        )

    def look(self, held: set[int]) -> list[ParameterFacts]:
        """Looks whether the models still have what is measured.

        Arguments:
            held: ids of the tensors that optimizers hold.

        Returns:
            Parameters that no optimizer holds and that are other tensors now.
        """
        if not self.changed():
            return []
        now = self.find()
        changed, stale, gone = [], [], []
        there = {id(tensor) for tensor in now.values()}
        for facts in self._facts:
            tensor = now.get(facts.address)
            if tensor is None and id(facts.parameter) not in there:
                gone.append(facts)
            if tensor is None or tensor is facts.parameter:
                continue
            if id(facts.parameter) in held:
                stale.append(facts)
            else:
                facts.parameter = tensor
                facts.settle()
                changed.append(facts)
        if changed:
            self._tell(changed, "are other tensors now")
        if stale:
            self._tell(
                stale,
                "are other tensors in the model than in the optimizer, whose steps do not change "
                "the model: make the optimizer anew after such a change",
            )
        fresh = [facts for facts in gone if facts.address not in self._told]
        if fresh:
            self._told.update(facts.address for facts in fresh)
            self._tell(
                fresh,
                "are no longer in the model, and what has taken their place is not recorded: close "
                "the watch and watch the model anew to follow it",
            )
        self._tell_modules()
        self._note()
        return changed

    # -- helpers ------------------------------------------------------------------------------

    def _note(self) -> None:
        """Notes where parameters and modules are, to see at once when that changes."""
        by_id = {id(entry.parameter): entry for entry in self._facts}
        self._holders, self._modules = [], []
        for model, root in self._models.items():
            prefix = f"{model}." if model else ""
            for name, module in root.named_modules():
                for key, tensor in parameters_of(module).items():
                    facts = by_id.get(id(tensor))
                    if facts is not None:
                        self._holders.append((facts, module, key))
                for key, child in children_of(module).items():
                    if child is not None:
                        address = f"{prefix}{name}.{key}" if name else f"{prefix}{key}"
                        self._modules.append((module, key, child, address))

    def _tell_modules(self) -> None:
        gone = [
            (address, children_of(parent).get(key))
            for parent, key, child, address in self._modules
            if children_of(parent).get(key) is not child
        ]
        fresh = [replaced for replaced in gone if replaced[0] not in self._told]
        if not fresh:
            return
        self._told.update(address for address, _ in fresh)
        shown = ", ".join(repr(address) for address, _ in fresh[:3])
        more = f" and {len(fresh) - 3} more" if len(fresh) > 3 else ""
        self._journal.event(
            names.MODEL_CHANGED,
            f"the modules at {shown}{more} were replaced: what the new ones return is not "
            "recorded. Close the watch and watch the model anew to follow them",
            fresh[0][0] if len(fresh) == 1 else "",
            {"modules": [address for address, _ in fresh[:SHOWN]]},
        )

    def _tell(self, facts: Sequence[ParameterFacts], what: str) -> None:
        more = ", …" if len(facts) > 3 else ""
        shown = ", ".join(repr(parameter.address) for parameter in facts[:3])
        data: dict[str, Any] = {"parameters": [parameter.address for parameter in facts[:SHOWN]]}
        self._journal.event(
            names.PARAMETERS, f"{len(facts)} of the parameters ({shown}{more}) {what}", data=data
        )
