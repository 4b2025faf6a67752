"""Devices: a stand-in accelerator that counts what waits for it, and tensors without data."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nethook
from nethook import edits
from tests.modes.device_guards import no_such_device, waits_for_numbers
from tests.modes.matrix import cell, mode
from tests.modes.steps import STEPS, batches, network, patched, recorded, watching

DEVICE = mode("Devices", "an accelerator", "a simulated device that counts every wait")
SAME = mode(
    "Devices",
    "an accelerator: norms, cosines, flags",
    "computed on the device, read when a window ends",
    **dict.fromkeys(("trace", "edit", "features"), "as above"),
)
META = mode("Devices", "`meta`", "tensors with a shape and no data")


def _outcome() -> tuple[dict[str, Any], Path]:
    if not hasattr(torch.utils.backend_registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("the stand-in is a device made in Python, which torch lets one do since 2.10")
    return _run()


@cache
def _run() -> tuple[dict[str, Any], Path]:
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    here = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": f"{here / 'src'}{os.pathsep}{here}"}
    environment["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        [sys.executable, "-m", "tests.modes.device_program", folder.name],
        env=environment, cwd=here, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), Path(folder.name)


@cell(
    "watch", DEVICE, "mlp", guard=waits_for_numbers, without="the host waits in every step",
    elsewhere=True,
)  # fmt: skip
def watch_waits_for_nothing(model: str, off: Any) -> None:
    found, _ = _outcome()
    assert found["watch" if off is nullcontext else "watch waiting"] == {}


@cell(
    "watch", SAME, "mlp", guard=no_such_device, without="an accelerator has no such numbers",
    elsewhere=True,
)  # fmt: skip
def watch_has_the_same_numbers(model: str, off: Any) -> None:
    found, folder = _outcome()
    name = "watch" if off is nullcontext else "watch_plain"
    ours, expected = recorded(folder / f"{name}.db"), recorded(folder / "cpu.db")
    times = ("step_seconds", "watch_seconds")
    assert {key for key in expected if key[1] not in times} <= set(ours)
    for key, row in expected.items():
        if key[1] not in times:
            np.testing.assert_array_equal(ours[key]["count"], row["count"], f"{key}")
            for field in ("mean", "std", "min", "max"):
                np.testing.assert_allclose(
                    ours[key][field], row[field], 1e-5, 1e-7, err_msg=f"{key} {field}"
                )
    with nethook.open_run(folder / f"{name}.db") as run:
        assert len(run.scalars["grad_norm"]) == len(run.scalars["update_ratio"]) == STEPS
        assert len(run.scalars["params_fingerprint"]) == STEPS
        assert (run.series("0", "outputs").coverage == 1).all()
        facts = {site.address: site.info for site in run.sites}
        assert facts["0.weight"]["moved"] == [STEPS, STEPS]
        assert facts["0.weight"]["distinct_rows"] == dict.fromkeys("012", 16)
    assert found["nan"] == [[1, "1"]]


def _inert(feature: str) -> Any:
    room = "editing.changes" if feature == "edit" else "tracing.taps"
    return lambda: patched(f"nethook.{room}.elsewhere", lambda *_: True)


def _scope(feature: str) -> Any:
    def check(model: str) -> None:
        # What runs elsewhere is the same code; here it is what the guard switches off.
        bare, x = network(model), batches(model)[0][0]
        if feature == "edit":
            with nethook.edit(bare, outputs={"0": edits.scale(2.0)}):
                bare(x)
        else:
            nethook.features(bare, x, at="0")
        found, _ = _outcome()
        assert all(found["scopes"]["same"][feature])
        assert found["scopes"]["waits"] == {}

    return check


for _feature in ("trace", "edit", "features"):
    cell(_feature, DEVICE, "mlp", guard=_inert(_feature), without="nothing is seen")(
        _scope(_feature)
    )


# -- meta -----------------------------------------------------------------------------------------


def _meta(name: str) -> tuple[Any, list[torch.Tensor]]:
    return network(name).to("meta"), [x.to("meta") for x, _ in batches(name)]


def _read_anyway() -> Any:
    return patched("nethook.stats.rows.readable.kind", lambda tensor: None)


@cell("watch", META, "mlp", guard=_read_anyway, without="watching ends with an error")
def watch_without_data(name: str) -> None:
    model, given = _meta(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        for x in given:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    assert (rows["0", "outputs"]["count"] == 0).all()
    assert rows["@loop", "optimizer_steps"]["mean"].tolist() == [1.0] * STEPS


@cell("trace", META, "mlp", guard=_inert("trace"), without="nothing is seen")
def trace_without_data(name: str) -> None:
    model, given = _meta(name)
    for x in given:
        with nethook.trace(model, grads=True) as tape:
            model(x).sum().backward()
        assert tape["0"].output.is_meta
        assert tape["0"].grad.shape == tape["0"].output.shape


@cell("edit", META, "mlp", guard=_inert("edit"), without="nothing is changed")
def edit_without_data(name: str) -> None:
    model, given = _meta(name)
    for x in given:
        with nethook.edit(model, outputs={"0": edits.scale(2.0)}) as scope:
            assert model(x).is_meta
        assert sum(scope.firings.values()) == 1


@cell("features", META, "mlp", guard=_inert("features"), without="nothing is read")
def features_without_data(name: str) -> None:
    model, given = _meta(name)
    for x in given:
        assert nethook.features(model, x, at="0").shape == (8, 16)
    with pytest.raises(Exception, match="meta"):
        float(nethook.features(model, given[0], at="0").sum())
