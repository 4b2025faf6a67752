"""How soon the page of a very long run answers, in a real browser.

    .venv/bin/python benchmarks/page.py               # 1,000,000 steps of 100 layers: minutes
    .venv/bin/python benchmarks/page.py 10000
    .venv/bin/python benchmarks/page.py --run big.db  # one that is there already, or is made there

The run is made of random numbers as in benchmarks/scale.py (1,000 series), with a loss, gradient
norm and update ratio beside. `nethook ui` serves it; Chromium, which has been open for a while,
opens it. Measured, until the frame of the screen after:

- from the start of a navigation: the first in a context of its own (nothing is in the browser's
  cache), and later ones in it. The server has run for a few seconds then, as when a person opens
  the link that it prints, and has begun to read the run;
- from a click, until the view is answered.

`first` is when the first figure stands on the screen with the new numbers (where a view has none:
when its texts stand there). After a navigation that is a picture which the server has drawn, since
a browser takes about a second to run plotly.js; `live` is when plotly.js has drawn the first figure
in its place, which can be zoomed and pointed at. `all` is when every text stands there and
plotly.js has drawn every figure that is in sight. What is further down is drawn after that, when
the browser has nothing else to do. Each is done several times. `work` is processor time until all
is drawn, of the browser (all its processes) and the server together: on a machine that has nothing
else to do it takes about that long, or less where they work at once.
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
from nethook.runs.writing.windowing import WindowClock
from nethook.runs.writing.writer import RunWriter
from nethook.stats.fields import INDEX, empty_rows

NAVIGATION, CLICK = 1.0, 0.2  # seconds: the bounds
REPEATS = 3
START, PAUSE = 4000, 700  # milliseconds: a browser that was started is busy with itself for a while
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
        scale.wait_for_room(writer)
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

    def _now(self) -> dict[int, int]:
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
        return {pid: ticks.get(pid, 0) for pid in mine - {os.getpid()}}

    def spent(self) -> float:
        """Seconds, of the processes that are there still."""
        now, last = self._now(), self._last
        self._last = now
        ticks = sum(each - last.get(pid, 0) for pid, each in now.items())
        return ticks / os.sysconf("SC_CLK_TCK")


Times = tuple[float, float, float, float]  # seconds to first, live and all; and of work


def measure(address: str) -> dict[str, list[Times]]:
    """What each question takes."""
    from playwright.sync_api import sync_playwright

    found: dict[str, list[Times]] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_chromium())
        browser.new_page().wait_for_timeout(START)
        for at in range(REPEATS):
            context = browser.new_context(viewport={"width": 1366, "height": 850})
            context.add_init_script(_LOOK.replace("SEEN", SEEN))
            page = context.new_page()
            page.wait_for_timeout(PAUSE)
            name = "first navigation" if at == 0 else "navigation, nothing cached"
            found.setdefault(name, []).append(_navigated(page, address))
            for name, act in CLICKS:
                page.wait_for_timeout(PAUSE)
                found.setdefault(name, []).append(_clicked(page, act))
            page.wait_for_timeout(PAUSE)
            found.setdefault("navigation again", []).append(_navigated(page, address))
            context.close()
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
_LOOK = """window.nethookLook = (begin, before) => {
    window.acted = null;
    let first = 0, live = 0;
    const isNew = (e) => e.dataset.tag === window.nethookTag(e);
    const look = () => {
        if ((window.nethookSent || 0) > before) {
            const figures = SEEN;
            const texts = [...document.querySelectorAll('.section[id]')];
            const now = performance.now() - begin, drawn = figures.filter(isNew);
            if (drawn.length && !live) live = now;
            if ((live || figures.some((f) => f.dataset.drawn === 'still')) && !first) first = now;
            if (texts.every(isNew) && drawn.length === figures.length) {
                window.acted = [first || now, live || now, now];
                return;
            }
        }
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
};
if (location.protocol.startsWith('http')) window.nethookLook(0, 0);"""
_ACT = """(act) => {
    const go = window.nethookGo;
    const run = location.pathname.match('/run/[^/]+')[0];
    const choose = (name, value) => { const query = new URLSearchParams(location.search);
        query.set(name, value); go(location.pathname + '?' + query); };
    const press = (what) => document.querySelector(what).click();
    const open = (what) => go(run + '/' + what);
    const [, verb, words] = act.match(/^(\\w+)\\((.*)\\)$/);
    const given = words.split("', '").map((word) => word.replace(/^'|'$/g, ''));
    window.nethookLook(performance.now(), window.nethookSent || 0);
    ({ choose, press, open })[verb](...given);
}"""


def _navigated(page: Any, address: str) -> Times:
    """Until the page of an address is drawn, from when it was asked for."""
    work = Work()
    page.goto(address, wait_until="commit")
    return _answered(page, work)


def _clicked(page: Any, act: str) -> Times:
    """Until a click is answered."""
    work = Work()
    page.evaluate(_ACT, act)
    return _answered(page, work)


def _answered(page: Any, work: Work) -> Times:
    first, live, last = _until(page, "window.acted")
    return first / 1000, live / 1000, last / 1000, work.spent()


def _until(page: Any, expression: str) -> Any:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = page.evaluate(expression)
        if found:
            return found
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
        command = [sys.executable, "-m", "nethook", "ui", str(path), "--port", "0", "--no-token"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address = server.stdout.readline().split(": ", 1)[1].strip()
                found = measure(address)
            finally:
                server.kill()
        print(f"a run of {path.stat().st_size / 1e6:.0f} MB, {scale.SERIES + len(LOOP):,} series")
    heads = ("bound", "first", "worst", "live", "worst", "all", "worst", "work")
    print(f"{'':28}{''.join(f'{head:>7}' for head in heads)}  seconds")
    for name, each in found.items():
        bound = NAVIGATION if "navigation" in name else CLICK
        *times, work = zip(*each, strict=True)
        pairs = [take(time) for time in times for take in (statistics.median, max)]
        shown = [f"{bound:7.1f}", *(f"{each:7.2f}" for each in (*pairs, statistics.median(work)))]
        print(f"{name:28}{''.join(shown)}")
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"load {load:.1f} on {cores} cores: above the number of cores all times are longer")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--run", type=Path)
    given = parser.parse_args()
    main(given.steps, given.run)
