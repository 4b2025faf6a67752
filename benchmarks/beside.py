"""Would it help to fold on a thread of its own? Outputs and gradients of every layer, both ways.

    OMP_NUM_THREADS=1 python benchmarks/beside.py [mlp] [mnist] [gpt2]

Three ways take turns in one process: a step alone; hooks that fold every output
and its gradient at once, as `nethook.watch(budget=None)` does; and hooks that hand lazy copies of
the same tensors to a second thread, which folds them while the step goes on. The kernel releases
the interpreter's lock, so both threads can run at the same time.

Printed are ratios to the step alone: of the time of the clock, of the processor time of all
threads, and of that of the thread that trains, which is right on a busy machine, too: with an idle
core the clock cannot show less than that. Weights, gradients of weights and updates are left out:
they must be read before the optimizer writes to them, so they cannot wait.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

import torch
from torch import Tensor, nn
from watch import gpt2, mlp, mnist

from nethook.hooks.autograd.lazy_copy import lazy_copy
from nethook.stats.rows import Rows, Slot

CASES = {"mlp": (mlp, 30, 20), "mnist": (mnist, 10, 3), "gpt2": (gpt2, 16, 5)}
"""The network, turns, steps per turn."""
WAYS = ("alone", "at once", "beside")
WARM = 5
CLOCKS: dict[str, Callable[[], float]] = {
    "clock": time.perf_counter,
    "all threads": time.process_time,
    "training thread": time.thread_time,
}


class Folding:
    """Hooks on every layer, which fold what they see in the way that is `on`."""

    def __init__(self, model: nn.Module) -> None:
        self.on = WAYS[0]
        self._queue: SimpleQueue[tuple[Slot, Tensor] | None] = SimpleQueue()
        self._ended: SimpleQueue[None] = SimpleQueue()
        layers = [module for module in model.modules() if not list(module.children())]
        rows = Rows(2 * len(layers))
        for number, layer in enumerate(layers):
            of_output, of_grad = rows.slot(2 * number), rows.slot(2 * number + 1)
            layer.register_forward_hook(self._hook(of_output, of_grad))
        Thread(target=self._work, daemon=True).start()

    def _hook(self, of_output: Slot, of_grad: Slot) -> Callable[..., None]:
        def on_grad(grad: Tensor) -> None:
            self._fold(of_grad, grad)

        def on_output(_module: nn.Module, _args: Any, output: Any) -> None:
            if self.on != WAYS[0] and isinstance(output, Tensor) and output.requires_grad:
                self._fold(of_output, output)
                output.register_hook(on_grad)

        return on_output

    def _fold(self, slot: Slot, tensor: Tensor) -> None:
        if self.on == "at once":
            slot.fold(tensor.detach())
        else:
            copied = lazy_copy(tensor)
            self._queue.put((slot, tensor.detach() if copied is None else copied))

    def _work(self) -> None:
        while True:
            given = self._queue.get()
            if given is None:
                self._ended.put(None)
            else:
                given[0].fold(given[1])

    def wait(self) -> None:
        """Until everything is folded that was handed over."""
        self._queue.put(None)
        self._ended.get()


def measure(name: str) -> None:
    """Runs the three ways by turns and prints the ratios."""
    make, turns, each = CASES[name]
    torch.manual_seed(0)
    model, loss_of = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    folding = Folding(model)
    took: dict[str, list[tuple[float, ...]]] = {way: [] for way in WAYS}

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()

    for turn in range(turns + WARM):
        for way in WAYS:
            folding.on = way
            began = [now() for now in CLOCKS.values()]
            steps(each)
            folding.wait()  # what is left over counts as well
            if turn >= WARM:
                ended = [now() for now in CLOCKS.values()]
                took[way].append(tuple(b - a for a, b in zip(began, ended, strict=True)))
    base = took[WAYS[0]]
    alone = statistics.median(turn[-1] for turn in base) / each
    print(f"{name}: {alone * 1e3:.2f} ms alone")
    for way in WAYS[1:]:
        ratios = [
            [mine / other for mine, other in zip(*pair, strict=True)]
            for pair in zip(took[way], base, strict=True)
        ]
        medians = map(statistics.median, zip(*ratios, strict=True))
        said = [f"{clock} {ratio:.3f}" for clock, ratio in zip(CLOCKS, medians, strict=True)]
        print(f"  {way:8} {'  '.join(said)}")


def main() -> None:
    """Those that are named, or all."""
    torch.set_num_threads(1)
    for name in sys.argv[1:] or CASES:
        measure(name)


if __name__ == "__main__":
    main()
