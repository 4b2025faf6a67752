"""The names of the copy in the `rome` family: `from nethook.classic import rome as nethook`.

Here a `Trace` keeps the input before the edit, and an edit is offered `output` and `layer` alone.
All else is the same.
"""

from __future__ import annotations

from typing import ClassVar

from nethook.addresses.lookup import get_module, get_parameter
from nethook.classic.calling import invoke_with_optional_args
from nethook.classic.copying import recursive_copy
from nethook.classic.modules import (
    module_names,
    parameter_names,
    replace_module,
    set_requires_grad,
)
from nethook.classic.subsequences import hierarchical_subsequence, subsequence
from nethook.classic.trace import StopForward
from nethook.classic.trace import Trace as _Trace
from nethook.classic.trace_dict import TraceDict as _TraceDict

__all__ = [
    "StopForward",
    "Trace",
    "TraceDict",
    "get_module",
    "get_parameter",
    "hierarchical_subsequence",
    "invoke_with_optional_args",
    "module_names",
    "parameter_names",
    "recursive_copy",
    "replace_module",
    "set_requires_grad",
    "subsequence",
]


class Trace(_Trace):
    """As `nethook.Trace`, but the input is kept before the edit."""

    _offers: ClassVar[tuple[str, ...]] = ("output", "layer")
    _input_before_edit: ClassVar[bool] = True


class TraceDict(_TraceDict):
    """As `nethook.TraceDict`, made of the traces of this module."""

    _trace: ClassVar[type[_Trace]] = Trace
