"""Evaluation repeats itself: in evaluation mode, the same batch gives the same output again.

Experiment: two passes in evaluation mode with different random states. Where they differ, the calls
of dropout that were active are noted with their lines.

Meaning: `F.dropout(x)` without `training=self.training`, `nn.Dropout(p)(x)` made anew in the
forward, a module that `eval()` does not reach, attention whose `dropout_p` is never 0.

Cost: two passes of the model, one of which others use, too; two more per switch where they differ.

Where the mode is an argument of the call (`model(x, deterministic=False)`), the mode of the modules
says nothing: each argument that is True or False is turned over, and where the output then repeats
itself, that is the evaluation. An argument with the name `training` follows the mode by itself.

Does not apply: nowhere. Dropout that the script has switched on in so many words (`training=True`)
and models that draw samples are random on purpose: a question at most, and never a fault.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from nethook.addresses.nested import tensors
from nethook.examining.experiment import Result, fine, found, question
from nethook.examining.probes.moved import change, comparable
from nethook.examining.probes.once import evaluated
from nethook.examining.refusals import NotReplayableError
from nethook.examining.rehearsal import Rehearsal
from nethook.hooks.process.source_line import ScriptLine, line_of_script

_DROPOUTS: Final[dict[Callable[..., Any], str]] = {
    F.dropout: "F.dropout",
    F.dropout1d: "F.dropout1d",
    F.dropout2d: "F.dropout2d",
    F.dropout3d: "F.dropout3d",
    F.alpha_dropout: "F.alpha_dropout",
    F.feature_alpha_dropout: "F.feature_alpha_dropout",
    torch.dropout: "torch.dropout",
    F.scaled_dot_product_attention: "F.scaled_dot_product_attention",
}
SEED: Final = 20_001
MOST_SWITCHES: Final = 8
"""Arguments that are turned over, at most, by position and by name each."""


@dataclass(frozen=True, slots=True)
class Active:
    """A call of dropout that was active in evaluation."""

    function: str
    p: float
    source: ScriptLine

    @property
    def line(self) -> str:
        """As `train.py:42`."""
        return str(self.source)

    @property
    def meant(self) -> bool:
        """Whether the script says `training=True` by itself."""
        return _is_meant(self.source.file, self.source.line)


class EvaluationRepeats:
    """See the module."""

    name = "evaluation repeats itself"
    turn = 4

    def applies(self, rehearsal: Rehearsal) -> str | None:
        """Always."""
        return None

    def run(self, rehearsal: Rehearsal) -> Result:
        """Two passes, and the dropout in them."""
        active: list[Active] = []
        first = rehearsal.run(training=False, outputs_only=True, seed=SEED, seen=_noting(active))
        second = evaluated(rehearsal)
        differs = _difference(first.output, second.output)
        if differs == 0:
            return fine(self, differs=0.0)
        switch = _switch(rehearsal)
        if switch is not None:
            return fine(self, differs=0.0, switch=switch)
        calls = list(dict.fromkeys(active))
        forgotten = [call for call in calls if not call.meant]
        if forgotten:
            return found(
                self,
                differs=differs,
                operation=forgotten[0].function,
                p=forgotten[0].p,
                lines=list(dict.fromkeys(call.line for call in forgotten)),
            )
        if calls:
            return question(
                self, "dropout is switched on in evaluation by the script itself",
                differs=differs, operation=calls[0].function, p=calls[0].p,
                lines=list(dict.fromkeys(call.line for call in calls)),
            )  # fmt: skip
        return question(
            self, "the model draws random numbers in evaluation, as models that sample do",
            differs=differs, lines=[],
        )  # fmt: skip


def _switch(rehearsal: Rehearsal) -> str | None:
    """The argument that, turned over, makes the output repeat itself; None where none does."""
    for name, inputs in _turned_over(rehearsal.inputs):
        try:
            first, second = (
                rehearsal.run(inputs, training=False, outputs_only=True, seed=seed).output
                for seed in (SEED, SEED + 1)
            )
        except NotReplayableError:  # there is no such call
            continue
        # An argument may also ask for something else to be returned.
        if any(True for _ in tensors(first)) and _difference(first, second) == 0:
            return name
    return None


def _turned_over(inputs: Inputs) -> Iterator[tuple[str, Inputs]]:
    for position, value in enumerate(inputs.args[:MOST_SWITCHES]):
        if isinstance(value, bool):
            args = (*inputs.args[:position], not value, *inputs.args[position + 1 :])
            yield str(position), Inputs(args, inputs.kwargs)
    switches = [name for name, value in inputs.kwargs.items() if isinstance(value, bool)]
    for name in switches[:MOST_SWITCHES]:
        yield name, Inputs(inputs.args, {**inputs.kwargs, name: not inputs.kwargs[name]})


def _difference(one: Any, other: Any) -> float:
    pairs = zip(tensors(one), tensors(other), strict=False)
    moved = [
        float(change(mine, theirs).max())
        for (_, mine), (_, theirs) in pairs
        if comparable(mine, theirs)
    ]
    return max(moved, default=0.0)


def _noting(active: list[Active]) -> Callable[..., Any]:
    def seen(
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        run: Callable[[], Any],
    ) -> Any:
        try:
            name = _DROPOUTS.get(function)
        except TypeError:  # cannot be hashed
            name = None
        if name is not None:
            p = _active(function, args, kwargs)
            if p > 0:
                active.append(Active(name, p, line_of_script(or_library=True)))
        return run()

    return seen


def _active(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """With which probability a call drops; 0 where it is switched off."""
    if function is torch.dropout:
        given = dict(zip(("input", "p", "train"), args, strict=False)) | kwargs
        return float(given.get("p", 0)) if given.get("train") else 0.0
    if function is F.scaled_dot_product_attention:
        named = ("query", "key", "value", "attn_mask", "dropout_p")
        given = dict(zip(named, args, strict=False)) | kwargs
        return float(given.get("dropout_p", 0))
    bound = _signature(function).bind_partial(*args, **kwargs)
    bound.apply_defaults()
    return float(bound.arguments["p"]) if bound.arguments["training"] else 0.0


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _is_meant(file: str, line: int) -> bool:
    """Whether the call on a line of the script says `training=True`, or a third `True`."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.lineno <= line <= (node.end_lineno or 0):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        if "dropout" not in name.lower():
            continue
        given = [word.value for word in node.keywords if word.arg in ("training", "train")]
        given += node.args[2:3]
        if any(isinstance(value, ast.Constant) and value.value is True for value in given):
            return True
    return False
