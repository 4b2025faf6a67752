"""Compiling from a fresh start, whatever the tests before have compiled in this process."""

from __future__ import annotations

import torch


def forget_compiled() -> None:
    """Lets torch forget what it has compiled, and what it has failed to compile.

    Of one function torch compiles only so many variants. All modules of torch's own are compiled
    through one function, and on 2.8 it can stay marked as one not to compile after `reset`.
    """
    torch._dynamo.reset()
    through = torch._dynamo.external_utils.wrap_inline(print)
    torch._dynamo.eval_frame.reset_code(through.__code__)
