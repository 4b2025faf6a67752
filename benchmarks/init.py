"""How deep plain networks start and train, by five ways to initialise them, side by side.

    python benchmarks/init.py                   # all of it: some ten minutes on two cores
    python benchmarks/init.py --quick           # a part of it: about a minute
    python benchmarks/init.py --plot init.html  # and a figure (.png and .svg need kaleido)

Multi-layer perceptrons of width 64 on the digits of scikit-learn, without norms and without skips:
the hardest case, and the one in which only the start matters. For each activation and depth all
ways and seeds train at once, as one stack of networks, on the same batches with the same optimizer
(Adam, learning rate 1e-3, 200 steps of 64 samples).

- `torch`: what `nn.Linear` does by itself.
- `he`: normal, gain by `torch.nn.init.calculate_gain` where torch has one and √2 where it has none.
- `glorot`: uniform, the same gains, and 1 where torch has none.
- `lsuv`: as published (Mishkin and Matas, 2016): orthonormal, then layer after layer divided by the
  standard deviation of its output until its variance is within 0.1 of 1, at most ten times.
- `nethook`: `plan`, `apply_`, `calibrate_`.

Reported before training: the root mean square at the last layer, and the gradient at the first
layer over that at the last, as geometric means over the seeds. After it: the loss over all digits,
mean and standard deviation over the seeds, and how many of them trained (loss below 1; guessing
gives 2.30).
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import nethook

WIDTH, BATCH, CLASSES, RATE, TRAINED = 64, 64, 10, 1e-3, 1.0
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
    "selu": F.selu,
    "mish": F.mish,
}


class Plain(nn.Module):
    """Linear layers with an activation between them, and nothing else."""

    def __init__(self, activation: str, depth: int) -> None:
        super().__init__()
        widths = [64, *[WIDTH] * (depth - 1), CLASSES]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(widths))
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        for layer in self.layers[:-1]:
            x = ACTIVATIONS[self.activation](layer(x))
        logits: torch.Tensor = self.layers[-1](x)
        return logits


# -- ways to start ---------------------------------------------------------------------------


def by_torch(model: Plain, x: torch.Tensor) -> None:
    """As nn.Linear does it."""


def by_he(model: Plain, _: torch.Tensor) -> None:
    """Normal, fan in."""
    gain = torch_gain(model.activation, math.sqrt(2))
    for layer in linears(model):
        nn.init.normal_(layer.weight, 0.0, gain / math.sqrt(layer.in_features))
        nn.init.zeros_(layer.bias)


def by_glorot(model: Plain, _: torch.Tensor) -> None:
    """Uniform, mean of both fans."""
    gain = torch_gain(model.activation, 1.0)
    for layer in linears(model):
        nn.init.xavier_uniform_(layer.weight, gain)
        nn.init.zeros_(layer.bias)


def by_lsuv(model: Plain, x: torch.Tensor) -> None:
    """Layer-sequential unit variance, as published."""
    for layer in linears(model):
        nn.init.orthogonal_(layer.weight)
        nn.init.zeros_(layer.bias)
    with torch.no_grad():
        for layer in linears(model):
            for _ in range(10):
                output = layer(x)
                variance = float(output.var())
                if abs(variance - 1) < 0.1:
                    break
                layer.weight.div_(math.sqrt(variance))
            # What the next layer sees; in the paper, the next forward of the whole network.
            x = ACTIVATIONS[model.activation](layer(x))


def by_nethook(model: Plain, x: torch.Tensor) -> None:
    """Plan, apply, calibrate."""
    plan = nethook.init.plan(model, x)
    nethook.init.apply_(model, plan)
    nethook.init.calibrate_(model, x, plan=plan)


WAYS: dict[str, Callable[[Plain, torch.Tensor], None]] = {
    "torch": by_torch,
    "he": by_he,
    "glorot": by_glorot,
    "lsuv": by_lsuv,
    "nethook": by_nethook,
}


def torch_gain(activation: Any, otherwise: float) -> float:
    """What torch recommends, if it does."""
    try:
        return float(nn.init.calculate_gain(activation))
    except ValueError:
        return otherwise


def linears(model: Plain) -> list[nn.Linear]:
    """The layers, in order."""
    return [layer for layer in model.layers if isinstance(layer, nn.Linear)]


# -- one activation at one depth -------------------------------------------------------------


@dataclass
class Result:
    """One way at one depth, over all seeds."""

    activation: str
    depth: int
    way: str
    scale: float
    gradient: float
    losses: list[float]

    @property
    def trained(self) -> int:
        """How many seeds came below the line."""
        return sum(loss < TRAINED for loss in self.losses)


class Stack:
    """Many networks of one shape as one: every weight has a first dimension more."""

    def __init__(self, models: list[Plain]) -> None:
        layers = zip(*(linears(model) for model in models), strict=True)
        self.weights, self.biases = [], []
        for same in layers:
            weight = torch.stack([layer.weight.detach() for layer in same])
            bias = torch.stack([layer.bias.detach() for layer in same]).unsqueeze(1)
            self.weights.append(weight.transpose(1, 2).contiguous().requires_grad_())
            self.biases.append(bias.requires_grad_())
        self.activation = ACTIVATIONS[models[0].activation]
        self.size = len(models)

    def __call__(self, x: torch.Tensor) -> list[torch.Tensor]:
        """The outputs of all layers, each (networks, samples, width)."""
        value = x.expand(self.size, *x.shape)
        outputs: list[torch.Tensor] = []
        for weight, bias in zip(self.weights, self.biases, strict=True):
            if outputs:
                value = self.activation(outputs[-1])
            outputs.append(torch.baddbmm(bias, value, weight))
        return outputs

    def loss(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss of each network."""
        each = F.cross_entropy(logits.flatten(0, 1), y.repeat(self.size), reduction="none")
        return each.reshape(self.size, -1).mean(1)


