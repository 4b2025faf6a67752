"""Integrated gradients and Grad-CAM beside captum's: time and memory at equal error.

    python benchmarks/attributions.py [--rounds N]

Integrated gradients are to be within a tolerance of the sum that they must have. nethook doubles
its steps until they are, and all of that counts. captum is told how many steps to take: the
smallest power of two with which its own error (Gauss–Legendre) is within the tolerance; finding it
does not count. It runs as it does by default, all steps in one batch, and with batches as large as
nethook chose. Grad-CAM is that of a middle layer, and its maps must be equal bit for bit.

Time is the processor's, one thread, in turns; the quickest rounds count. Memory is what a process
of its own needed more at its peak than for the same call on a single row, which loads the code that
both need. Ratios are captum's by nethook's: above 1, nethook takes less.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from captum.attr import IntegratedGradients, LayerGradCam
from timing import take_turns
from torch import nn

from nethook import interp

TOLERANCE = 1e-3
Way = Callable[[torch.Tensor], Any]  # given the rows that are explained


def cnn(act: type[nn.Module], size: int = 64) -> tuple[nn.Module, torch.Tensor]:
    """Five convolutions and 8 pictures."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for number, (inside, outside) in enumerate(pairwise([3, 16, 16, 32, 32, 64])):
        stride = 2 if number in (2, 4) else 1
        layers += [nn.Conv2d(inside, outside, 3, stride, 1), nn.BatchNorm2d(outside), act()]
    head = nn.Linear(64, 10)
    nn.init.normal_(head.weight, std=3.0)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)
    return model.eval(), torch.randn(8, 3, size, size)


def mlp() -> tuple[nn.Module, torch.Tensor]:
    """A table of 64 rows and 30 features, three hidden layers of 256."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inside, outside in pairwise([30, 256, 256, 256]):
        layers += [nn.Linear(inside, outside), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, 2)).eval(), torch.randn(64, 30)


def extra_memory(way: Way, x: torch.Tensor) -> float:
    """Megabytes that a call needs more at its peak than for one row, in a process of its own."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def child() -> None:
        way(x[:1])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        way(x)
        there.send((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)

    process = context.Process(target=child)
    process.start()
    megabytes: float = here.recv()
    process.join()
    return megabytes


def steps_of_captum(model: nn.Module, x: torch.Tensor) -> int:
    """The smallest power of two with which captum is within the tolerance."""
    steps = 8
    while steps < 1024:
        _, delta = IntegratedGradients(model).attribute(
            x, target=1, n_steps=steps, method="gausslegendre", internal_batch_size=256,
            return_convergence_delta=True,
        )  # fmt: skip
        if float(delta.abs().max()) <= TOLERANCE:
            break
        steps *= 2
    return steps


def compare(title: str, ways: dict[str, Way], x: torch.Tensor, rounds: int) -> None:
    """Prints time and memory of each way, and the ratio to the first."""
    seconds = take_turns({name: partial(way, x) for name, way in ways.items()}, rounds, 1)
    memory = {name: extra_memory(way, x) for name, way in ways.items()}
    mine = next(iter(ways))
    print(title)
    for name in ways:
        ratios = ""
        if name != mine:
            ratios = f"  time x{seconds[name] / seconds[mine]:.2f}"
            if memory[mine] >= 1:  # pages that are touched by chance are no measurement
                ratios += f", memory x{memory[name] / memory[mine]:.1f}"
        print(f"  {name:<28} {1e3 * seconds[name]:8.1f} ms {memory[name]:8.1f} MB{ratios}")


def integrated(name: str, model: nn.Module, x: torch.Tensor, rounds: int) -> None:
    """Integrated gradients at equal error."""
    ours = partial(
        interp.integrated_gradients, model, target=1, baseline=0, tol=TOLERANCE, max_steps=1024
    )
    result = ours(x)
    assert result.steps is not None
    steps = steps_of_captum(model, x)
    theirs = partial(
        IntegratedGradients(model).attribute, target=1, n_steps=steps, method="gausslegendre"
    )
    title = (
        f"integrated gradients, {name}: error at most {TOLERANCE}; nethook "
        f"{int(result.steps.min())} to {int(result.steps.max())} steps, captum {steps}"
    )
    ways: dict[str, Way] = {
        "nethook": ours,
        "captum": theirs,
        "captum, batches of 64": partial(theirs, internal_batch_size=64),
    }
    compare(title, ways, x, rounds)


def maps(name: str, model: Any, x: torch.Tensor, layer: int, rounds: int) -> None:
    """Grad-CAM, bit for bit."""
    ours = partial(interp.grad_cam, model, target=1, at=str(layer))
    theirs = partial(LayerGradCam(model, model[layer]).attribute, target=1)
    assert torch.equal(ours(x).maps, theirs(x)[:, 0].detach())
    ways: dict[str, Way] = {"nethook": ours, "captum": theirs}
    compare(f"Grad-CAM, {name}: equal bit for bit", ways, x, rounds)


def main() -> None:
    """Prints a table for each network."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Input Tensor 0 did not already require grad")
    integrated("CNN with GELU", *cnn(nn.GELU), rounds)
    integrated("CNN with ReLU", *cnn(nn.ReLU), rounds)
    integrated("MLP with ReLU", *mlp(), rounds)
    for size in (64, 160):
        model, x = cnn(nn.ReLU, size)
        maps(f"CNN, pictures of {size} by {size}", model, x, 12, 3 * rounds)


if __name__ == "__main__":
    main()
