"""The steps that are chosen: one that is examined when it has ended, and those for the end."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import torch
from torch import nn

from nethook.addresses.nested import tensors
from nethook.stats.memory import bytes_held
from nethook.torch_private import storage_id
from nethook.watching.examinations.keeper import Taken

if TYPE_CHECKING:
    from nethook.examining.experiment import Experiment
    from nethook.examining.rehearsal import Material

MOST_HELD: Final = 64 << 20
"""Bytes of a batch that are held until the end of the run."""


@dataclass(slots=True)
class Chosen:
    """A step that is to be examined: as it was, and at the end of the run with other weights."""

    material: Material
    module: weakref.ref[nn.Module]
    modes: list[bool]
    model: str
    line: str
    held: bool  # whether it is small enough to be held until the end
    experiments: tuple[Experiment, ...] = ()  # that are left for the end


class ChosenSteps:
    """Those that wait to be examined."""

    def __init__(self) -> None:
        self.ready: Chosen | None = None
        """The step that is examined as soon as it has ended."""
        self.later: list[Chosen] = []
        """Those that are examined at the end of the run."""

    def add(self, taken: Taken, line: str) -> None:
        """A step is ready to be examined when it has ended."""
        from nethook.restoring.python_state import every_module

        material = taken.material
        held = bytes_of((material.inputs.args, dict(material.inputs.kwargs)))
        held += material.passage.bytes if material.passage is not None else 0
        modes = [part.training for part in every_module(material.model)]
        self.ready = Chosen(
            material, taken.module, modes, taken.model, line, held=held <= MOST_HELD
        )

    def take(self) -> Chosen | None:
        """The step that is ready; None where there is none."""
        chosen, self.ready = self.ready, None
        return chosen

    def keep_for_the_end(self, chosen: Chosen, experiments: Sequence[Experiment]) -> None:
        """Some experiments are left: its batch is kept for them, and no copy of the model."""
        material = replace(chosen.material, model=nn.Module(), output=None, loss=None)
        self.later.append(replace(chosen, material=material, experiments=tuple(experiments)))

    def let_go(self) -> None:
        """Nothing is held any more."""
        self.ready, self.later = None, []


def why_no_room(module: nn.Module, roots: Sequence[torch.Tensor]) -> str:
    """Why a step cannot be run again beside the script, in words; "" where it can."""
    from nethook.examining.activations import bytes_saved
    from nethook.examining.limits import why_too_large

    strided = [one for one in module.parameters() if one.layout is torch.strided]
    weights = {storage_id(parameter.untyped_storage()) for parameter in strided}
    # A run with a graph, and another beside it.
    return why_too_large(2 * bytes_saved(roots, weights), device_of(module))


def bytes_of(value: object) -> int:
    """Bytes of the tensors in something nested."""
    return sum(bytes_held(tensor) for _, tensor in tensors(value))


def device_of(model: nn.Module) -> torch.device | None:
    """Where the first parameter of a model lies."""
    first = next(model.parameters(), None)
    return None if first is None else first.device
