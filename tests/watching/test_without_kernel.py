"""An install without a compiler watches as well: the same numbers, by torch."""

import json
import subprocess
import sys

import pytest

PROGRAM = """
import sys, json, warnings
kernel, path = sys.argv[1], sys.argv[2]
if kernel == "none":
    sys.modules["nethook.stats.native._native"] = None
    warnings.simplefilter("ignore")
import torch
from torch import nn
import nethook
from nethook.stats.native import binding

assert binding.functions is None or kernel == "native"
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
# The writer is waited for: where it is behind, windows merge.
with nethook.watch(model, optimizer, to=path, budget=None) as watch:
    for _ in range(12):
        x, y = torch.randn(16, 10), torch.randint(3, (16,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        watch._session.journal.writer.flush()
run = nethook.open_run(path)
found = {"failed": [event.message for event in run.events if event.kind == "watch-failed"]}
for info in run.catalogue:
    if info.quantity not in ("step_seconds", "watch_seconds"):
        one = run.series(info.address, info.quantity)
        found[f"{info.address} {info.quantity}"] = [one["rms"].tolist(), one["count"].tolist()]
print(json.dumps(found))
"""


def watched(kernel, folder):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, kernel, str(folder / f"{kernel}.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ended.stdout.splitlines()[-1])


def test_without_the_kernel_the_numbers_are_the_same(tmp_path):
    bare, native = watched("none", tmp_path), watched("native", tmp_path)
    assert bare.pop("failed") == native.pop("failed") == []
    assert bare.keys() == native.keys()
    quantities = {name.rpartition(" ")[2] for name in bare}
    assert {"repeated", "second_moment", "update_cosine", "update_ratio"} <= quantities
    for name, (rms, count) in bare.items():
        assert rms == pytest.approx(native[name][0], rel=1e-4, abs=1e-9, nan_ok=True), name
        assert count == native[name][1], name
