"""A run of known numbers in the shape of a training, with a fault and its findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from nethook.runs import names
from nethook.runs.writing.windowing import WindowClock
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX, merge_rows
from tests.runs.made import histogram, row

UNITS = 24
LAYERS = (  # address, class, activation, shape
    ("conv1", "Conv2d", "linear", [64, 20, 24, 24]),
    ("relu1", "ReLU", "rectifier", [64, 20, 24, 24]),
    ("block.conv2", "Conv2d", "linear", [64, 50, 8, 8]),
    ("block.relu2", "ReLU", "rectifier", [64, 50, 8, 8]),
    ("fc1", "Linear", "linear", [64, 500]),
    ("act", "Sigmoid", "bounded", [64, 500]),
    ("fc2", "Linear", "linear", [64, 10]),
)
FINDINGS = [
    {
        "code": "dead-units", "severity": "error", "sites": ["block.relu2"], "first_step": 60,
        "last_step": 119, "message": "Most units of block.relu2 have gone silent.",
        "fix": "Lower the learning rate to about 0.01, or warm it up over the first 50 steps.",
        "evidence": {
            "silent_share": {"value": 0.83, "threshold": 0.5},
            "units": 24,
        },
        "consequences": [{"code": "vanishing-gradient", "message": "conv1 gets little gradient"}],
    },
    {
        "code": "learning-rate-too-high", "severity": "warning", "sites": [], "first_step": 40,
        "last_step": 60, "message": "Updates are large against the weights.",
        "fix": "Divide the learning rate by ten.",
        "evidence": {"update_ratio": {"value": 0.08, "threshold": 0.01}},
    },
    {
        "code": "unused-module", "severity": "info", "sites": ["spare"], "first_step": 0,
        "message": "spare is never called.", "fix": "Remove it.", "evidence": {},
    },
]  # fmt: skip


def draw(step: int, at: int, kind: str, seed: int, fault: int) -> np.ndarray:
    """What a layer returned at a step."""
    random = np.random.default_rng((seed, at, step))
    data = random.normal(0.1, 0.5 + 0.002 * step, (10, UNITS))
    if kind == "rectifier":
        data = np.maximum(data, 0)
        if at == 3 and step >= fault:
            data[:, : int(UNITS * min(0.85, 0.05 * (step - fault)))] = 0
    if kind == "bounded":
        data = 1 / (1 + np.exp(-4 * data))
    return data


def write_training(
    path: Path,
    steps: int = 120,
    *,
    seed: int = 0,
    fault: int = 60,
    findings: list[dict[str, object]] | None = None,
    rename: Callable[[str], str] = str,
    change_at: int | None = None,
    rate: float = 0.1,
    **options: object,
) -> Path:
    """Write a run; `rename` makes names odd, `change_at` makes it another run from there on."""
    writer = RunWriter(path, flush_every=0.05, capacity=10_000, **options)
    rows: dict[tuple[str, str], int] = {}

    def series(address: str, quantity: str, units: int = 0) -> int:
        key = (address, quantity)
        rows.setdefault(key, writer.add_series(rename(address), quantity, units=units))
        return rows[key]

    writer.add_site(
        "", rename("Net"), {"order": 0, "first_call": 0, "leaf": False, "shape": [64, 10]}
    )
    writer.add_site("spare", rename("Linear"), {"order": 1, "leaf": True, "calls": {}})
    for at, (address, kind, activation, shape) in enumerate(LAYERS):
        own = [f"{address}.weight", f"{address}.bias"] if activation == "linear" else []
        writer.add_site(
            rename(address), rename(kind),
            {
                "order": at + 2, "first_call": at + 1, "leaf": True, "activation": activation,
                "shape": shape, "dtype": rename("float32"), "device": rename("cpu"),
                "calls": {"train": steps}, "parameters": [rename(name) for name in own],
                "source": rename("net.py:12"),
            },
        )  # fmt: skip
        for name in own:
            writer.add_site(
                rename(name),
                "Parameter",
                {
                    "owners": [rename(address)],
                    "shape": shape[1:],
                    "elements": 240,
                    "requires_grad": True,
                },
            )
        series(address, names.OUTPUTS, UNITS)
        series(address, names.GRADS)
        for name in own:
            for quantity in (names.PARAMS, names.PARAM_GRADS, names.UPDATES):
                series(name, quantity)
    for quantity in (names.GRAD_NORM, names.GRAD_NORM_UNCLIPPED, names.UPDATE_RATIO):
        series(names.LOOP, quantity)
    series(names.loss_address("train.py:42"), names.LOSS)

    window, clock = writer.window(), WindowClock()

    def fold(address: str, quantity: str, data: np.ndarray) -> None:
        at = rows[address, quantity]
        mine = row(data.ravel())
        if quantity == names.OUTPUTS:
            bits = window.bits_of(at)
            bits |= (data != 0).any(axis=0).astype(np.uint8)
            mine[INDEX["units"]], mine[INDEX["active"]] = UNITS, int(bits.sum())
            if address == "act":
                mine[INDEX["bounded"]] = data.size
                mine[INDEX["near_low"]] = int((data < 0.03).sum())
                mine[INDEX["near_high"]] = int((data > 0.97).sum())
        window.rows[at] = merge_rows(window.rows[at], mine) if window.seen[at] else mine
        window.histograms[at] += histogram(data.ravel())
        window.seen[at] += 1

    for step in range(steps):
        own_seed = seed if change_at is None or step < change_at else seed + 1
        random = np.random.default_rng((own_seed, 99, step))
        for at, (address, _, activation, _) in enumerate(LAYERS):
            fold(address, names.OUTPUTS, draw(step, at, activation, own_seed, fault))
            gradient = random.normal(0, 10.0 ** (at - 7), 240)
            fold(address, names.GRADS, gradient)
            if activation == "linear":
                for name in (f"{address}.weight", f"{address}.bias"):
                    fold(name, names.PARAMS, random.normal(0, 0.1 + 0.0005 * step, 240))
                    fold(name, names.PARAM_GRADS, random.normal(0, 10.0 ** (at / 2 - 4), 240))
                    fold(name, names.UPDATES, random.normal(0, 1e-4 * (1 + at), 240))
        norm = 1.0 + 4.0 * random.random() + (30.0 if step == fault else 0.0)
        fold(names.LOOP, names.GRAD_NORM, np.array([min(norm, 5.0)]))
        fold(names.LOOP, names.GRAD_NORM_UNCLIPPED, np.array([norm]))
        fold(names.LOOP, names.UPDATE_RATIO, np.array([2e-3 * (1 + random.random())]))
        loss = 2.3 * np.exp(-step / 40) + 0.1 * random.random() + (0.8 if step > fault else 0.0)
        fold(names.loss_address("train.py:42"), names.LOSS, np.array([loss]))
        writer.log(names.loss_name("train.py:42"), loss, step, keep=names.KEPT_STEPS)
        if step % 30 == 0:
            writer.log(names.lr_name("0", 0), rate * 0.5 ** (step // 30), step)
            writer.log(rename("val_accuracy"), 0.5 + step / 300, step)
        window.add_step(step)
        if clock.ends_with(step):
            window = writer.submit(window)
            clock.open(step + 1)
    writer.close(window)
    with_findings = FINDINGS if findings is None else findings
    evaluate(path, rename, steps, with_findings)
    return path


def evaluate(path: Path, rename: Callable[[str], str], steps: int, findings: list) -> None:
    """Evaluation passes, events and findings, in a run that is continued."""
    with RunWriter(path, resume=True, flush_every=0.05, capacity=1000) as writer:
        at = writer.add_series(rename(names.loss_address("train.py:42")), names.LOSS)
        for step in range(20, steps, 30):
            window = writer.window("eval")
            window.rows[at] = row(np.array([2.5 * np.exp(-step / 60)]))
            window.seen[at] = 1
            window.add_step(step)
            writer.submit(window)
        writer.event("order", 0, rename("zero_grad, forward, backward, step"), rename("fc1"))
        writer.event("batch", 61, rename("saved"), data={"batch": [0.123456789, rename("secret")]})
        kept = np.full((1, 1, 2, 2), 0.7654321, dtype=np.float32)
        writer.snapshot(rename("conv1"), 61, kept)
        writer.findings(findings)
        writer.info(
            overhead=0.021, optimizers={"0": rename("AdamW")}, models=[rename("Net")],
            watch={"to": rename("runs/x.db")},
        )  # fmt: skip
