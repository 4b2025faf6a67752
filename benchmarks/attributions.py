"""Integrated gradients and Grad-CAM beside captum's: time and memory at equal error.

    python benchmarks/attributions.py [--rounds N] [--json FILE]

Integrated gradients are to be within a tolerance of the sum that they must have. nethook doubles
its steps until they are, and all of that counts. captum is told how many steps to take: the
smallest power of two with which its own error (Gauss–Legendre) is within the tolerance; finding it
does not count. It runs as it does by default, all steps in one batch; so that it states its error,
as nethook always does; and with smaller batches. Grad-CAM is that of a middle layer, and its maps
must be equal bit for bit.

Time is the processor's, one thread, in turns; the quickest rounds count. Memory is what one call
needs more at its peak. Ratios are captum's by nethook's: above 1, nethook takes less.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from captum.attr import IntegratedGradients, LayerGradCam
from peers.turns import extra_memory
from timing import take_turns
from torch import nn

from nethook import interp

TOLERANCE = 1e-3
Way = Callable[[], Any]


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


def compare(title: str, ways: dict[str, Way], rounds: int) -> dict[str, Any]:
    """Prints time and memory of each way, and the ratio to the first; returns them."""
    seconds = take_turns(ways, rounds, 1)
    memory = {name: extra_memory(way) for name, way in ways.items()}
    mine = next(iter(ways))
    print(title)
    for name in ways:
        ratios = ""
        if name != mine:
            ratios = f"  time x{seconds[name] / seconds[mine]:.2f}"
            if memory[mine] >= 1:  # pages that are touched by chance are no measurement
                ratios += f", memory x{memory[name] / memory[mine]:.1f}"
        print(f"  {name:<28} {1e3 * seconds[name]:8.1f} ms {memory[name]:8.1f} MB{ratios}")
    return {"title": title, "seconds": seconds, "megabytes": memory}


def integrated(name: str, model: nn.Module, x: torch.Tensor, rounds: int) -> dict[str, Any]:
    """Integrated gradients at equal error."""
    ours = partial(
        interp.integrated_gradients, model, x, target=1, baseline=0, tol=TOLERANCE, max_steps=1024
    )
    result = ours()
    assert result.steps is not None
    steps = steps_of_captum(model, x)
    theirs = partial(
        IntegratedGradients(model).attribute, x, target=1, n_steps=steps, method="gausslegendre"
    )
    title = (
        f"integrated gradients, {name}: error at most {TOLERANCE}; nethook "
        f"{int(result.steps.min())} to {int(result.steps.max())} steps, captum {steps}"
    )
    ways: dict[str, Way] = {
        "nethook": ours,
        "captum": theirs,
        "captum, with its error": partial(theirs, return_convergence_delta=True),
        "captum, batches of 64": partial(theirs, internal_batch_size=64),
    }
    return compare(title, ways, rounds)


def maps(name: str, model: Any, x: torch.Tensor, layer: int, rounds: int) -> dict[str, Any]:
    """Grad-CAM, bit for bit."""
    ours = partial(interp.grad_cam, model, x, target=1, at=str(layer))
    theirs = partial(LayerGradCam(model, model[layer]).attribute, x, 1)
    assert torch.equal(ours().maps, theirs()[:, 0].detach())
    title = f"Grad-CAM, {name}: equal bit for bit"
    return compare(title, {"nethook": ours, "captum": theirs}, rounds)


def main() -> None:
    """Prints a table for each network."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    rounds = options.rounds
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Input Tensor 0 did not already require grad")
    tables = [
        integrated("CNN with GELU", *cnn(nn.GELU), rounds),
        integrated("CNN with ReLU", *cnn(nn.ReLU), rounds),
        integrated("MLP with ReLU", *mlp(), rounds),
        *(
            maps(f"CNN, pictures of {size} by {size}", *cnn(nn.ReLU, size), 12, 3 * rounds)
            for size in (64, 160)
        ),
    ]
    if options.json is not None:
        versions = {name: importlib.metadata.version(name) for name in ("captum", "torch")}
        figures = {"tolerance": TOLERANCE, "versions": versions, "tables": tables}
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
