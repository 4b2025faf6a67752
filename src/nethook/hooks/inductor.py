"""Inductor calls the operations of `in_graph` as the functions that they are.

What Inductor makes of an operation that it does not know is a call of `torch.ops`, on whose way the
arguments are turned into torch's own and back. In a table of its own, torch has a place for who
writes another line for an operation; ours is the call of the function. Where a torch has no such
table, all stays as it was, and is slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import torch

_TABLE: Final = "torch._inductor.codegen.custom_extern_kernel_codegen"
_ENDING: Final = "_in_inductor"


def call_directly(name: str, run: Callable[..., None]) -> None:
    """Says which function an operation of ours is. Generated code finds it beside the operation."""
    setattr(torch.ops.nethook, f"{name}{_ENDING}", run)


def teach_inductor(name: str) -> None:
    """Has Inductor call the function, once there is an Inductor: for use while a graph is made."""
    module = sys.modules.get(_TABLE)
    table = getattr(module, "CUSTOM_EXTERN_KERNEL_CODEGEN", None)
    entry = getattr(module, "CustomCodegen", None)
    operation = f"torch.ops.nethook.{name}.default"
    if isinstance(table, dict) and entry is not None and operation not in table:
        table[operation] = entry(python=_Line(name))


class _Line:
    """Writes the call of one operation into the code that Inductor generates."""

    def __init__(self, name: str) -> None:
        self._function = f"torch.ops.nethook.{name}{_ENDING}"

    def __call__(self, node: Any, writeline: Callable[[str], None]) -> None:
        arguments = [*node.codegen_args(), *node.codegen_kwargs()]
        writeline(f"{self._function}({', '.join(map(str, arguments))})")
