"""What a tracker costs the training thread: the same watched training, with and without each sink.

    .venv/bin/python benchmarks/sinks.py                       tensorboard, and one that only counts
    .venv-trackers/bin/python benchmarks/sinks.py --all        every tracker that is installed

All trackers write to a scratch folder, without a network. Every training is watched; the ratio is
the median time of a step with the sink by the median without one, in turns within one process.
Times are those of the training thread: wall time, so that waiting for the interpreter counts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

import nethook
from nethook.sinks.known import TRACKERS, check_name

STEPS = 300
WARM = 60
ROUNDS = 3
_OFFLINE: dict[str, dict[str, Any]] = {
    "clearml": {"offline": True},
    "swanlab": {"mode": "offline"},
}


class Counted(nethook.sinks.Sink):
    """Costs nothing by itself: what is left is nethook's own part."""

    name = "counted"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.points = 0

    def scalars(self, step: int, values: Any) -> None:
        """One more."""
        self.points += 1


def train(path: Path, sinks: list[nethook.sinks.Sink]) -> float:
    """The median time of a step, in milliseconds."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(12)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(128, 256)
    times = []
    with nethook.watch(model, optimizer, path, sinks=sinks) as watch:
        watch.be_silent()
        for step in range(STEPS):
            began = time.perf_counter()
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x).backward()
            optimizer.step()
            if step >= WARM:
                times.append(time.perf_counter() - began)
    if watch.sink_problems:
        raise SystemExit("; ".join(watch.sink_problems))
    return 1000 * statistics.median(times)


def make(name: str, detail: Any) -> nethook.sinks.Sink:
    """A sink that stays on this machine."""
    if name == "counted":
        return Counted(detail=detail)
    return nethook.sinks.sink(name, detail=detail, **_OFFLINE.get(name, {}))


def main() -> None:
    """Print a table."""
    reader = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    reader.add_argument("--all", action="store_true", help="every tracker that is installed")
    reader.add_argument("--detail", choices=("few", "all"), default="few")
    asked = reader.parse_args()
    names = ["counted", "tensorboard"]
    if asked.all:
        names += [name for name in TRACKERS if name != "tensorboard" and _is_there(name)]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "TRACKIO_DIR": scratch}
        os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{scratch}/mlflow.db"
        print(f"{'sink':<14}{'without':>10}{'with':>10}{'ratio':>8}   ms per step, {ROUNDS} rounds")
        for name in names:
            pairs = []
            for turn in range(ROUNDS):
                plain = train(Path(scratch) / f"{name}-{turn}-plain.db", [])
                sent = train(Path(scratch) / f"{name}-{turn}.db", [make(name, asked.detail)])
                pairs.append((plain, sent, sent / plain))
            plain, sent, ratio = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"{name:<14}{plain:>10.3f}{sent:>10.3f}{ratio:>8.3f}", flush=True)


def _is_there(name: str) -> bool:
    try:
        check_name(name)
    except nethook.errors.MissingLibraryError:
        return False
    return True


if __name__ == "__main__":
    main()
