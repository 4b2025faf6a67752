"""Lines of the script that a finding names: the loss, what lays out its prediction, the model."""

from __future__ import annotations

import inspect
import sysconfig
from pathlib import Path
from typing import Final

from torch import nn

from nethook.examining.rehearsal import Rehearsal

_INSTALLED: Final = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
_LAYS_OUT: Final = frozenset(
    {"view", "reshape", "flatten", "transpose", "permute", "movedim", "unflatten", "t"}
)


def line_of_class(model: nn.Module) -> str:
    """Where the class of a model is written, as `train.py:12`; "" where that is a library's."""
    try:
        file = inspect.getsourcefile(type(model))
        line = inspect.getsourcelines(type(model))[1]
    except (OSError, TypeError):
        return ""
    if not file or file.startswith(_INSTALLED):
        return ""
    return f"{Path(file).name}:{line}"


def line_of_loss(rehearsal: Rehearsal) -> str:
    """Where the main loss is computed; "" where that is not known, or not in the script."""
    call = rehearsal.recorded.main
    if call is None or call.line.startswith("?"):
        return ""
    if call.inside_model and not line_of_class(rehearsal.model):
        return ""  # a model of a library, which computes its loss itself
    return call.line


def lines_of_layout(rehearsal: Rehearsal) -> list[str]:
    """Where the script lays out what the model returned, on its way to the loss."""
    passage = rehearsal.passage
    if passage is None:
        return []
    targets = {constant.slot for constant in passage.constants}
    for op in passage.ops:  # what is made of constants alone is target, too
        if op.reads and all(read in targets for read in op.reads):
            targets.update(op.results)
    lines = [
        op.line
        for op in passage.ops
        if op.name in _LAYS_OUT and any(read not in targets for read in op.reads)
    ]
    return list(dict.fromkeys(line for line in lines if not line.startswith("?")))
