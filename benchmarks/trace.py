"""What a trace costs, next to hooks written by hand, in the same run.

    python benchmarks/trace.py [--rounds N]

Every way runs one forward inside a scope of its own: finding the modules, registering, recording
and removing are all counted. The ways take turns, so that a slow moment of the machine meets all
of them; of each, the quickest rounds count. The overhead of a way is its time less that of the
plain forward; its ratio is that overhead over the one of hooks written by hand.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

import nethook

Run = Callable[[], object]


class AddOne(nn.Module):
    """A layer that does almost nothing, so that the hooks are what is measured."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One more."""
        return x + 1


def by_hand(model: nn.Module, names: list[str], forward: Run) -> dict[str, torch.Tensor]:
    """What people write: find each module, hook it, run, take the hooks off."""
    stored: dict[str, torch.Tensor] = {}
    modules = dict(model.named_modules())

    def keep(name: str) -> Callable[[nn.Module, object, torch.Tensor], None]:
        def hook(_: nn.Module, __: object, output: torch.Tensor) -> None:
            stored[name] = output.detach()

        return hook

    handles = [modules[name].register_forward_hook(keep(name)) for name in names]
    try:
        forward()
    finally:
        for handle in handles:
            handle.remove()
    return stored


def traced(model: nn.Module, patterns: list[str], forward: Run, copy: bool | None) -> None:
    """The same with nethook."""
    with nethook.trace(model, *patterns, copy=copy):
        forward()


def take_turns(ways: dict[str, Run], rounds: int, inner: int) -> dict[str, float]:
    """Seconds a call of each way: the mean of its quickest quarter of rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in ways.values():
        run()
    for _ in range(rounds):
        for name, run in ways.items():
            start = time.perf_counter()
            for _ in range(inner):
                run()
            seconds[name].append((time.perf_counter() - start) / inner)
    return {
        name: statistics.mean(sorted(all_)[: max(1, rounds // 4)]) for name, all_ in seconds.items()
    }


def compare(
    title: str, model: nn.Module, names: list[str], patterns: list[str], forward: Run,
    rounds: int, inner: int,
) -> None:  # fmt: skip
    """Prints one line: the forward, the overhead of each way, and their ratios."""
    seconds = take_turns(
        {
            "plain": forward,
            "hand": lambda: by_hand(model, names, forward),
            "references": lambda: traced(model, patterns, forward, copy=False),
            "lazy": lambda: traced(model, patterns, forward, copy=None),
        },
        rounds,
        inner,
    )
    over = {name: 1e6 * (each - seconds["plain"]) for name, each in seconds.items()}
    print(
        f"{title:28}{1e6 * seconds['plain']:9.0f}{over['hand']:9.0f}"
        f"{over['references']:9.0f}{over['references'] / over['hand']:7.2f}×"
        f"{over['lazy']:9.0f}{over['lazy'] / over['hand']:7.2f}×"
        f"{over['lazy'] / len(names):9.2f}"
    )


def small_gpt2() -> tuple[nn.Module, Run]:
    """Twelve blocks, 64 wide, 16 tokens; random weights."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        n_embd=64, n_layer=12, n_head=4, vocab_size=100, n_positions=16,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model: nn.Module = GPT2Model(config).eval()  # type: ignore[no-untyped-call]
    tokens = torch.arange(16).unsqueeze(0)
    return model, lambda: model(tokens)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="What a trace costs, next to hooks by hand.")
    parser.add_argument("--rounds", type=int, default=40, help="turns each way takes")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print("µs; overhead over the plain forward, and its ratio to that of hooks written by hand")
    print("bounds: copy=False at most 1.50×, lazy copies at most 2.00×\n")
    print(f"{'':28}{'forward':>9}{'by hand':>9}{'copy=False':>17}{'lazy copies':>17}{'a site':>9}")
    with torch.no_grad():
        model, forward = small_gpt2()
        names = [f"h.{index}" for index in range(12)]
        compare("GPT-2, 12 block outputs", model, names, ["h.*"], forward, rounds, 4)
        for sites in (125, 250, 500, 1000, 2000):
            chain, x = nn.Sequential(*[AddOne() for _ in range(sites)]), torch.zeros(4)
            names = [str(index) for index in range(sites)]
            run = lambda chain=chain, x=x: chain(x)  # noqa: E731
            compare(f"{sites} sites", chain, names, ["*"], run, rounds, max(1, 2000 // sites))


if __name__ == "__main__":
    main()
