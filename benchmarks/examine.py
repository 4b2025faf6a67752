"""What examining a training step on a copy costs: time and memory, beside that of one step.

    OMP_NUM_THREADS=1 python benchmarks/examine.py [mnist] [gpt2] [resnet]

For each network, in a process of its own: one training step, one run of the step on a copy, keeping
the step while it happens, and all experiments together, in seconds of the processor; and the most
memory that each adds to the process.
"""

from __future__ import annotations

import multiprocessing
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from watch import gpt2, mnist

STEPS = 12


def resnet() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """A ResNet-18 of transformers, 16 images of 64x64."""
    from transformers import ResNetConfig, ResNetForImageClassification

    configure: Any = ResNetConfig
    make: Any = ResNetForImageClassification
    sizes = {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]}
    model = make(configure(**sizes, layer_type="basic", num_labels=10))
    images, labels = torch.randn(16, 3, 64, 64), torch.randint(10, (16,))
    return model, lambda model: F.cross_entropy(model(images).logits, labels)


NETWORKS = {"mnist": mnist, "gpt2": gpt2, "resnet": resnet}


class Peak:
    """The most memory that a block adds to the process, asked for every millisecond."""

    def __enter__(self) -> Peak:
        self._before = self.most = _resident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.001):
            self.most = max(self.most, _resident())

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.most = max(self.most, _resident())

    @property
    def megabytes(self) -> float:
        """That it has added."""
        return (self.most - self._before) / 2**20


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def timed(run: Callable[[], Any], times: int) -> float:
    """Seconds of this thread's work, the median."""
    took = []
    for _ in range(times):
        began = time.thread_time()
        run()
        took.append(time.thread_time() - began)
    return median(took)


def measure(name: str) -> None:
    """Prints the numbers of one network."""
    from nethook.examining.examine import every_experiment, examine
    from nethook.examining.keeping import KeptCall
    from nethook.examining.limits import Deadline
    from nethook.examining.rehearsal import Material, Rehearsal

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, loss_of = NETWORKS[name]()
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model).backward()
        optimizer.step()

    for _ in range(3):
        step()
    one = timed(step, STEPS)
    with Peak() as of_step:
        step()
    made: list[Material] = []

    def keep() -> None:
        kept: list[KeptCall] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            kept.append(KeptCall(model, args, kwargs))
            output = model(*args, **kwargs)
            kept[0].returned(output)
            return output

        loss = loss_of(cast(nn.Module, call))
        made.append(kept[0].backward([loss]))
        kept[0].drop()

    forward = timed(lambda: loss_of(model), STEPS)
    kept_too = timed(keep, STEPS)
    rehearsal = Rehearsal(made[-1])
    made.clear()
    rehearsal.check()
    with Peak() as of_run:
        rehearsal.run(grad=True)
    run = timed(rehearsal.run, STEPS)
    with Peak() as of_all:
        examined = examine(rehearsal, deadline=Deadline(2.0))
    size = sum(p.numel() * p.element_size() for p in model.parameters()) / 2**20
    state = "replays" if rehearsal.replayable else f"does not replay: {rehearsal.why_not}"
    print(f"{name}: one step {1e3 * one:.1f} ms, {of_step.megabytes:.0f} MB more at its peak;")
    print(f"  weights {size:.1f} MB; the step {state}")
    print(f"  keeping a step   {(kept_too - forward) / one:6.2f} of a step")
    print(f"  one run aside    {run / one:6.2f} of a step, {of_run.megabytes:.0f} MB with a graph")
    print(
        f"  all experiments  {examined.seconds / one:6.2f} of a step ({len(every_experiment())} of "
        f"them, {examined.seconds:.2f} s, {len(examined.late)} late), {of_all.megabytes:.0f} MB"
    )


def main() -> None:
    """Measures what was asked for, or all."""
    names = [name for name in sys.argv[1:] if name in NETWORKS] or list(NETWORKS)
    context = multiprocessing.get_context("spawn")
    for name in names:
        process = context.Process(target=measure, args=(name,))
        process.start()
        process.join()


if __name__ == "__main__":
    main()
