"""Who gets a gradient, and which optimizer has it: the leaves of the graph against all optimizers.

At the first backward pass, when another loss, optimizer or parameter appears, and then ever more
rarely, the graph is walked to its leaves. A leaf is a parameter of a watched model, one that lies
somewhere else (`holders`), or a tensor of no module. Of those that no optimizer has, a few weights
are remembered, to see whether other code moves them. What is known goes to the run's facts as
`graph`, and what a verdict may rest on as `seen`; between two looks a backward pass costs three
comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.autograd.leaves import leaves_of
from nethook.hooks.process.lost_loads import loads_lost
from nethook.hooks.process.origins import loads_of_itself, loads_of_the_same, loads_unmatched
from nethook.hooks.process.source_line import line_of_script
from nethook.stats.shards import is_shared
from nethook.watching.facts.attributes import Attributes
from nethook.watching.facts.critic_terms import has_critic
from nethook.watching.facts.held_tensors import HeldTensors
from nethook.watching.facts.loose_leaves import LooseLeaves
from nethook.watching.facts.plain_tensors import PlainTensors
from nethook.watching.fail_open import FailsAlone, contained
from nethook.watching.journal import Journal
from nethook.watching.loop.optimizers import Optimizers
from nethook.watching.losses.recorder import Losses
from nethook.watching.recorder import Recorder

GROWTH: Final = 1.6
"""Looks come ever more rarely, and at odd and even passes alike: two losses may take turns."""
_MOST_LOOKS: Final = 256


class Graph(FailsAlone, Recorder):
    """Walks the graphs of backward passes.

    Arguments:
        journal: where facts go.
        models: the watched models by name.
        optimizers: those that hold parameters of theirs, and others that step.
        losses: says when another way of making a loss is met.
    """

    part = "the leaves of the graph"
    rests = ("before_backward",)

    def __init__(
        self,
        journal: Journal,
        models: Mapping[str, nn.Module],
        optimizers: Optimizers,
        losses: Losses,
    ) -> None:
        self._watching = journal
        self._models = models
        self._optimizers = optimizers
        self._losses = losses
        self._attributes = Attributes(models)
        self._plain = PlainTensors(models)
        self._loose = LooseLeaves(models)
        self._held = HeldTensors(models, optimizers)
        self._next = self._width = 1.0
        self._known = (0, 0)  # ways of making a loss, changes of the optimizers
        self._seen: dict[str, Any] = {
            "looks": 0, "without": 0, "leaf_roots": {}, "critics": {}, "second_order": False
        }  # fmt: skip
        self._told: dict[str, Any] = {}
        self._lost: list[dict[str, Any]] = []

    def before_backward(self, roots: Sequence[torch.Tensor]) -> None:
        """A backward pass is about to run from these tensors."""
        ways, changes = self._known
        same = self._losses.lines.ways == ways and self._optimizers.changes == changes
        if not same or self._passes >= self._next:
            self._look_again(roots, same)

    @property
    def _passes(self) -> int:
        """Backward passes so far, with the one that is about to run."""
        passes: int = self._watching.clock.totals["backwards"]
        return passes

    @contained
    def _look_again(self, roots: Sequence[torch.Tensor], same: bool) -> None:
        # Where there are ranks, leaves may be other tensors than those that an optimizer has.
        if self._watching.options.world > 1 or self._seen["looks"] >= _MOST_LOOKS:
            return
        self._known = (self._losses.lines.ways, self._optimizers.changes)
        self._width = self._width * GROWTH if same else 1.0
        self._next = self._passes + self._width
        self._look(roots)
        self._write()

    def _look(self, roots: Sequence[torch.Tensor]) -> None:
        leaves = leaves_of(roots)
        if not leaves.whole or any(is_shared(tensor) for tensor in leaves.tensors):
            return
        names, seen, held = self._names(), self._seen, self._held
        if not seen["looks"]:  # what a training has changed since is not lost
            self._lost = loads_lost(self._models.values())
        seen["looks"] += 1
        seen["second_order"] = seen["second_order"] or leaves.second_order
        if has_critic(roots):
            line = str(line_of_script())
            seen["critics"] = {**seen["critics"], line: seen["critics"].get(line, 0) + 1}
        if any(root.grad_fn is None for root in roots):
            line = str(line_of_script())
            seen["leaf_roots"] = {**seen["leaf_roots"], line: seen["leaf_roots"].get(line, 0) + 1}
        ends = {id(root) for root in roots}
        tensors = [tensor for tensor in leaves.tensors if id(tensor) not in ends]
        for tensor in tensors:
            held.reached.add(tensor)
        seen["without"] += not any(id(tensor) in names for tensor in tensors)
        self._loose.note(tensors, held.ids(), names, self._watching.step)
        held.note(names, search=bool(self._loose))

    def _names(self) -> dict[int, str]:
        """The parameters that the models have now."""
        names: dict[int, str] = {}
        for model, root in self._models.items():
            prefix = f"{model}." if model else ""
            for name, tensor in root.named_parameters():
                address = self._optimizers.held.address_of(tensor)
                names.setdefault(id(tensor), address or f"{prefix}{name}")
                self._held.owned.add(tensor)
        return names

    def _write(self, *, ended: bool = False) -> None:
        """Brings the run's facts up to date."""
        names = self._names()
        parameters = [tensor for model in self._models.values() for tensor in model.parameters()]
        reached = sum(tensor in self._held.reached for tensor in parameters)
        told: dict[str, Any] = {
            "seen": {
                "losses": self._losses.lines.ways,
                "backwards": self._passes,
                "gradients": max(reached, self._optimizers.held.with_gradient()),
            }
        }
        if self._seen["looks"]:
            told["graph"] = {
                **self._seen,
                "tensors": self._loose.tensors,
                "unheld": self._loose.of_models(names),
                "others": self._loose.of_others(ended=ended),
                "optimizers": self._held.facts(),
                "attributes": self._attributes.found(self._watching.step),
                "plain": self._plain.found(self._watching.step),
                "born": self._loose.born,
                "loads": loads_of_itself(),
                "same_loads": loads_of_the_same(),
                "unmatched_loads": loads_unmatched(self._models.values()),
                "lost_loads": self._lost,
            }
        if told != self._told:
            self._told = told
            self._watching.writer.info(**told)

    @contained
    def close(self) -> None:
        """Watching ends."""
        self._loose.settle()
        self._write(ended=True)
