"""What it costs to record every operation of a forward, next to the plain forward, in the same run.

    python benchmarks/ops.py [--rounds N]

The network is the small GPT-2 of `benchmarks/trace.py`. Every way runs one forward inside a scope
of its own, so that attaching, recording and removing are counted; the ways take turns. A bare
`TorchFunctionMode`, which only passes each call on, is the anchor: what torch itself takes to let
operations be seen.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch
from timing import Run, small_gpt2, take_turns
from torch import nn
from torch.overrides import TorchFunctionMode

import nethook
from nethook.tracing.tape.tape import Tape


class Bare(TorchFunctionMode):
    """Passes every call on."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Calls the function."""
        return func(*args, **(kwargs or {}))


def under_a_bare_mode(forward: Run) -> None:
    """The forward under a mode that does nothing."""
    with Bare():
        forward()


def traced(model: nn.Module, forward: Run, pattern: str, **options: Any) -> Tape:
    """The forward with operations recorded."""
    with nethook.trace(model, pattern, **options) as tape:
        forward()
    return tape


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="What it costs to record every operation.")
    parser.add_argument("--rounds", type=int, default=40, help="turns each way takes")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, forward = small_gpt2()
    with torch.no_grad():
        count = len(traced(model, forward, "**/*"))
        seconds = take_turns(
            {
                "plain forward": forward,
                "bare TorchFunctionMode": lambda: under_a_bare_mode(forward),
                "every operation": lambda: traced(model, forward, "**/*"),
                "every operation, copy=False": lambda: traced(model, forward, "**/*", copy=False),
                "one operation": lambda: traced(model, forward, "h.11.mlp.act/tanh#0"),
                "no operation, 12 blocks": lambda: traced(model, forward, "h.*"),
            },
            rounds,
            2,
        )
    print(f"{count} operations; bound: every operation at most 3.00× the plain forward\n")
    print(f"{'':30}{'µs':>9}{'ratio':>8}")
    for name, each in seconds.items():
        print(f"{name:30}{1e6 * each:9.0f}{each / seconds['plain forward']:7.2f}×")


if __name__ == "__main__":
    main()
