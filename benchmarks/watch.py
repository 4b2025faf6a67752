"""What watching a training step costs: without, with hooks as the notes have them, with nethook.

    OMP_NUM_THREADS=1 python benchmarks/watch.py [mnist mlp gpt2 short tiny] [--profile] [--old]

With `--old` the release 0.1.0 runs beside it, from its own sources.

Every way runs in a process of its own, so that none leaves anything in the path of another. They
take turns, some steps at a time; while others have theirs a process sleeps, and that time counts as
nobody's. Two ratios are printed: of the time of the clock, which is what a user waits for and what
the bounds are about, on a machine that has nothing else to do and a core to spare for nethook's
writer; and of the time of the processor, all threads together, which is right on a busy machine,
too.

A run begins in detail: what the first steps took is printed by itself. The ratios are those of the
steps after them, in which the budget is what decides. So is what one look of the doctor takes: it
looks at a run after 20 seconds, and later ever more rarely.
"""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from timing import (
    Turn,
    a_look_of_the_doctor,
    against,
    hold_the_doctor,
    keep_freed_memory,
    typical,
)
from torch import Tensor, nn
from torch.nn import functional as F

ROOT = Path(__file__).parents[1]
WAYS = ("without", "the notes' hooks", "nethook, its budget", "nethook, no budget")
OLD = ("0.1.0, its budget", "0.1.0, no budget")
# Steps before it counts, turns, steps a turn; and the bounds of the design: with budget, without.
SIZES = {
    "mnist": (200, 8, 12, (1.03, 1.10)),
    "mlp": (1500, 30, 60, (1.06, 1.35)),
    "gpt2": (300, 8, 20, (1.03, 1.20)),
    "short": (6000, 30, 500, (1.25, None)),
    "tiny": (6000, 30, 500, (None, None)),
}


def mnist() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """The network of the notes, 64 images a batch."""
    sys.path.insert(0, str(ROOT / "examples"))
    from mnist import MnistNet

    images, labels = torch.randn(64, 1, 28, 28), torch.randint(10, (64,))
    return MnistNet(), lambda model: F.cross_entropy(model(images), labels)


def mlp() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """784-256-128-10, 128 samples a batch."""
    model = nn.Sequential(
        nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)
    )
    x, y = torch.randn(128, 784), torch.randint(10, (128,))
    return model, lambda model: F.cross_entropy(model(x), y)


def short(samples: int = 384) -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """32-48-48-10: a step of about 0.3 ms."""
    model = nn.Sequential(
        nn.Linear(32, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 10)
    )
    x, y = torch.randn(samples, 32), torch.randint(10, (samples,))
    return model, lambda model: F.cross_entropy(model(x), y)


def tiny() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """The same with 64 samples: little but the calls of torch, 0.13 ms or more of them."""
    return short(64)


