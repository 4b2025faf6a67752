"""How soon the page of a very long run answers, in a real browser.

    .venv/bin/python benchmarks/page.py               # 1,000,000 steps of 100 layers: minutes
    .venv/bin/python benchmarks/page.py 10000
    .venv/bin/python benchmarks/page.py --run big.db  # one that is there already, or is made there

The run is made of random numbers as in benchmarks/scale.py (1,000 series), with a loss, gradient
norm and update ratio beside. `nethook ui` serves it; Chromium opens it. Measured: from navigation
to the first figure that is drawn, and from a click until every figure that is in view is drawn.
Each is done several times, the first with nothing of the run in the server's memory. `work` is
processor time, of the browser (all its processes) and the server together: on a machine that has
nothing else to do it takes about that long, or less where they work at the same time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scale

from nethook.runs import names
from nethook.runs.clock import WindowClock
from nethook.runs.writer import RunWriter
from nethook.stats.fields import INDEX, empty_rows

NAVIGATION, CLICK = 2.0, 0.5  # seconds: the bounds
REPEATS = 3
LOOP = (
    (names.LOOP, names.GRAD_NORM),
    (names.LOOP, names.GRAD_NORM_UNCLIPPED),
    (names.LOOP, names.UPDATE_RATIO),
    (names.loss_address("train.py:42"), names.LOSS),
)


def write_run(path: Path, steps: int) -> None:
    """A run of 100 layers in 25 blocks, with everything recorded, and of its loop."""
    writer = RunWriter(path)
    writer.add_site("", "Net", {"order": 0, "first_call": 0, "leaf": False})
    for layer in range(scale.LAYERS):
        address = f"blocks.{layer // 4}.layer{layer}"
        own = [f"{address}.weight", f"{address}.bias"]
        info = {"order": layer + 1, "first_call": layer + 1, "parameters": own, "leaf": True}
        writer.add_site(address, "Linear", {**info, "shape": [64, 256], "calls": {"train": steps}})
        for name in own:
            writer.add_site(name, "Parameter", {"owners": [address], "elements": 65_536})
        writer.add_series(address, names.OUTPUTS, units=scale.UNITS)
        writer.add_series(address, names.GRADS)
        for quantity in (names.PARAMS, names.PARAM_GRADS, names.UPDATES, names.UNCLIPPED):
            for name in own:
                writer.add_series(name, quantity)
    for address, quantity in LOOP:
        writer.add_series(address, quantity)
    simulation, clock, window = scale.Simulation(), WindowClock(), writer.window()
    while clock.first < steps:
        first, count = clock.first, min(clock.end, steps) - clock.first
        layers: Any = SimpleNamespace(
            rows=window.rows[: scale.SERIES],
            bits=window.bits,
            histograms=window.histograms[: scale.SERIES],
            seen=window.seen[: scale.SERIES],
        )
        simulation.fill(layers, first, count)
        window.first_step, window.last_step, window.steps = first, first + count - 1, count
        _loop(window, count, 2.3 / (1 + first / 5000) + 0.1, simulation.random)
        while writer.waiting:
            time.sleep(0.0005)
        window = writer.submit(window)
        clock.open(min(clock.end, steps))
    findings = [
        {
            "code": "dead-units", "severity": "error", "first_step": steps // 2,
            "last_step": steps - 1, "sites": ["blocks.3.layer12", "blocks.3.layer13"],
            "message": "Most units are silent.", "fix": "Lower the learning rate.",
            "evidence": {"silent": {"value": 0.6, "threshold": 0.5}},
        }
    ]  # fmt: skip
    writer.findings(findings)
    writer.info(diagnosis={"time": time.time(), "seconds": 0.1, "failed": []})
    writer.close(timeout=600)


def _loop(window: Any, steps: int, loss: float, random: np.random.Generator) -> None:
    """One number a step for the loop: its moments over the window."""
    means = np.array([1.0, 3.0, 1e-3, loss]) * random.lognormal(0, 0.05, len(LOOP))
    for at, mean in enumerate(means, start=scale.SERIES):
        row = empty_rows(1)[0]
        row[INDEX["tensors"]] = row[INDEX["count"]] = steps
        row[INDEX["mean"]], row[INDEX["m2"]] = mean, steps * (0.1 * mean) ** 2
        row[INDEX["min"]], row[INDEX["max"]] = 0.5 * mean, 2.0 * mean
        window.rows[at], window.seen[at] = row, steps


class Work:
    """Processor time of everything that this process has started, since it was last asked."""

    def __init__(self) -> None:
        self._last = self._now()

    def _now(self) -> float:
        parents: dict[int, int] = {}
        ticks: dict[int, int] = {}
        for place in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = place.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended since
            pid = int(place.parent.name)
            parents[pid], ticks[pid] = int(fields[1]), int(fields[11]) + int(fields[12])
        mine, grown = {os.getpid()}, True
        while grown:
            new = {pid for pid, parent in parents.items() if parent in mine} - mine
            mine, grown = mine | new, bool(new)
        total = sum(ticks.get(pid, 0) for pid in mine - {os.getpid()})
        return total / os.sysconf("SC_CLK_TCK")

    def spent(self) -> float:
        """Seconds."""
        now, last = self._now(), self._last
        self._last = now
        return now - last


def measure(address: str) -> dict[str, list[tuple[float, float]]]:
    """Seconds and work of each question, in a browser of its own for each navigation."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[tuple[float, float]]] = {}

    def note(name: str, seconds: float, work: float) -> None:
        found.setdefault(name, []).append((seconds, work))

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium())
        for at in range(REPEATS):
            page = browser.new_context(viewport={"width": 1366, "height": 850}).new_page()
            work = Work()
            page.goto(address, wait_until="commit")
            first = _until(page, "window.nethookFirst")
            name = "first navigation" if at == 0 else "navigation"
            note(name, first / 1000, work.spent())
            _settled(page)
            for name, act in CLICKS:
                work.spent()
                seconds = _clicked(page, act)
                note(name, seconds, work.spent())
                page.wait_for_timeout(300)
            page.context.close()
        # The browser has the scripts by now: what a second look takes.
        page = browser.new_context(viewport={"width": 1366, "height": 850}).new_page()
        work = Work()
        for at in range(REPEATS + 1):
            work.spent()
            page.goto(address, wait_until="commit")
            first = _until(page, "window.nethookFirst")
            if at:
                note("navigation, scripts known", first / 1000, work.spent())
        browser.close()
    return found


