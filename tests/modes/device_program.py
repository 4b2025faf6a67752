"""What is done on the stand-in accelerator: `python -m tests.modes.device_program FOLDER`.

In a process of its own, since a device is registered for ever. Prints what came of it, as JSON.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

import nethook
from nethook import edits
from tests.modes import standin
from tests.modes.device_guards import no_such_device, waits_for_numbers
from tests.modes.steps import STEPS, batches, network


def _watch(path: Path, device: Any) -> dict[str, int]:
    """Trains with one window for all steps; what waited before that window ended."""
    model = network("mlp").to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    given = [(x.to(device), y.to(device)) for x, y in batches("mlp")]
    watch = nethook.watch(model, optimizer, to=path, budget=None)
    watch.be_silent()
    watch._session.schedule.budget.may_write = lambda: False  # the window goes on until the end,
    watch._session.window._show = lambda: None  # and is not shown after five seconds, as it is
    with standin.counting() as waits:
        for x, y in given:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        seen = dict(waits)
    watch.close()
    return seen


def _nan(path: Path) -> Any:
    """A layer makes NaN from the second step on."""
    model = network("mlp").to(standin.DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch = nethook.watch(model, optimizer, to=path, budget=None)
    watch.be_silent()
    for step, (x, y) in enumerate(batches("mlp", 2)):
        if step:
            model[1].forward = lambda given: (given - 1000).sqrt()
        optimizer.zero_grad()
        F.cross_entropy(model(x.to(standin.DEVICE)), y.to(standin.DEVICE)).backward()
        optimizer.step()
    watch.close()
    with nethook.open_run(path) as run:
        return [[each.step, each.address] for each in run.events if each.kind == "non-finite"]


def _scopes() -> dict[str, Any]:
    """Trace, edit and features, with what the CPU gives."""
    model, bare = network("mlp").to(standin.DEVICE), network("mlp")
    same: dict[str, list[bool]] = {"trace": [], "edit": [], "features": []}
    waits = {}
    for x, _ in batches("mlp"):
        away = x.to(standin.DEVICE)
        with nethook.trace(bare, grads=True) as expected:
            bare(x).sum().backward()
        with standin.counting() as waited:
            with nethook.trace(model, grads=True) as tape:
                model(away).sum().backward()
            with nethook.edit(model, outputs={"0": edits.scale(2.0)}):
                edited = model(away)
            features = nethook.features(model, away, at="0")
            waits |= dict(waited)
        for site in expected:
            pairs = [
                (tape[site].output, expected[site].output),
                (tape[site].grad, expected[site].grad),
            ]
            same["trace"] += [torch.equal(ours.cpu(), other) for ours, other in pairs]
        with nethook.edit(bare, outputs={"0": edits.scale(2.0)}):
            same["edit"].append(torch.equal(edited.cpu(), bare(x)))
        same["features"].append(torch.equal(features.cpu(), bare[0](x)))
    return {"same": same, "waits": waits}


def main() -> None:
    """Runs everything."""
    standin.register()
    place = Path(sys.argv[1])
    found: dict[str, Any] = {"scopes": _scopes()}
    _watch(place / "cpu.db", "cpu")
    for label, guard in (
        ("watch", nullcontext),
        ("watch waiting", waits_for_numbers),
        ("watch plain", no_such_device),
    ):
        with guard():
            found[label] = _watch(place / f"{label.replace(' ', '_')}.db", standin.DEVICE)
    found["nan"] = _nan(place / "nan.db")
    assert STEPS == 3
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
