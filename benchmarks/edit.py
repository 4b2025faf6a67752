"""What an edit costs, next to a hook written by hand that does the same, in the same run.

    python benchmarks/edit.py [--rounds N]

Every way runs one forward inside a scope of its own: finding the module, registering, changing the
value and removing are all counted. The overhead of a way is its time less that of the plain
forward; its ratio is that overhead over the one of the hook written by hand.
"""

from __future__ import annotations

import argparse
from functools import partial

import torch
from timing import Run, small_gpt2, take_turns
from torch import nn

import nethook
from nethook import edits


def by_hand(model: nn.Module, name: str, forward: Run) -> None:
    """What people write: find the module, hook it, run, take the hook off."""
    handle = dict(model.named_modules())[name].register_forward_hook(lambda _, __, out: out * 0.5)
    try:
        forward()
    finally:
        handle.remove()


def edited(model: nn.Module, name: str, forward: Run, function: object) -> None:
    """The same with nethook."""
    with nethook.edit(model, outputs={name: function}):
        forward()


def halve(value: torch.Tensor) -> torch.Tensor:
    """A function of the user's."""
    return value * 0.5


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="What an edit costs, next to a hook by hand.")
    parser.add_argument("--rounds", type=int, default=60, help="turns each way takes")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("µs; overhead over the plain forward, and its ratio to that of a hook written by hand")
    print("bound: at most 1.50×\n")
    print(f"{'':28}{'forward':>9}{'by hand':>9}{'edits.scale':>18}{'a function':>18}")
    with torch.no_grad():
        model, forward = small_gpt2()
        chain, x = nn.Sequential(*[nn.Linear(64, 64) for _ in range(40)]), torch.zeros(1, 64)
        for title, network, name, run in (
            ("GPT-2, one block", model, "h.6", forward),
            ("40 linear layers, one", chain, "20", lambda: chain(x)),
        ):
            seconds = take_turns(
                {
                    "plain": run,
                    "hand": partial(by_hand, network, name, run),
                    "data": partial(edited, network, name, run, edits.scale(0.5)),
                    "function": partial(edited, network, name, run, halve),
                },
                rounds,
                4,
            )
            over = {key: 1e6 * (each - seconds["plain"]) for key, each in seconds.items()}
            print(
                f"{title:28}{1e6 * seconds['plain']:9.0f}{over['hand']:9.0f}"
                f"{over['data']:10.0f}{over['data'] / over['hand']:7.2f}×"
                f"{over['function']:10.0f}{over['function'] / over['hand']:7.2f}×"
            )


if __name__ == "__main__":
    main()
