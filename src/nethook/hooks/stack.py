"""What is under way, read off the stack.

Torch calls no hook after a forward or a step that an exception has ended: none after an optimizer's
step, and after a forward only those that ask for it, and not for `KeyboardInterrupt`. So what was
counted in before may never be counted out. That a call is on no stack any more is how one knows.

Reading a stack takes a few microseconds, and is done only where something seems to be under way.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from threading import get_ident
from types import FrameType
from typing import Any, Final

from torch import nn
from torch.optim import optimizer as torch_optimizer

from nethook.hooks.compile.eager import CALL_OF_COMPILED
from nethook.torch_private import CALL

_STEPS: Final = torch_optimizer.__file__


def calls_under_way(models: Sequence[nn.Module], thread: int | None = None) -> int:
    """How many calls of these modules are on the stack of a thread; None: of this one."""
    count = 0
    for frame in _frames(thread):
        if frame.f_code is CALL:
            called: Any = frame.f_locals.get("self")
        elif frame.f_code is CALL_OF_COMPILED:
            called = frame.f_locals.get("module")
        else:
            continue
        count += any(called is model for model in models)
    return count


def error_of_call() -> BaseException | None:
    """In a hook after a forward: the exception that has ended it, if one has."""
    error = sys.exc_info()[1]
    trace = None if error is None else error.__traceback__
    # Not one that the script is handling while it calls the model.
    ended = trace is not None and trace.tb_frame.f_code in (CALL, CALL_OF_COMPILED)
    return error if ended else None


def handled_error() -> BaseException | None:
    """The exception that the script is handling now, if it has ended a forward or a step."""
    error = sys.exc_info()[1]
    trace = None if error is None else error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is CALL or _is_step(trace.tb_frame):
            return error
        trace = trace.tb_next
    return None


def steps_under_way(thread: int | None = None) -> int:
    """How many steps of optimizers are on the stack of a thread; None: of this one."""
    return sum(_is_step(frame) for frame in _frames(thread))


def _is_step(frame: FrameType) -> bool:
    # By names: where a step was compiled, its frame runs code that was made from that of torch.
    return frame.f_code.co_filename == _STEPS and "wrapper" in frame.f_code.co_name


def _frames(thread: int | None) -> Iterator[FrameType]:
    own = thread is None or thread == get_ident()
    frame = sys._getframe() if own else sys._current_frames().get(thread or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def raised_by_signal(error: BaseException) -> bool:
    """Whether a handler of a signal has raised this: it is the script's, wherever it came up.

    A script may end a step that takes too long by `signal.alarm` and a `TimeoutError`.
    """
    codes = {
        getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()
    }
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False