def gpt2() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    """Twelve blocks, 64 wide, two sequences of 64 tokens."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        n_embd=64, n_layer=12, n_head=4, vocab_size=100, n_positions=64, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    tokens = torch.randint(100, (2, 64))
    model: nn.Module = GPT2LMHeadModel(config)  # type: ignore[no-untyped-call]
    return model, lambda model: model(tokens, labels=tokens).loss


NETWORKS = {"mnist": mnist, "mlp": mlp, "gpt2": gpt2, "short": short, "tiny": tiny}


def notes_hooks(model: nn.Module) -> None:
    """Mean, deviation, extremes and share of zeros of every layer's output, as the notes do it."""
    kept: dict[str, list[tuple[float, ...]]] = {}

    def hook_of(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                values = output.detach()
                kept.setdefault(name, []).append((
                    values.mean().item(), values.std().item(), values.min().item(),
                    values.max().item(), (values == 0).float().mean().item(),
                ))  # fmt: skip
                del kept[name][:-1000]

        return hook

    for name, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_hook(hook_of(name))


def work(name: str, way: str, pipe: Connection, profile: bool, release: str) -> None:
    """Trains as many steps as it is told to, and says what they took."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, loss_of = NETWORKS[name]()
    kind = torch.optim.SGD if name in ("short", "tiny") else torch.optim.Adam
    optimizer = kind(model.parameters(), lr=1e-3)
    folder = tempfile.TemporaryDirectory()
    watch = None
    if way == WAYS[1]:
        notes_hooks(model)
    elif way != WAYS[0]:
        if way in OLD:
            use_release(release)
        import nethook

        hold_the_doctor()
        budget = {"budget": None} if way.endswith("no budget") else {}
        watch = nethook.watch(model, optimizer, to=f"{folder.name}/run.db", **budget)  # type: ignore[arg-type]

    def steps(count: int) -> Turn:
        wall, processor = time.perf_counter(), time.process_time()
        for _ in range(count):
            optimizer.zero_grad()
            loss_of(model).backward()
            optimizer.step()
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        return wall / count, processor / count

    while True:
        asleep = time.perf_counter()
        count = pipe.recv()
        if count == 0:
            break
        if watch is not None:
            budget_of(watch).leave_out(time.perf_counter() - asleep)
        if profile and way == WAYS[3] and count < 0:
            import cProfile
            import pstats

            run = cProfile.Profile()
            run.runcall(steps, -count)
            pstats.Stats(run).sort_stats("tottime").print_stats(30)
        pipe.send(steps(abs(count)))
    if watch is None:
        pipe.send((None, 0.0))
    else:
        said = watch.overhead
        pipe.send((said, a_look_of_the_doctor(watch)))
        watch.close()


def sources_of_release() -> str:
    """The sources of 0.1.0 with their kernel, as `make golden` builds them."""
    sys.path.insert(0, str(ROOT))
    from tools.golden.sources import commit_of, sources_of

    return str(sources_of(commit_of("v0.1.0")))


def use_release(sources: str) -> None:
    """In this process nethook is 0.1.0."""
    # An editable install finds its own sources before any path.
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not type(finder).__name__.startswith("ScikitBuild")
    ]
    sys.path.insert(0, sources)


def budget_of(watch: Any) -> Any:
    """The budget of a watch, of this version or of 0.1.0."""
    session = watch._session
    return session.budget if hasattr(session, "budget") else session.schedule.budget


def measure(name: str, profile: bool, old: bool) -> None:
    """Runs all ways by turns and prints what a step takes, and the ratios."""
    warm, turns, each, bounds = SIZES[name]
    ways = WAYS + OLD if old else WAYS
    release = sources_of_release() if old else ""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for way in ways:
        ours, theirs = context.Pipe()
        context.Process(
            target=work, args=(name, way, theirs, profile, release), daemon=True
        ).start()
        pipes[way] = ours

    def ask(way: str, count: int) -> Any:
        pipes[way].send(count)
        return pipes[way].recv()

    first = {way: ask(way, -warm if profile else warm)[0] * warm for way in ways}
    took: dict[str, list[Turn]] = {way: [] for way in ways}
    for _ in range(turns):
        for way in ways:
            took[way].append(ask(way, each))
    said = {way: ask(way, 0) for way in ways}
    base = typical([wall for wall, _ in took[WAYS[0]]])
    print(f"{name}: a training step, {base * 1000:.2f} ms without")
    limits = dict(zip(WAYS[2:], bounds, strict=True))
    for way in ways:
        limit = limits.get(way)
        bound = "" if limit is None else f"  at most {limit}"
        own = "" if said[way][0] is None else f"  it says {1 + said[way][0]:.3f}"
        print(f"  {way:22} {against(took[way], took[WAYS[0]])}{bound}{own}")
    more = first[WAYS[2]] - first[WAYS[0]]
    print(f"  the first {warm} steps: {first[WAYS[0]]:.2f} s without, with nethook {more:+.2f} s")
    print(f"  a look of the doctor: {said[WAYS[2]][1]:.2f} s, on a thread of its own")


def main() -> None:
    """Those that are named, or all."""
    keep_freed_memory()
    names = [each for each in sys.argv[1:] if not each.startswith("-")] or list(SIZES)
    for name in names:
        measure(name, "--profile" in sys.argv, "--old" in sys.argv)


if __name__ == "__main__":
    main()