def measure(activation: str, depth: int, seeds: int, steps: int) -> list[Result]:
    """All ways and seeds at once."""
    torch.set_num_threads(1)
    x, y = digits()
    models = []
    for way in WAYS.values():
        for seed in range(seeds):
            torch.manual_seed(seed)
            model = Plain(activation, depth)
            way(model, x[:256])
            models.append(model)
    stack = Stack(models)
    outputs = stack(x[:256])
    ends = torch.autograd.grad(stack.loss(outputs[-1], y[:256]).sum(), [outputs[0], outputs[-1]])
    first, last = (each.square().mean((1, 2)).sqrt() for each in ends)
    scale = outputs[-1].detach().square().mean((1, 2)).sqrt()
    train(stack, x, y, steps)
    with torch.no_grad():
        losses = stack.loss(stack(x)[-1], y).tolist()
    results = []
    for at, name in enumerate(WAYS):
        own = slice(at * seeds, (at + 1) * seeds)
        results.append(
            Result(
                activation, depth, name, geometric(scale[own].tolist()),
                geometric((first[own] / last[own]).tolist()), losses[own],
            )
        )  # fmt: skip
    return results


def train(stack: Stack, x: torch.Tensor, y: torch.Tensor, steps: int) -> None:
    """The same batches for all networks; what is lost by one does not reach the others."""
    optimizer = torch.optim.Adam([*stack.weights, *stack.biases], lr=RATE, fused=True)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        some = torch.randint(0, len(x), (BATCH,), generator=generator)
        loss = stack.loss(stack(x[some])[-1], y[some]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """1,797 images of 8 × 8, shifted and scaled as a whole to mean 0 and variance 1."""
    from sklearn.datasets import load_digits

    data = load_digits()
    x = torch.tensor(data.data, dtype=torch.float32)
    return (x - x.mean()) / x.std(), torch.tensor(data.target)


def geometric(values: list[float]) -> float:
    """The geometric mean; 0 or infinity where one of them is."""
    if any(math.isnan(value) for value in values):
        return math.nan
    if any(value == 0 for value in values):
        return 0.0
    return math.exp(statistics.mean(math.log(value) for value in values))


# -- showing ---------------------------------------------------------------------------------


def show(results: list[Result]) -> None:
    """A line a way, and at the end who trained."""
    head = f"{'':6}{'depth':>6}  {'way':8}{'last scale':>12}{'grad ratio':>12}{'loss':>17}  trained"
    print(head)
    for each in results:
        mean = statistics.mean(each.losses)
        spread = statistics.pstdev(each.losses)
        print(
            f"{each.activation:6}{each.depth:6}  {each.way:8}{each.scale:12.3g}"
            f"{each.gradient:12.3g}{mean:10.3f} ± {spread:.3f}  {each.trained}/{len(each.losses)}"
        )
    print("\nnetworks that trained, by way and depth:")
    depths = sorted({each.depth for each in results})
    for way in WAYS:
        cells = []
        for depth in depths:
            own = [each for each in results if each.way == way and each.depth == depth]
            done, all_ = sum(e.trained for e in own), sum(len(e.losses) for e in own)
            cells.append(f"depth {depth}: {done}/{all_}")
        print(f"  {way:8} {'   '.join(cells)}")


def plot(results: list[Result], path: str) -> None:
    """Loss over depth, a panel an activation, a line a way, a bar over the seeds."""
    from plotly import graph_objects, subplots

    names = list(dict.fromkeys(each.activation for each in results))
    colours = dict(zip(WAYS, ["#8a8a8a", "#c2571a", "#b08d00", "#4d7d2f", "#1f5fa8"], strict=True))
    figure = subplots.make_subplots(rows=2, cols=3, subplot_titles=names, shared_yaxes=True)
    for at, name in enumerate(names):
        for way in WAYS:
            own = [each for each in results if each.activation == name and each.way == way]
            line = graph_objects.Scatter(
                x=[each.depth for each in own],
                y=[statistics.mean(each.losses) for each in own],
                error_y={"array": [statistics.pstdev(each.losses) for each in own]},
                name=way, legendgroup=way, showlegend=at == 0, line={"color": colours[way]},
            )  # fmt: skip
            figure.add_trace(line, row=at // 3 + 1, col=at % 3 + 1)
    figure.update_yaxes(range=[0, 2.6])
    figure.update_layout(
        title="Loss after 200 steps over depth", template="plotly_white", width=900, height=560
    )
    figure.write_html(path) if path.endswith(".html") else figure.write_image(path)


def main() -> None:
    """Runs, shows, plots."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="depths 10 and 50, 2 seeds")
    parser.add_argument("--depths", type=int, nargs="+", help="other depths")
    parser.add_argument("--plot", metavar="FILE", help="write a figure: .html, .png or .svg")
    parser.add_argument("--json", metavar="FILE", help="write the numbers")
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    given = parser.parse_args()
    depths, seeds, steps = ([10, 50], 2, 200) if given.quick else ([10, 30, 50, 100], 5, 200)
    depths = sorted(given.depths or depths)
    jobs = [(name, depth, seeds, steps) for depth in reversed(depths) for name in ACTIVATIONS]
    with ProcessPoolExecutor(given.jobs) as pool:
        futures = [pool.submit(measure, *job) for job in jobs]
        results = []
        for job, future in zip(jobs, futures, strict=True):
            results += future.result()
            print(*job[:2], "done", file=sys.stderr)
    order = list(ACTIVATIONS)
    results.sort(key=lambda each: (order.index(each.activation), each.depth))
    show(results)
    if given.json:
        from pathlib import Path

        Path(given.json).write_text(json.dumps([asdict(each) for each in results], indent=1))
    if given.plot:
        plot(results, given.plot)


if __name__ == "__main__":
    main()
