"""The programs that wrote tests/old_files/v0.1: run with the sources of 0.1, by `make.py` beside.

    python -S cases.py NAME            writes the files of one case into this folder

Each training runs twice, with the same weights and data: once without nethook, where plain hooks of
torch take down what a run file must say (`NAME.expected.json`), and once under the watch of 0.1.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import neutral
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import nethook
from nethook import edits

assert neutral  # importing it is enough


CRASHED = """\
import neutral
import sys
from nethook.cli.entry import main
sys.argv = ["nethook", "run", "--quiet", "--budget", "none", "--to", "crashed.db", "crash.py"]
main()
"""


class ByHand:
    """What a run file must say of a training, taken down by hooks of torch.

    Attributes:
        series: "ADDRESS QUANTITY PHASE" -> for each step count, zeros, mean, min and max.
        losses: name -> the value in each step.
        logged: name -> step and value of each.
    """

    def __init__(self, **models: nn.Module) -> None:
        self.series: dict[str, list[list[float]]] = {}
        self.losses: dict[str, list[float]] = {}
        self.logged: dict[str, list[tuple[int, float]]] = {}
        self.step = 0
        for name, model in models.items():
            prefix = f"{name}." if len(models) > 1 else ""
            for address, module in model.named_modules():
                if not list(module.children()):
                    module.register_forward_hook(self._outputs(prefix + address))

    def follow(self, optimizer: torch.optim.Optimizer, **parameters: nn.Parameter) -> None:
        """Take down parameters, their gradients and updates; `_` in a name stands for a dot."""
        before = {}

        def begin(*_: object) -> None:
            for name, parameter in parameters.items():
                address = name.replace("_", ".")
                self._note(f"{address} params train", parameter)
                self._note(f"{address} param_grads train", parameter.grad)
                before[address] = parameter.detach().clone()

        def end(*_: object) -> None:
            for name, parameter in parameters.items():
                address = name.replace("_", ".")
                self._note(f"{address} updates train", parameter.detach() - before[address])
            self.step += 1

        optimizer.register_step_pre_hook(begin)
        optimizer.register_step_post_hook(end)

    def log(self, **scalars: float) -> None:
        """Take down what a script logs."""
        for name, value in scalars.items():
            self.logged.setdefault(name, []).append((self.step, value))

    def lost(self, name: str, loss: torch.Tensor) -> None:
        """Take down a loss."""
        self.losses.setdefault(name, []).append(loss.item())

    def to_dict(self) -> dict[str, Any]:
        """All of it."""
        return {"losses": self.losses, "series": self.series, "logged": self.logged}

    def _outputs(self, address: str) -> Callable[..., None]:
        def note(module: nn.Module, args: object, output: torch.Tensor) -> None:
            phase = "train" if torch.is_grad_enabled() else "eval"
            self._note(f"{address} outputs {phase}", output)
            if output.requires_grad:
                output.register_hook(lambda grad: self._note(f"{address} grads train", grad))

        return note

    def _note(self, name: str, tensor: torch.Tensor | None) -> None:
        if tensor is None:
            return
        values = tensor.detach().double().flatten()
        finite = values[values.isfinite()]
        moments = [finite.mean(), finite.min(), finite.max()] if len(finite) else []
        numbers = [len(values), int((values == 0).sum()), *(float(f"{m:.12g}") for m in moments)]
        self.series.setdefault(name, []).append(numbers)


class Unheard:
    """In the place of `ByHand` in the second training."""

    def lost(self, name: str, loss: torch.Tensor) -> None:
        """Not needed."""


def wrote(name: str, **expected: object) -> None:
    """Write what the run must say, with what 0.1 says of it."""
    if "codes" not in expected:
        expected["codes"] = [finding.code for finding in nethook.diagnose(f"{name}.db")]
    Path(f"{name}.expected.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


Train = Callable[[nn.Module, torch.optim.Optimizer, Any, Callable[..., None]], None]


def twice(
    name: str,
    build: Callable[[], nn.Module],
    train: Train,
    rate: float = 0.1,
    **options: Any,
) -> None:
    """Train by hand and under a watch; both files."""
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.5)
    by_hand = ByHand(model=model)
    first, weight = next(iter(model.named_parameters()))
    by_hand.follow(optimizer, **{first.replace(".", "_"): weight})
    train(model, optimizer, by_hand, by_hand.log)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.5)
    with nethook.watch(model, optimizer, to=f"{name}.db", budget=None, **options) as watch:
        watch.be_silent()
        train(model, optimizer, Unheard(), watch.log)
    wrote(name, **by_hand.to_dict())


def healthy() -> None:
    """A classification that learns, with an evaluation every eight steps and a logged number."""
    data = models.labelled(96, seed=1)
    held_out = models.labelled(24, seed=2)

    def train(model: Any, optimizer: Any, by_hand: Any, log: Any) -> None:
        for step in range(24):
            rows = slice(step % 6 * 16, step % 6 * 16 + 16)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(data[0][rows]), data[1][rows])
            loss.backward()
            optimizer.step()
            by_hand.lost("train", loss)
            if step % 8 == 7:
                model.eval()
                with torch.no_grad():
                    scores = model(held_out[0])
                    by_hand.lost("eval", nn.functional.cross_entropy(scores, held_out[1]))
                log(val_accuracy=(scores.argmax(1) == held_out[1]).float().mean().item())
                model.train()

    twice("healthy", models.classifier, train, rate=0.25, snapshots={"0": 2})


def dead() -> None:
    """A regression behind dead units."""

    def train(model: Any, optimizer: Any, by_hand: Any, log: Any) -> None:
        for step in range(32):
            x = models.numbers(16, 4, seed=step)
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
            by_hand.lost("train", loss)

    twice("dead", models.dead, train)


def nan() -> None:
    """A logarithm of a negative number at step 6, and the file of its first NaN."""

    def train(model: Any, optimizer: Any, by_hand: Any, log: Any) -> None:
        for step in range(8):
            x = models.numbers(8, 4, seed=step).abs()
            if step == 6:
                x[3] = -8.0
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            by_hand.lost("train", loss)

    torch.manual_seed(0)
    twice("nan", models.Logarithm, train, rate=0.01)


def gan() -> None:
    """Two models and two optimizers."""

    def build() -> tuple[Any, ...]:
        networks = models.generator(), models.discriminator()
        return *networks, *(torch.optim.Adam(each.parameters(), 0.01) for each in networks)

    def train(G: Any, D: Any, opt_g: Any, opt_d: Any, by_hand: Any) -> None:
        bce = nn.functional.binary_cross_entropy_with_logits
        ones, zeros = torch.ones(8, 1), torch.zeros(8, 1)
        for step in range(8):
            real = models.numbers(8, 2, seed=100 + step) + 1
            opt_d.zero_grad()
            fake = G(models.numbers(8, 2, seed=step))
            loss_d = bce(D(real), ones) + bce(D(fake.detach()), zeros)
            loss_d.backward()
            opt_d.step()
            opt_g.zero_grad()
            loss_g = bce(D(fake), ones)
            loss_g.backward()
            opt_g.step()
            by_hand.lost("D", loss_d)
            by_hand.lost("G", loss_g)

    made = build()
    by_hand = ByHand()
    train(*made, by_hand)
    G, D, opt_g, opt_d = build()
    watched = {"G": G, "D": D}
    with nethook.watch(watched, [opt_g, opt_d], to="gan.db", budget=None) as watch:
        watch.be_silent()
        train(G, D, opt_g, opt_d, Unheard())
    wrote("gan", **by_hand.to_dict())


def ranks() -> None:
    """Two processes, each with half of every batch."""
    store = Path("store").resolve()
    mp.spawn(_rank, args=(str(store),), nprocs=2)
    store.unlink(missing_ok=True)
    by_rank = [json.loads(Path(f"ranks.{rank}").read_text()) for rank in range(2)]
    for rank in range(2):
        Path(f"ranks.{rank}").unlink()
    wrote("ranks", ranks=by_rank)


def _rank(rank: int, store: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    sys.argv = ["cases.py"]

    def train(model: Any, optimizer: Any, by_hand: Any) -> None:
        for step in range(10):
            x, y = models.labelled(8, seed=2 * step + rank)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            by_hand.lost("train", loss)

    bare = models.classifier()
    model = DistributedDataParallel(bare)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    by_hand = ByHand(model=bare)
    by_hand.follow(optimizer, **{"0_weight": bare[0].weight})
    train(model, optimizer, by_hand)
    Path(f"ranks.{rank}").write_text(json.dumps(by_hand.to_dict()))
    model = DistributedDataParallel(models.classifier())
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with nethook.watch(model, optimizer, to="ranks.db", budget=None) as watch:
        watch.be_silent()
        train(model, optimizer, Unheard())
    dist.barrier()
    dist.destroy_process_group()


def killed() -> None:
    """A run whose process was killed: what it had written is in the -wal file."""
    done = subprocess.run([sys.executable, "-S", "cases.py", "killing"], check=False)
    assert done.returncode == -signal.SIGKILL
    by_hand = Path("by_hand.json")
    with tempfile.TemporaryDirectory() as folder:  # to open a run may change it
        for path in Path().glob("killed.db*"):
            shutil.copy(path, folder)
        codes = [finding.code for finding in nethook.diagnose(Path(folder) / "killed.db")]
    wrote("killed", codes=codes, **json.loads(by_hand.read_text()))
    by_hand.unlink()


def killing() -> None:
    """What is killed."""

    def train(model: Any, optimizer: Any, by_hand: Any, log: Any) -> None:
        for step in range(12):
            x, y = models.labelled(16, seed=step)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            by_hand.lost("train", loss)
        if isinstance(by_hand, ByHand):
            Path("by_hand.json").write_text(json.dumps(by_hand.to_dict()))
        else:
            time.sleep(3)  # it writes once per second
            os.kill(os.getpid(), signal.SIGKILL)

    twice("killed", models.classifier, train)


def crashed() -> None:
    """A script that raises, under `nethook run`."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", CRASHED], check=False, stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 1
    printed = done.stdout.splitlines()  # the script alone: nethook prints to stderr
    wrote("crashed", losses={"train": [float(line) for line in printed]})