# What is done, in this order: each is a function of the page that ends with another address.
CLICKS = (
    ("another quantity", "choose('q', 'updates')"),
    ("silent units", "choose('q', 'silent')"),
    ("a module unfolded", "press('.folds button[aria-expanded=false]')"),
    ("a layer", "open('layer?at=blocks.3.layer12&step=500000')"),
    ("another step of it", "choose('step', '700000')"),
    ("another layer", "press('#layer-after')"),
    ("depth", "press('#go-3')"),
    ("findings", "press('#go-4')"),
    ("model", "press('#go-5')"),
    ("nethook itself", "press('#go-6')"),
    ("overview", "press('#go-1')"),
)
SEEN = """[...document.querySelectorAll('.figure')].filter((f) => f.checkVisibility()
    && f.getBoundingClientRect().top < innerHeight && f.getBoundingClientRect().bottom > 0)"""
_ACT = """(act) => {
    const go = (to) => { history.pushState(null, '', to);
        window.dispatchEvent(new CustomEvent('_dashprivate_pushstate')); };
    const run = location.pathname.match('/run/[^/]+')[0];
    const choose = (name, value) => { const query = new URLSearchParams(location.search);
        query.set(name, value); go(location.pathname + '?' + query); };
    const press = (what) => document.querySelector(what).click();
    const open = (what) => go(run + '/' + what);
    const before = window.nethookSent || 0, begin = performance.now();
    window.acted = null;
    const look = () => {
        const frames = SEEN;
        const done = (window.nethookSent || 0) > before && frames.every(
            (f) => f.dataset.drawn === 'yes' && f.dataset.tag === window.nethookTag(f));
        if (done) window.acted = performance.now() - begin; else requestAnimationFrame(look);
    };
    const [, verb, words] = act.match(/^(\\w+)\\((.*)\\)$/);
    const given = words.split("', '").map((word) => word.replace(/^'|'$/g, ''));
    ({ choose, press, open })[verb](...given);
    requestAnimationFrame(look);
}"""


def _clicked(page: Any, act: str) -> float:
    """Seconds from a click to the answer, with every figure that is in view drawn."""
    page.evaluate(_ACT.replace("SEEN", SEEN), act)
    return _until(page, "window.acted") / 1000


def _settled(page: Any) -> None:
    _until(page, f"{SEEN}.every((f) => f.dataset.drawn === 'yes')")
    page.wait_for_timeout(500)


def _until(page: Any, expression: str) -> float:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        found = page.evaluate(expression)
        if found:
            return float(found)
        page.wait_for_timeout(50)
    raise TimeoutError(expression)


def _chromium() -> str:
    names_of = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names_of)), None)
    if not found:
        raise SystemExit("there is no Chromium here: type `make browser`, which installs it")
    return found


def main(steps: int, run: Path | None) -> None:
    """Write the run, serve it, ask, and print what it took."""
    with tempfile.TemporaryDirectory(dir=".", prefix=".scale-") as folder:
        path = run or Path(folder).absolute() / "run.db"
        if not path.exists():
            write_run(path, steps)
        command = [sys.executable, "-m", "nethook", "ui", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().split(": ", 1)[1].strip()
                found = measure(address)
            finally:
                server.kill()
        print(f"a run of {path.stat().st_size / 1e6:.0f} MB, {scale.SERIES + len(LOOP):,} series")
    print(f"{'':28}{'bound':>8}{'best':>8}{'median':>8}{'worst':>8}{'work':>8}   seconds")
    for name, each in found.items():
        bound = NAVIGATION if "navigation" in name else CLICK
        times, work = [seconds for seconds, _ in each], [spent for _, spent in each]
        middle = statistics.median(times)
        print(
            f"{name:28}{bound:8.1f}{min(times):8.2f}{middle:8.2f}{max(times):8.2f}"
            f"{statistics.median(work):8.2f}"
        )
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"load {load:.1f} on {cores} cores: above the number of cores all times are longer")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--run", type=Path)
    given = parser.parse_args()
    main(given.steps, given.run)
