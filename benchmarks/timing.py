"""What the benchmarks share: ways that take turns, and a small network to run them on."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Run = Callable[[], object]


def take_turns(ways: dict[str, Run], rounds: int, inner: int) -> dict[str, float]:
    """Seconds of the processor that a call of each way takes: the mean of its quickest rounds.

    The time of the processor, not of the clock: one thread runs, and others on the machine must
    not count.
    """
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for run in ways.values():
        run()
    for _ in range(rounds):
        for name, run in ways.items():
            start = time.process_time()
            for _ in range(inner):
                run()
            seconds[name].append((time.process_time() - start) / inner)
    return {
        name: statistics.mean(sorted(all_)[: max(1, rounds // 4)]) for name, all_ in seconds.items()
    }


def typical(seconds: list[float]) -> float:
    """The mean of the quickest third."""
    return statistics.mean(sorted(seconds)[: max(1, len(seconds) // 3)])


Turn = tuple[float, float]
"""Seconds of the clock, and of the processor, that a step took in one turn of its way."""


def against(mine: list[Turn], other: list[Turn]) -> str:
    """What a way takes against another, by the clock and by the processor (all its threads)."""
    said = []
    for at, name in enumerate(("clock", "processor")):
        usual = typical([each[at] for each in mine]) / typical([each[at] for each in other])
        # The ratio of each turn to the one beside it: what the machine does meanwhile cancels.
        beside = zip(mine, other, strict=True)
        median = statistics.median([a[at] / b[at] for a, b in beside])
        said.append(f"{name} {usual:6.3f} (median of turns {median:.3f})")
    return "  ".join(said)


def keep_freed_memory() -> None:
    """In processes that are started from now on, memory that is freed stays with the process.

    Otherwise a step may give megabytes back and get them again, or not, depending on what else lies
    on the heap: 20 % of a step of the MLP.
    """
    for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"):
        os.environ.setdefault(name, str(1 << 30))


def hold_the_doctor() -> None:
    """In this process, from now on, a watch's doctor looks at no run by itself.

    It looks after 20 seconds of the clock, and then after twice as long. Where ways take turns, a
    process sleeps most of the time, and a look would count several times what it does in a run.
    """
    from nethook.watching import diagnosis

    diagnosis.FIRST = 1e6  # type: ignore[misc]


def a_look_of_the_doctor(watch: Any) -> float:
    """What one look at the run of a watch takes, in seconds."""
    began = time.perf_counter()
    watch._diagnosis.look()
    return time.perf_counter() - began


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
