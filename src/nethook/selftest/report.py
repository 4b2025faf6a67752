"""All checks on one device, as a page of text and as plain data."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final, Literal

import torch

import nethook
from nethook.errors import OptionError
from nethook.selftest.checks import CHECKS, Check, NotAskedError

MARKS: Final = {"passed": "✓", "failed": "✗", "not asked": "–"}


@dataclass(frozen=True)
class Answer:
    """What one check found."""

    name: str
    state: Literal["passed", "failed", "not asked"]
    text: str
    numbers: dict[str, Any]
    seconds: float

    def __str__(self) -> str:
        return f"{MARKS[self.state]}  {self.name:24}{self.text}"


def about(device: torch.device) -> dict[str, str]:
    """What the answers hold for."""
    facts = {
        "nethook": nethook.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": str(device),
    }
    if device.type == "cuda":
        facts["device name"] = torch.cuda.get_device_name(device)
    return facts


def usable(name: str) -> torch.device:
    """The device of that name, if this machine has it."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device) + 1
        if device.type == "meta":
            raise RuntimeError("it computes nothing")
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = (str(error).strip().splitlines() or ["unknown"])[0]
        raise OptionError(
            f"`--device` must be a device that this torch can use; got {name!r}: {reason}"
        ) from None
    return device


def answers(device: torch.device) -> Iterator[Answer]:
    """Ask every check, one after the other. A failure of one does not keep the others from it."""
    for check in CHECKS:
        yield _asked(check, device)


def _asked(check: Check, device: torch.device) -> Answer:
    begin = time.perf_counter()
    state: Literal["passed", "failed", "not asked"]
    numbers: dict[str, Any] = {}
    try:
        with redirect_stderr(StringIO()):  # what a watch says at its end is not for this page
            text, numbers = check.ask(device)
        state = "passed"
    except NotAskedError as reason:
        text, state = str(reason), "not asked"
    except Exception as error:  # whatever breaks here is what the user wants to know
        text, state = f"{type(error).__name__}: {error}".removeprefix("AssertionError: "), "failed"
    return Answer(check.name, state, text, numbers, time.perf_counter() - begin)


def as_data(device: torch.device, given: list[Answer]) -> dict[str, Any]:
    """The answers as plain data, to send to others."""
    return {
        "about": about(device),
        "answers": [
            {
                "name": answer.name,
                "state": answer.state,
                "text": answer.text,
                "numbers": answer.numbers,
                "seconds": round(answer.seconds, 3),
            }
            for answer in given
        ],
    }
