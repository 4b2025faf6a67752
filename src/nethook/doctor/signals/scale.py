"""How large the signal is over the depth of a network, at the first step.

A layer with a matrix hands on the scale of what goes in; a norm sets one, whatever went in. So each
layer is compared with the norm before it, or with the input where there is none. Whole numbers have
no scale, and an embedding of them no other than its own: a signal that grows from there to a size
of about one is no growth.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from nethook.doctor.history import History, SiteFacts
from nethook.doctor.signals.layers import leaves
from nethook.kinds.operations import LINEAR_LAYERS, LOOKUPS, NORMS
from nethook.runs.names import INPUTS, OUTPUTS

SCALE_READS: Final = (
    "info.ops",
    "module.activation",
    "module.first_call",
    "module.leaf",
    "module.parameters",
    "parameter.shape",
    "series.inputs.info.dtype",
    "series.inputs.rms",
    "series.outputs.rms",
)
"""The fields that `scaled_layers` reads."""


class ScaledLayer(NamedTuple):
    """A layer with weights, and its signal at the first step."""

    address: str
    size: float  # root mean square of its output
    reference: float  # of what its scale comes from
    segment: int  # layers between two norms have the same
    head: bool  # whether no other layer with weights takes what it returns
    tokens: bool  # whether the reference is an embedding of whole numbers

    @property
    def up(self) -> float:
        """How many times as large as its reference; of an embedding's at least of one."""
        least = max(self.reference, 1.0) if self.tokens else self.reference
        return self.size / max(least, 1e-30)

    @property
    def down(self) -> float:
        """How many times as small."""
        return self.reference / max(self.size, 1e-30)


def scaled_layers(history: History) -> list[ScaledLayer]:
    """Every layer with a matrix whose output was measured at the first step, in order of calls."""
    ops = [op for op in history.info("ops", []) if isinstance(op, dict)]
    named: dict[str, set[str]] = {}
    for op in ops:
        named.setdefault(str(op.get("site")), set()).add(str(op.get("op")))
    shapes = {parameter.address: parameter.fact("shape", []) for parameter in history.parameters}
    feeding = _feeding(ops)
    called = leaves(history)
    entering = history.curve("", INPUTS, "rms")
    whole = "float" not in str(history.series_fact("", INPUTS, "dtype", ""))
    reference = None if whole or not len(entering) else float(entering.value[0])
    tokens, segment = whole, 0
    layers: list[ScaledLayer] = []
    for place, module in enumerate(called):
        rms = history.curve(module.address, OUTPUTS, "rms")
        size = float(rms.value[0]) if len(rms) else float("nan")
        if not (np.isfinite(size) and size > 0):
            continue
        does = named.get(module.address, set())
        if _sets_scale(module, does, shapes):
            reference, tokens, segment = size, False, segment + 1
            continue
        if not _has_matrix(module, shapes):
            continue
        if reference is None or does & LOOKUPS:
            reference, tokens, segment = size, bool(does & LOOKUPS) or whole, segment + 1
            continue
        head = module.address not in feeding if feeding else place == len(called) - 1
        layers.append(ScaledLayer(module.address, size, reference, segment, head, tokens))
    return layers


def _has_matrix(module: SiteFacts, shapes: dict[str, Any]) -> bool:
    # What is not known of is taken for a matrix, as most are.
    return any(len(shapes.get(name) or (0, 0)) >= 2 for name in module.fact("parameters", []))


def _sets_scale(module: SiteFacts, does: set[str], shapes: dict[str, Any]) -> bool:
    """Whether it is a norm: by its kind, by what it calls, or by vectors as its only parameters."""
    if module.fact("activation") == "norm" or does & NORMS:
        return True
    parameters = module.fact("parameters", [])
    return bool(parameters) and not _has_matrix(module, shapes)


def _feeding(ops: list[dict[str, Any]]) -> set[str]:
    """The layers whose output goes into another layer with weights, in whatever way."""
    behind: list[set[str]] = []
    feeding: set[str] = set()
    for index, op in enumerate(ops):
        sources = [source for source in op.get("from") or []
                   if isinstance(source, int) and 0 <= source < index]  # fmt: skip
        reached = set().union(*(behind[source] for source in sources)) if sources else set()
        if op.get("op") in LINEAR_LAYERS:
            feeding |= reached
            reached = {str(op.get("site"))}
        behind.append(reached)
    return feeding