def recipe() -> None:
    """Every edit that 0.1 can save, and every form that an entry can have."""
    line, matrix = models.numbers(4, seed=7), models.numbers(4, 4, seed=8)
    edits.save(
        "recipe.json",
        outputs={
            "layers.0": edits.scale(0.5),
            "layers.1": [edits.add(line), edits.clamp(min=-1.0, max=0.75)],
            "layers.2": edits.clip_norm(1.5),
            "layers.3": edits.noise(0.1, seed=3),
            "layers.4": edits.replace(line),
            "layers.5": edits.patch(matrix, index=(slice(None), 1)),
            "layers.6": edits.mask(line > 0),
            "layers.7": edits.steer(line, -2.0),
            "layers.8": edits.project_out(line),
            "layers.9": edits.zero_units([0, 2]),
            "layers.10": edits.keep_units([1], dim=-1),
            "layers.11": edits.zero(),
            "lstm": {
                "[0]": edits.scale(3.0, calls=slice(1, None)),
                "[1][0]": edits.add(1.0, calls=0),
            },
        },
        inputs={"layers.0": edits.add(0.25)},
        params={"layers.0.weight": edits.add_low_rank(line, line.flip(0))},
        param_grads={"layers.*.bias": edits.clip_norm(0.5, 2.0, joint=True)},
    )  # fmt: skip


def features() -> None:
    """Features of a data set: one extraction that has ended, and one that was interrupted."""
    for folder, stop in (("features", None), ("unfinished", 22)):
        try:
            nethook.extract(
                models.network(), models.pictures(stop), at=["0", "3"], to=folder,
                pool="mean", shard_mb=0.0002, progress=False,
            )  # fmt: skip
        except KeyboardInterrupt:
            assert stop is not None


def plan() -> None:
    """A plan of initialization."""
    made = nethook.init.plan(models.network(), models.Pictures().x)
    Path("plan.json").write_text(made.to_json() + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
