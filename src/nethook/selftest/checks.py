"""What the self-test asks. Each check answers with a sentence, or raises what went wrong."""

from __future__ import annotations

import statistics
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from nethook.selftest.training import network, train

STEPS: Final = 60
BUDGET: Final = 0.03
BUDGET_STEPS, BUDGET_TURNS, BUDGET_WIDTH = 100, 3, 256


class NotAskedError(Exception):
    """A check that says nothing here, with the reason."""


@dataclass(frozen=True)
class Check:
    """A question: its name, and what answers it for a device."""

    name: str
    ask: Callable[[torch.device], tuple[str, dict[str, Any]]]


def kernel(_: torch.device) -> tuple[str, dict[str, Any]]:
    """The compiled part is there, and loads."""
    from nethook.stats.native.kernel import functions

    if functions is None:
        raise NotAskedError("not installed: summaries on the CPU are slower, and the same")
    chosen = functions.instruction_set()
    return f"loads, for {chosen}", {"instruction_set": chosen}


def private_names(_: torch.device) -> tuple[str, dict[str, Any]]:
    """What nethook uses of torch beyond its documented interface still works."""
    from nethook.hooks.canaries.report import failing
    from nethook.private_names import NAMES

    changed = [name.path for name in failing()]
    if changed:
        raise AssertionError(f"changed in this torch: {', '.join(changed)}")
    return f"all {len(NAMES)} work", {"names": len(NAMES)}


def values(device: torch.device) -> tuple[str, dict[str, Any]]:
    """Traces and edits give what the layers themselves give."""
    import nethook
    from nethook import edits

    model = network(device).eval()
    images = torch.randn(4, 1, 16, 16, device=device)
    inside = model[:6](images).detach()  # the layers up to it, called without nethook
    expected = model(images)
    with nethook.trace(model, "5", grads=True) as tape:
        out = model(images)
        out.sum().backward()
    _same(tape["5"].output, inside, "a traced output")
    _same(out, expected, "the output of a traced model")
    if tape["5"].grad is None:
        raise AssertionError("no gradient was traced")
    with nethook.edit(model, outputs={"9": edits.scale(0.0)}):
        _same(model(images), torch.zeros_like(expected), "an edited output")
    _same(model(images), expected, "the output after an edit")
    left = nethook.audit(model)
    if len(left):
        raise AssertionError(f"hooks were left behind: {left}")
    return "traces and edits give what the layers themselves give", {}


def bits(device: torch.device) -> tuple[str, dict[str, Any]]:
    """A watched training gives the same as one that is not, bit for bit."""
    alone, again = train(device, STEPS), train(device, STEPS)
    if not alone.equals(again):
        raise NotAskedError("this device gives other bits each time, without nethook, too")
    with _folder() as folder:
        watched = train(device, STEPS, _watching(folder))
    if not watched.equals(alone):
        raise AssertionError("losses, weights or random numbers differ where nethook watches")
    return f"{STEPS} watched steps are bit-identical", {"steps": STEPS}


def verdict(device: torch.device) -> tuple[str, dict[str, Any]]:
    """A run is written, read and diagnosed."""
    import nethook

    with _folder() as folder:
        train(device, STEPS, _watching(folder))
        with nethook.open_run(folder / "run.db") as run:
            series, steps = len(run.catalogue), run.ranks[0].last_step + 1
            mean = run.series("5", "outputs")["mean"]
        findings = nethook.diagnose(folder / "run.db")
    if steps != STEPS or not len(mean):
        raise AssertionError(
            f"{steps} of {STEPS} steps were recorded, {len(mean)} windows of a layer"
        )
    errors = [finding.code for finding in findings if finding.severity == "error"]
    if errors:
        raise AssertionError(f"a sound training was called ill: {', '.join(errors)}")
    return f"{series} series of {steps} steps, no error found", {"series": series}


def compiled(device: torch.device) -> tuple[str, dict[str, Any]]:
    """A compiled model stays in one graph, and computes the same."""
    try:
        alone = train(device, 12, forward=_compile)
    except Exception as error:
        raise NotAskedError(f"torch.compile does not work here: {_line(error)}") from None
    with _folder() as folder:
        watched = train(device, 12, _watching(folder), forward=_compile)
    gap = float((watched.losses - alone.losses).abs().max())
    # The watched graph is another one, and may add in another order.
    if not gap <= 1e-4:
        raise AssertionError(f"losses of the compiled model differ by {gap:.2g}")
    return "one graph, and the same losses", {"largest_difference": gap}


def waits(device: torch.device) -> tuple[str, dict[str, Any]]:
    """Watching does not make the program wait for the device, step by step."""
    if device.type != "cuda":
        raise NotAskedError("only CUDA counts them")
    with _folder() as folder:
        alone, watched = _waits(device, None), _waits(device, _watching(folder))
    more = (watched - alone) / STEPS
    if more > 1:
        raise AssertionError(f"{more:.1f} more waits per step with nethook")
    return f"{more:.2f} more waits per step with nethook", {"per_step": more}


def budget(device: torch.device) -> tuple[str, dict[str, Any]]:
    """What watching costs per step, measured beside the same training without it."""
    ratios, plain = [], []
    for _ in range(BUDGET_TURNS):
        alone = train(device, BUDGET_STEPS, width=BUDGET_WIDTH)
        with _folder() as folder:
            watched = train(device, BUDGET_STEPS, _watching(folder), width=BUDGET_WIDTH)
        plain.append(alone.seconds)
        ratios.append(watched.seconds / alone.seconds)
    ratio, step = statistics.median(ratios), statistics.median(plain)
    numbers = {"ratio": ratio, "step_seconds": step, "turns": ratios}
    said = f"a step of {1000 * step:.1f} ms took {ratio:.2f} times as long"
    return f"{said} (the first {BUDGET_STEPS} steps, which cost most)", numbers


CHECKS: Final = (
    Check("compiled kernel", kernel),
    Check("private names of torch", private_names),
    Check("values", values),
    Check("bit-identity", bits),
    Check("run and verdict", verdict),
    Check("torch.compile", compiled),
    Check("waits for the device", waits),
    Check("cost", budget),
)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="nethook-selftest-") as folder:
        yield Path(folder)


def _watching(folder: Path) -> Callable[..., Any]:
    import nethook

    def watch(model: nn.Module, optimizer: torch.optim.Optimizer) -> Any:
        return nethook.watch(model, optimizer, to=folder / "run.db", budget=BUDGET)

    return watch


def _compile(model: nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    made: Callable[[torch.Tensor], torch.Tensor] = torch.compile(model, fullgraph=True)
    return made


def _waits(device: torch.device, watching: Callable[..., Any] | None) -> int:
    """How often a training waited for CUDA, as torch counts it."""
    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            train(device, STEPS, watching)
        finally:
            torch.cuda.set_sync_debug_mode(before)
    return sum("synchronizing CUDA operation" in str(warning.message) for warning in caught)


def _same(mine: torch.Tensor, other: torch.Tensor, what: str) -> None:
    if not torch.equal(mine, other):
        raise AssertionError(f"{what} is not bit-identical")


def _line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
